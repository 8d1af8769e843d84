// A selected step: what the GPU waited for in it, beside the mean step, and the slowest one.
import type {JSX} from 'preact';
import {CAUSES, causeWord, type Cause} from '../base/causes';
import {exactNs, formatDuration, formatPct} from '../base/format';
import {Chip, topicOf} from '../ui/cause_mark';
import {Fact, type DetailsProps} from './details_parts';
import type {Step} from './data/steps';

/** Beside the mean step: a difference below this is none. */
const SAME_PCT = 0.5;

function besideMean(durNs: number, meanNs: number): string {
  const pct = (100 * (durNs - meanNs)) / meanNs;
  if (Math.abs(pct) < SAME_PCT) return 'as long as the mean step';
  return `${formatPct(Math.abs(pct))} ${pct > 0 ? 'longer' : 'shorter'} than the mean step`;
}

export function StepDetails({model, navigator, step}: DetailsProps & {step: Step}): JSX.Element {
  void model.arrivals.value; // the waits come after the rows
  const {all} = model.steps;
  const place = all.indexOf(step);
  const waits = new Map(model.stepWaits[place]);
  const {analysis} = model;
  const partition = analysis?.partition?.per === 'step' ? analysis.partition : undefined;
  const meanNs = analysis?.steps.mean_ns;
  const meanOf = (cause: Cause): number | undefined =>
    partition && (partition.parts_ns[cause] ?? 0);
  const causes = CAUSES.filter(cause => waits.has(cause) || (meanOf(cause) ?? 0) > 0).sort(
    (a, b) => (waits.get(b) ?? 0) - (waits.get(a) ?? 0),
  );
  const slowest = all.reduce((a, b) => (b.dur > a.dur ? b : a), all[0] ?? step);
  const go = (other: Step | undefined, label: string, title: string): JSX.Element | false =>
    other !== undefined && (
      <button
        type="button"
        class="tl-button"
        title={title}
        onClick={() => navigator.goToStep(other)}
      >
        {label}
      </button>
    );
  const isKnown = model.stepWaits.length > 0;
  return (
    <>
      <Fact name="beside the others">
        {meanNs !== undefined && meanNs > 0 && besideMean(step.dur, meanNs)}
        {slowest === step && all.length > 1 && ', the slowest step'}
        <span class="tl-actions">
          {go(all[place - 1], /* text */ '\u2039 step', 'Previous step')}
          {go(all[place + 1], /* text */ 'step \u203a', 'Next step')}
          {slowest !== step && go(slowest, `slowest: ${formatDuration(slowest.dur)}`, slowest.name)}
        </span>
      </Fact>
      {isKnown && causes.length > 0 && (
        <Fact name="the GPU waited">
          <table class="tl-dock-table tl-step-waits">
            <thead>
              <tr>
                <th scope="col">
                  <span class="off-screen">cause</span>
                </th>
                <th scope="col" class="num">
                  this step
                </th>
                <th scope="col" class="num">
                  mean step
                </th>
              </tr>
            </thead>
            <tbody>
              {causes.map(cause => (
                <tr key={cause}>
                  <th scope="row">
                    <Chip topic={topicOf(cause)} /> {causeWord(cause).waits}
                  </th>
                  <Time ns={waits.get(cause) ?? 0} />
                  <Time ns={meanOf(cause)} />
                </tr>
              ))}
            </tbody>
          </table>
        </Fact>
      )}
      {isKnown && causes.length === 0 && <Fact name="the GPU waited">not at all</Fact>}
    </>
  );
}

function Time({ns}: {ns: number | undefined}): JSX.Element {
  return (
    <td class="num" title={ns === undefined ? undefined : exactNs(ns)}>
      {ns === undefined ? '\u2013' : formatDuration(ns)}
    </td>
  );
}
