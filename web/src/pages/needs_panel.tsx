// What each part needs for one step, on its own: bars against the step.
import {Fragment, type JSX} from 'preact';
import type {Analysis} from '../api/types';
import {NOT_RECORDED, THIN, durationIn, exactNs, formatDuration, timeUnitFor} from '../base/format';
import {axisOf, inSeries, needsOf, needsSentence, type Need, unitOf} from '../model/overview';
import {Chip, topicOf} from '../ui/cause_mark';
import {Explain} from '../ui/explain';

export function NeedsPanel({analysis}: {analysis: Analysis}): JSX.Element | null {
  const stepNs = analysis.steps.mean_ns;
  const needs = needsOf(analysis);
  const largest = Math.max(stepNs ?? 0, ...needs.map(need => need.needNs ?? 0));
  if (needs.every(need => need.needNs === undefined) || largest <= 0) return null;
  const axis = axisOf(largest, 4);
  const sentence = needsSentence(analysis);
  const unit = unitOf(analysis);
  const [first, second] = inSeries(analysis) ?? [];
  return (
    <section class="panel needs" aria-labelledby="needs-title">
      <header class="panel-head">
        <h2 id="needs-title">Time each part needs per {unit}</h2>
        {stepNs !== undefined && (
          <span class="panel-aside num">
            {unit}: {formatDuration(stepNs)}
          </span>
        )}
      </header>
      <div class="needs-chart">
        <div class="needs-overlay" aria-hidden="true">
          <Axis end={axis.end} step={axis.step} />
          {stepNs !== undefined && (
            <div class="needs-step" style={{left: `${(100 * stepNs) / axis.end}%`}} />
          )}
        </div>
        {needs.map((need, index) => (
          <NeedRow
            key={need.key}
            need={need}
            row={index + 1}
            end={axis.end}
            startNs={need.key === second?.key ? (first?.needNs ?? 0) : 0}
          />
        ))}
      </div>
      {sentence !== undefined && <p class="panel-note">{sentence}</p>}
    </section>
  );
}

function Axis({end, step}: {end: number; step: number}): JSX.Element {
  const unit = timeUnitFor(end);
  const marks: number[] = [];
  for (let at = 0; at <= end * 1.0001; at += step) marks.push(at);
  return (
    <>
      {marks.map((at, index) => (
        <Fragment key={at}>
          <span
            class={`needs-mark num ${index > 0 && index < marks.length - 1 ? 'needs-mark-inner' : ''}`}
            style={{left: `${(100 * at) / end}%`}}
          >
            {durationIn(at, unit, axisDecimals(step, unit))}
            {index === marks.length - 1 ? `${THIN}${unit}` : ''}
          </span>
          <span class="needs-grid" style={{left: `${(100 * at) / end}%`}} />
        </Fragment>
      ))}
    </>
  );
}

function axisDecimals(step: number, unit: ReturnType<typeof timeUnitFor>): number {
  const value = Number(durationIn(step, unit, 6).replace(/\s/g, ''));
  return value >= 1 && Number.isInteger(value) ? 0 : value >= 0.1 ? 1 : 2;
}

function NeedRow(props: {
  need: Need;
  row: number;
  end: number;
  /** Where the part before it ends. */
  startNs: number;
}): JSX.Element {
  const {need, row, end} = props;
  const topic = need.cause ? topicOf(need.cause) : topicOf('gpu');
  return (
    <>
      <div
        class={`needs-label ${need.needNs === undefined ? 'needs-unknown' : ''}`}
        style={{gridRow: row}}
      >
        <Chip topic={topic} /> {need.label}
      </div>
      <div class="needs-track" style={{gridRow: row}}>
        {need.needNs !== undefined && (
          <div
            class={`needs-bar ${need.isLongest ? 'needs-bar-longest' : ''}`}
            style={{
              width: need.needNs > 0 ? `max(2px, ${(100 * need.needNs) / end}%)` : '0',
              marginInlineStart: `${(100 * props.startNs) / end}%`,
            }}
          />
        )}
      </div>
      <div class="needs-value num" style={{gridRow: row}}>
        {need.needNs === undefined ? (
          <span class="faint">{NOT_RECORDED}</span>
        ) : need.needNs === 0 ? (
          <Explain title={need.label} text={need.definition} exact={exactNs(0)}>
            <span class="faint">none</span>
          </Explain>
        ) : (
          <Explain title={need.label} text={need.definition} exact={exactNs(need.needNs)}>
            {formatDuration(need.needNs)}
          </Explain>
        )}
      </div>
    </>
  );
}
