// One line under the pointer: name, duration, share of the step, times per step.
import type {JSX} from 'preact';
import {causeWord} from '../base/causes';
import {formatCount, formatDuration, formatPct, formatPerStep} from '../base/format';
import {SliceKind} from '../render/palette';
import {counterText} from './draw/overlay';
import type {Hover} from './data/hover';
import type {TimelineModel} from './data/timeline_model';

export function Tooltip({model}: {model: TimelineModel}): JSX.Element | null {
  const hover = model.hover.value;
  if (!hover || (!hover.hit && hover.value === undefined && hover.text === undefined)) return null;
  const {name, facts} = hoverText(model, hover);
  // To the side with more room, and never beyond it.
  const {x, y, stageWidth} = hover;
  const isLeft = x > stageWidth / 2;
  const style = {
    top: `${y + 18}px`,
    maxWidth: `${(isLeft ? x : stageWidth - x) - 20}px`,
    ...(isLeft ? {right: `${stageWidth - x + 12}px`} : {left: `${x + 12}px`}),
  };
  return (
    <div class="tl-tooltip" style={style} aria-hidden="true">
      <span class="tl-tooltip-name">{name}</span>
      <span>{facts}</span>
    </div>
  );
}

/** The name may be cut to fit; the facts after it never are. */
function hoverText(
  model: TimelineModel,
  {hit, value, text: said, row}: Hover,
): {name: string; facts: string} {
  if (!hit) {
    const facts = value === undefined ? (said ?? '') : counterText(row.title, value);
    return {name: row.label, facts};
  }
  void model.arrivals.value;
  const isGap = hit.kind === SliceKind.gap;
  const text = model.names.text(hit.nameId);
  const label = isGap && text !== undefined ? idleText(text) : model.names.label(hit.nameId);
  const name = label ?? '\u2026';
  if (hit.count > 1) {
    const share = formatPct((100 * hit.busyNs) / hit.dur);
    const what = `${formatCount(hit.count)} slices, busy ${share} of ${formatDuration(hit.dur)}`;
    return {name: `longest: ${name}`, facts: what};
  }
  // A lone slice below a pixel: the cell knows its length, not its exact place.
  const dur = hit.busyNs;
  const facts = [formatDuration(dur)];
  const track = row.track === undefined ? undefined : model.track(row.track);
  const step = model.steps.at(hit.start, track?.kind === 'thread');
  if (step && step.dur > 0 && hit.kind !== SliceKind.step) {
    facts.push(`${formatPct((100 * dur) / step.dur)} of the step`);
  }
  const count = model.kernelCounts.get(hit.nameId);
  const steps = model.steps.all.length;
  if (count !== undefined && steps > 0) facts.push(formatPerStep(count / steps));
  return {name, facts: facts.join(' \u00b7 ')};
}

const idleText = (cause: string): string => {
  const {letter, waits} = causeWord(cause);
  return `${letter}  the GPU waits ${waits}`;
};
