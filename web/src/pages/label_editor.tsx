// What people say of a trace, edited where it stands.
import type {JSX} from 'preact';
import {useLayoutEffect, useRef, useState} from 'preact/hooks';
import {errorText} from '../api/client';
import type {TraceInfo} from '../api/types';
import {sentence} from '../base/format';
import {setLabels, traces} from '../model/traces';
import {returnFocus} from '../ui/dialog';
import {edited} from './trace_rows';

/** "a, b" as tags: each once, without the empty ones. */
export function tagsOf(text: string): readonly string[] {
  return [...new Set(text.split(',').map(tag => tag.trim()))].filter(tag => tag !== '');
}

export function LabelEditor({trace}: {trace: TraceInfo}): JSX.Element {
  const [name, setName] = useState(trace.name);
  const [project, setProject] = useState(trace.project);
  const [tags, setTags] = useState(trace.tags.join(', '));
  const [notes, setNotes] = useState(trace.notes);
  const [problem, setProblem] = useState('');
  const field = useRef<HTMLInputElement>(null);
  const busy = useRef(false);
  useLayoutEffect(() => {
    const back = returnFocus();
    field.current?.select();
    return back;
  }, []);
  const close = (): void => {
    edited.value = undefined;
  };
  const save = async (): Promise<void> => {
    if (busy.current) return;
    busy.current = true;
    try {
      await setLabels(trace.id, {
        ...(name.trim() === trace.name ? {} : {name: name.trim()}),
        project: project.trim(),
        tags: tagsOf(tags),
        notes: notes.trim(),
      });
      close();
    } catch (error) {
      setProblem(sentence(errorText(error)));
    } finally {
      busy.current = false;
    }
  };
  const projects = [...new Set(traces.value.map(each => each.project))].filter(Boolean).sort();
  return (
    <form
      class="label-editor"
      aria-label={`Labels of ${trace.name}`}
      onSubmit={event => {
        event.preventDefault();
        void save();
      }}
      onKeyDown={event => {
        if (event.key === 'Escape') close();
        if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) void save();
      }}
    >
      <label>
        Name
        <input
          ref={field}
          class="input"
          value={name}
          maxLength={200}
          placeholder={trace.file_name ?? trace.name}
          onInput={event => setName(event.currentTarget.value)}
        />
      </label>
      <label>
        Project
        <input
          class="input"
          value={project}
          maxLength={200}
          list="known-projects"
          onInput={event => setProject(event.currentTarget.value)}
        />
      </label>
      <label>
        Tags
        <input
          class="input"
          value={tags}
          maxLength={500}
          placeholder="bf16, 8 workers"
          onInput={event => setTags(event.currentTarget.value)}
        />
      </label>
      <label class="label-notes">
        Notes
        <textarea
          class="input"
          rows={2}
          maxLength={4000}
          value={notes}
          onInput={event => setNotes(event.currentTarget.value)}
        />
      </label>
      <datalist id="known-projects">
        {projects.map(each => (
          <option key={each} value={each} />
        ))}
      </datalist>
      <span class="label-actions">
        {problem !== '' && (
          <span class="error-text" role="alert">
            {problem}
          </span>
        )}
        <button type="button" class="button" onClick={close}>
          Cancel
        </button>
        <button type="submit" class="button button-primary">
          Save
        </button>
      </span>
    </form>
  );
}
