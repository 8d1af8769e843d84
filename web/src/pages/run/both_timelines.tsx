// Two traces one above the other, aligned at a step, with one zoom.
import type {JSX} from 'preact';
import {getSteps, getStrip, getTrace} from '../../api/client';
import {CAUSES} from '../../base/causes';
import {formatCount, formatDuration} from '../../base/format';
import {ns} from '../../base/units';
import {dataOf} from '../../model/run/strips';
import {DEFAULT_VIEW, met, show, timeWindow, type TimeWindow} from '../../model/view_state';
import {CauseLegend} from '../../ui/chart_frame';
import {ViewLink} from '../../ui/link';
import {latest, useResource} from '../../ui/resource';
import {Failed} from '../../ui/states';
import {useSettled} from './settled';
import {showWindow, StripView, ZoomButtons} from './strip_view';

const POINTS = 1200;
const STEPS_MAX = 2000;

interface Side {
  readonly letter: string;
  readonly id: string;
  readonly name: string;
  readonly durationNs: number;
  readonly starts: readonly number[];
}

/** Added to the times of each so that their steps begin at one moment, and where the axis ends. */
export function layOut(
  sides: readonly {durationNs: number; starts: readonly number[]}[],
  step: number,
): {shifts: readonly number[]; endNs: number} {
  const at = sides.map(side => side.starts[step] ?? side.starts[side.starts.length - 1] ?? 0);
  const base = Math.max(...at);
  const shifts = at.map(start => base - start);
  return {
    shifts,
    endNs: Math.max(1, ...sides.map((side, i) => side.durationNs + (shifts[i] ?? 0))),
  };
}

export function BothTimelines({aId, bId}: {aId: string; bId: string}): JSX.Element | null {
  const sides = useResource(`${aId}/${bId}`, async s =>
    Promise.all(
      [aId, bId].map(async (id, i): Promise<Side> => {
        const [trace, steps] = await Promise.all([
          getTrace(id, s),
          getSteps(id, {points: STEPS_MAX}, s),
        ]);
        return {
          letter: i === 0 ? 'A' : 'B',
          id,
          name: trace.name,
          durationNs: trace.duration_ns,
          starts: steps.start_ns,
        };
      }),
    ),
  );
  if (sides.kind === 'error')
    return <Failed title="The timelines cannot be drawn" text={sides.text} retry={sides.retry} />;
  if (sides.kind !== 'ready' || sides.value.some(side => side.durationNs <= 0)) return null;
  return <Both sides={sides.value} />;
}

function Both({sides}: {sides: readonly Side[]}): JSX.Element {
  const shared = Math.min(...sides.map(side => side.starts.length));
  const step = Math.min(Number(met.value || '0'), Math.max(0, shared - 1));
  const {shifts, endNs} = layOut(sides, step);
  const window = timeWindow.value ?? {t0: ns(0), t1: ns(endNs)};
  const asked = useSettled({t0: Math.floor(window.t0), t1: Math.ceil(window.t1), step});
  const strips = useResource(
    `${sides.map(side => side.id).join()}/${asked.t0}/${asked.t1}/${asked.step}`,
    s => {
      const at = layOut(sides, asked.step).shifts;
      return Promise.all(
        sides.map((side, i) =>
          getStrip(
            side.id,
            {t0: asked.t0 - (at[i] ?? 0), t1: asked.t1 - (at[i] ?? 0), points: POINTS},
            s,
          ),
        ),
      );
    },
  );
  const drawn = latest(strips);
  const onWindow = (next: TimeWindow, isLeap: boolean): void =>
    showWindow(next, isLeap, w => (timeWindow.value = w));
  const rows = sides.map((side, i) => {
    const shiftNs = shifts[i] ?? 0;
    const strip = drawn?.[i];
    const from = side.starts[step];
    return {
      key: side.letter,
      name: side.letter,
      label: (
        <ViewLink
          view={{
            ...DEFAULT_VIEW,
            page: 'timeline',
            traceId: side.id,
            window: {t0: ns(window.t0 - shiftNs), t1: ns(window.t1 - shiftNs)},
          }}
          title={`The timeline of ${side.name} at this time`}
        >
          {side.letter}
        </ViewLink>
      ),
      data: strip && dataOf(strip, strip),
      shiftNs,
      mark: undefined,
      ticks: from === undefined ? [] : side.starts,
    };
  });
  const seen = CAUSES.filter(
    cause =>
      drawn?.some(strip => strip.waiting?.[cause]) ||
      (cause === 'comm' && drawn?.some(strip => strip.work?.['exposed_comm'])) ||
      (cause === 'copy_wait' && drawn?.some(strip => strip.work?.['exposed_copy'])),
  );
  /** One step of both, the longer one. */
  const around = (at: number): TimeWindow => {
    const laid = layOut(sides, at);
    const begin = (sides[0]?.starts[at] ?? 0) + (laid.shifts[0] ?? 0);
    const ends = sides.map(
      (side, i) => (side.starts[at + 1] ?? side.durationNs) + (laid.shifts[i] ?? 0),
    );
    return {t0: ns(begin), t1: ns(Math.max(begin + 1, ...ends))};
  };
  const goTo = (at: number): void => {
    const next = Math.min(Math.max(0, at), shared - 1);
    show({met: String(next), window: around(next)});
  };
  return (
    <section class="panel" aria-labelledby="both-timelines" data-testid="both-timelines">
      <header class="panel-head">
        <h2 id="both-timelines">Both timelines</h2>
        <span class="panel-aside">{formatDuration(endNs)}</span>
      </header>
      {strips.kind === 'error' && (
        <Failed title="The timelines cannot be drawn" text={strips.text} retry={strips.retry} />
      )}
      <div class="strips-tools">
        <ZoomButtons window={window} endNs={endNs} onWindow={onWindow} />
        {shared > 0 && (
          <span role="group" aria-label="Aligned at">
            <label class="both-step">
              aligned at step{' '}
              <input
                type="number"
                min={0}
                max={shared - 1}
                value={step}
                onChange={event => goTo(Math.floor(Number(event.currentTarget.value)) || 0)}
              />{' '}
              of {formatCount(shared)}
            </label>
            <button type="button" class="button" onClick={() => goTo(step - 1)}>
              Previous step
            </button>
            <button type="button" class="button" onClick={() => goTo(step + 1)}>
              Next step
            </button>
          </span>
        )}
      </div>
      <StripView
        rows={rows}
        window={window}
        endNs={endNs}
        name="What the GPU did in A and in B, and below it why it was idle. W, S, A and D zoom and move both, arrow keys go from step to step"
        onWindow={onWindow}
        onPress={() => undefined}
        onKey={key => {
          if (key === 'ArrowRight') goTo(step + 1);
          else if (key === 'ArrowLeft') goTo(step - 1);
          else return false;
          return true;
        }}
      />
      <CauseLegend causes={seen}>
        <span>
          <i class="chart-key share-work" /> computing
        </span>
      </CauseLegend>
    </section>
  );
}
