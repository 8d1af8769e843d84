// The way from a run to its comparison with another one.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import {listRuns} from '../api/client';
import type {RunInfo} from '../api/types';
import {formatWhen} from '../base/format';
import {runName} from '../model/runs';
import {DEFAULT_VIEW} from '../model/view_state';
import {ViewLink} from '../ui/link';
import {useResource} from '../ui/resource';

const RUNS_MAX = 500;

/** Nothing where there is no other run. */
export function CompareRun({run}: {run: RunInfo}): JSX.Element | null {
  const listed = useResource(run.id, signal => listRuns({limit: RUNS_MAX}, signal));
  const [chosen, choose] = useState('');
  const others =
    listed.kind === 'ready'
      ? listed.value.runs.filter(other => other.id !== run.id && other.ready_count > 0)
      : [];
  const other = others.find(it => it.id === chosen) ?? others[0];
  if (!other) return null;
  // the newer one is "after"; the list is newest first, which decides within a second
  const place = (id: string): number =>
    listed.kind === 'ready' ? listed.value.runs.findIndex(it => it.id === id) : -1;
  const isAfter = place(other.id) >= 0 && (place(run.id) < 0 || place(other.id) < place(run.id));
  const [a, b] = isAfter ? [run, other] : [other, run];
  return (
    <section class="panel run-compare">
      <label class="run-compare-choice">
        Compare with{' '}
        <select value={other.id} onChange={event => choose(event.currentTarget.value)}>
          {others.map(it => (
            <option key={it.id} value={it.id}>
              {runName(it.name) || 'unnamed run'}, {formatWhen(it.created_at, new Date())}
            </option>
          ))}
        </select>
      </label>
      <ViewLink
        class="button"
        view={{...DEFAULT_VIEW, page: 'compare', compareA: a.id, compareB: b.id}}
      >
        Compare
      </ViewLink>
    </section>
  );
}
