// A selected area in full.
import type {JSX} from 'preact';
import {exactNs, formatAt, formatCount, formatDuration, formatNumber} from '../base/format';
import {CopyButton} from '../ui/copy_button';
import {AreaDock} from './area_dock';
import {AreaActions, Fact, timeFact, type DetailsProps} from './details_parts';

export function AreaDetails({
  model,
  navigator,
  t0,
  t1,
}: DetailsProps & {t0: number; t1: number}): JSX.Element {
  const dur = t1 - t0;
  const inside = model.steps.all.filter(s => s.start < t1 && s.start + s.dur > t0);
  const step = model.steps.at(t0);
  const last = model.measured.value;
  const measured = last?.area.t0 === t0 && last.area.t1 === t1 ? last : undefined;
  const mean = model.analysis?.steps.mean_ns;
  return (
    <>
      <header class="tl-details-head">
        <h2 class="tl-title">
          Area of {formatDuration(dur, 4)}
          <CopyButton text={String(dur)} label="Copy the length in ns" />
        </h2>
        <div class="tl-actions">
          <AreaActions model={model} navigator={navigator} t0={t0} t1={t1} />
        </div>
      </header>
      <dl class="tl-facts">
        <Fact name="from">
          <span title={exactNs(t0)}>{formatAt(t0, dur)}</span>
        </Fact>
        <Fact name="to">
          <span title={exactNs(t1)}>{formatAt(t1, dur)}</span>
        </Fact>
        {measured && (
          <>
            <Fact name="start to start">{timeFact(measured.beginToBegin)}</Fact>
            <Fact name={measured.endToBegin < 0 ? 'overlap' : 'end to start'}>
              {timeFact(Math.abs(measured.endToBegin))}
            </Fact>
          </>
        )}
        {mean !== undefined && mean > 0 && dur >= mean / 100 && (
          <Fact name="in steps">{formatNumber(dur / mean, 3)} × the mean step</Fact>
        )}
        {inside.length > 0 && (
          <Fact name="touches">
            {inside.length === 1
              ? inside[0]?.name || 'one step'
              : `${formatCount(inside.length)} steps${step?.name ? `, from ${step.name}` : ''}`}
          </Fact>
        )}
      </dl>
      {model.bookmarks.all.value
        .filter(mark => mark.start_ns === t0 && Math.max(1, mark.dur_ns) === dur)
        .map(mark => (
          <p key={mark.id} class="tl-bookmark-note">
            {mark.note || 'Bookmark'}{' '}
            <button
              type="button"
              class="tl-dock-go"
              onClick={() => (model.bookmarks.draft.value = mark)}
            >
              edit
            </button>
          </p>
        ))}
      <AreaDock model={model} navigator={navigator} t0={t0} t1={t1} />
    </>
  );
}
