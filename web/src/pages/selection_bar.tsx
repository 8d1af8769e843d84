// What can be done with the selected traces: at the bottom of the list, where the hand is.
import type {JSX} from 'preact';
import {useEffect, useState} from 'preact/hooks';
import {dissolveRun, errorText, joinRun} from '../api/client';
import type {TraceInfo} from '../api/types';
import {plural, sentence} from '../base/format';
import {beforeAndAfter} from '../model/comparison';
import {endingRuns, loadRuns} from '../model/runs';
import {isTyping} from '../model/shortcuts';
import {refreshTrace, setLabels, traces} from '../model/traces';
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

/** Of the server's 255 bytes, whatever the letters. */
const NAME_MAX = 60;

/** One project, one more tag, or one run for all of them. */
function LabelAll({chosen}: {chosen: readonly TraceInfo[]}): JSX.Element {
  const [text, setText] = useState('');
  const [problem, setProblem] = useState('');
  const [isBusy, setBusy] = useState(false);
  const [first] = chosen;
  // a run that is chosen as a whole
  const run = traces.value.every(trace => (trace.run === first?.run) === chosen.includes(trace))
    ? first?.run
    : undefined;
  const apply = async (what: 'project' | 'tag' | 'run'): Promise<void> => {
    const value = text.trim();
    if (value === '' && what !== 'run') return;
    setProblem('');
    setBusy(true);
    try {
      if (what === 'run') {
        const ids = chosen.map(trace => trace.id);
        if (run !== undefined) {
          endingRuns.add(run);
          await dissolveRun(run);
        } else await joinRun(value || (first?.name ?? '').slice(0, NAME_MAX), ids);
        await Promise.all(ids.map(refreshTrace));
        await loadRuns();
      } else {
        for (const trace of chosen)
          await setLabels(
            trace.id,
            what === 'project' ? {project: value} : {tags: [...new Set([...trace.tags, value])]},
          );
      }
      setText('');
    } catch (error) {
      setProblem(sentence(errorText(error)));
    }
    setBusy(false);
  };
  return (
    <span class="label-all">
      <input
        class="input"
        aria-label={`Tag, project or run for ${plural(chosen.length, 'trace')}`}
        placeholder="tag, project or run"
        maxLength={NAME_MAX}
        value={text}
        onInput={event => setText(event.currentTarget.value)}
      />
      <button type="button" class="button" onClick={() => void apply('tag')}>
        Add tag
      </button>
      <button type="button" class="button" onClick={() => void apply('project')}>
        Set project
      </button>
      <button type="button" class="button" disabled={isBusy} onClick={() => void apply('run')}>
        {run === undefined ? 'Join into a run' : 'Take the run apart'}
      </button>
      {problem !== '' && (
        <span class="error-text" role="alert">
          {problem}
        </span>
      )}
    </span>
  );
}
