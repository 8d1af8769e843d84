// What can be done with the selected traces: at the bottom of the list, where the hand is.
import type {JSX} from 'preact';
import {useEffect, useState} from 'preact/hooks';
import {errorText} from '../api/client';
import type {TraceInfo} from '../api/types';
import {plural, sentence} from '../base/format';
import {beforeAndAfter} from '../model/comparison';
import {isTyping} from '../model/shortcuts';
import {setLabels, traces} from '../model/traces';
import {DEFAULT_VIEW} from '../model/view_state';
import {IconClose, IconSwap} from '../ui/icons';
import {ViewLink} from '../ui/link';
import {edited, picked, toDelete} from './trace_rows';

export function SelectionBar(): JSX.Element | null {
  const chosen = traces.value.filter(trace => picked.value.includes(trace.id));
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key === 'Escape' && !isTyping(event)) picked.value = [];
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  if (chosen.length === 0) return null;
  const [first] = chosen;
  return (
    <section class="selection-bar" aria-label="Selected traces">
      <strong class="num">{chosen.length} selected</strong>
      <Compare chosen={chosen} />
      <span class="spacer" />
      {chosen.length === 1 && first && (
        <button type="button" class="button" onClick={() => (edited.value = first.id)}>
          Edit
        </button>
      )}
      {chosen.length > 1 && <LabelAll chosen={chosen} />}
      <button
        type="button"
        class="button"
        onClick={() =>
          (toDelete.value = {
            name: chosen.map(trace => trace.name).join(', '),
            traces: chosen,
          })
        }
      >
        Delete
      </button>
      <button
        type="button"
        class="button button-quiet button-icon"
        aria-label="Clear the selection"
        title="Clear the selection (Esc)"
        onClick={() => (picked.value = [])}
      >
        <IconClose />
      </button>
    </section>
  );
}

/** Two ready traces: before and after, the older one first unless somebody swaps them. */
function Compare({chosen}: {chosen: readonly TraceInfo[]}): JSX.Element {
  const [isSwapped, setSwapped] = useState(false);
  const ready = chosen.filter(trace => trace.state === 'ready');
  const both = beforeAndAfter(
    ready.map(trace => trace.id),
    traces.value,
  );
  if (!both || chosen.length !== 2)
    return (
      <span class="muted pick-hint">
        {chosen.length < 2 ? 'select another trace to compare' : 'select two traces to compare'}
      </span>
    );
  const [a, b] = isSwapped ? [both[1], both[0]] : both;
  const nameOf = (id: string): string => chosen.find(trace => trace.id === id)?.name ?? '';
  return (
    <span class="pick-both">
      <span class="pick-names">
        <b>A</b> <span class="ellipsis">{nameOf(a)}</span> <b>B</b>{' '}
        <span class="ellipsis">{nameOf(b)}</span>
      </span>
      <button
        type="button"
        class="button button-quiet button-icon"
        aria-label="Swap A and B"
        title="Swap A and B"
        onClick={() => setSwapped(!isSwapped)}
      >
        <IconSwap />
      </button>
      <ViewLink
        class="button button-primary"
        view={{...DEFAULT_VIEW, page: 'compare', compareA: a, compareB: b}}
      >
        Compare
      </ViewLink>
    </span>
  );
}

/** One project, or one more tag, for all of them. */
function LabelAll({chosen}: {chosen: readonly TraceInfo[]}): JSX.Element {
  const [text, setText] = useState('');
  const [problem, setProblem] = useState('');
  const apply = async (what: 'project' | 'tag'): Promise<void> => {
    const value = text.trim();
    if (value === '') return;
    setProblem('');
    try {
      for (const trace of chosen)
        await setLabels(
          trace.id,
          what === 'project' ? {project: value} : {tags: [...new Set([...trace.tags, value])]},
        );
      setText('');
    } catch (error) {
      setProblem(sentence(errorText(error)));
    }
  };
  return (
    <span class="label-all">
      <input
        class="input"
        aria-label={`Tag or project for ${plural(chosen.length, 'trace')}`}
        placeholder="tag or project"
        maxLength={100}
        value={text}
        onInput={event => setText(event.currentTarget.value)}
      />
      <button type="button" class="button" onClick={() => void apply('tag')}>
        Add tag
      </button>
      <button type="button" class="button" onClick={() => void apply('project')}>
        Set project
      </button>
      {problem !== '' && (
        <span class="error-text" role="alert">
          {problem}
        </span>
      )}
    </span>
  );
}
