// Rows of a query over the timeline: what the SQL page was asked to show.
import type {JSX} from 'preact';
import type {TraceInfo} from '../api/types';
import {formatDuration, plural} from '../base/format';
import {ns} from '../base/units';
import {sqlTrack, type SqlSlice} from '../model/sql/shown_track';
import {leapTo, show, timeWindow} from '../model/view_state';
import {useWidth} from '../ui/chart_frame';

const LANE_PX = 18;
/** Thinner ones beside each other are drawn once. */
const THIN_PX = 0.5;
const SHOWN_MAX = 3000;

export function SqlStrip({trace}: {trace: TraceInfo}): JSX.Element | null {
  const box = useWidth();
  const track = sqlTrack.value;
  if (!track || track.trace !== trace.id) return null;
  const t0 = timeWindow.value?.t0 ?? 0;
  const t1 = timeWindow.value?.t1 ?? Math.max(1, trace.duration_ns);
  const pxPerNs = box.width / Math.max(1, t1 - t0);
  const boxes = placed(track.slices, t0, t1, pxPerNs);
  return (
    <section class="sql-strip" aria-label="Rows of a query">
      <div class="sql-strip-label">
        <span title={track.query}>{`query: ${plural(track.slices.length, 'row')}`}</span>
        <button
          type="button"
          class="button button-quiet"
          aria-label="Remove the rows of the query"
          onClick={() => {
            sqlTrack.value = undefined;
          }}
        >
          ×
        </button>
      </div>
      <div ref={box.ref} class="sql-strip-rows" style={{height: `${track.lanes * LANE_PX}px`}}>
        {box.width > 0 && (
          <svg width={box.width} height={track.lanes * LANE_PX} role="group">
            {boxes.map(({slice, x, width}, i) => (
              <g key={i} onClick={() => open(slice)}>
                <rect x={x} y={slice.lane * LANE_PX + 1} width={width} height={LANE_PX - 3}>
                  <title>{`${slice.name} ${formatDuration(slice.dur)}`}</title>
                </rect>
                {width > 30 && (
                  <text x={Math.max(0, x) + 4} y={slice.lane * LANE_PX + 13}>
                    {slice.name.slice(0, Math.floor((width - 8) / 7))}
                  </text>
                )}
              </g>
            ))}
          </svg>
        )}
      </div>
    </section>
  );
}

interface Box {
  readonly slice: SqlSlice;
  readonly x: number;
  readonly width: number;
}

function placed(slices: readonly SqlSlice[], t0: number, t1: number, pxPerNs: number): Box[] {
  const ends: number[] = [];
  const boxes: Box[] = [];
  for (const slice of slices) {
    if (slice.start >= t1) break;
    if (slice.start + slice.dur <= t0 || boxes.length >= SHOWN_MAX) continue;
    const x = Math.max(-2, (slice.start - t0) * pxPerNs);
    const end = Math.min((t1 - t0) * pxPerNs + 2, (slice.start + slice.dur - t0) * pxPerNs);
    if (end - (ends[slice.lane] ?? -1) < THIN_PX) continue;
    ends[slice.lane] = end;
    boxes.push({slice, x, width: Math.max(1, end - x)});
  }
  return boxes;
}

/** To the place, with room around it. */
function open(slice: SqlSlice): void {
  const around = Math.max(1000, slice.dur);
  leapTo({t0: ns(Math.max(0, slice.start - around)), t1: ns(slice.start + slice.dur + around)});
  if (slice.id !== undefined) show({selection: {kind: 'slice', slice: slice.id}});
}
