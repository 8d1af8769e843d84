// How many steps are counted, and one press to all time or back.
import type {JSX} from 'preact';
import type {TraceInfo} from '../api/types';
import {plural} from '../base/format';
import {ALL_TIME, MEASURED} from '../model/flame_steps';
import {loopUnit} from '../model/list_rows';
import {flameSteps, show} from '../model/view_state';

export function StepsNote(props: {
  trace: TraceInfo;
  /** That are counted; 0: none are told. */
  steps: number;
  /** All of the trace is counted. */
  isWhole: boolean;
  /** What is counted where nobody chose. */
  usual: string;
}): JSX.Element {
  const {isWhole, usual} = props;
  const steps =
    props.steps > 0 ? plural(props.steps, loopUnit(props.trace.summary) ?? 'step') : undefined;
  const isMeasured = (flameSteps.value === '' ? usual : flameSteps.value) === MEASURED;
  const next = isMeasured ? ALL_TIME : MEASURED;
  return (
    <span class="muted num flame-span">
      {isWhole ? [/* text */ 'whole trace', steps].filter(Boolean).join(', ') : steps}
      {(isMeasured ? !isWhole : steps !== undefined) && (
        <button
          type="button"
          class="plain-link"
          onClick={() =>
            show({flameFocus: 0, flameDropped: [], flameSteps: next === usual ? '' : next})
          }
        >
          {isMeasured ? 'whole trace' : 'measured steps'}
        </button>
      )}
    </span>
  );
}
