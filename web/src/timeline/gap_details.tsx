// A selected gap in full: its causes, what ended it, what the host did meanwhile.
import type {JSX} from 'preact';
import type {GapInfo} from '../api/types';
import {causeWord} from '../base/causes';
import {
  formatCount,
  formatDuration,
  formatPct,
  formatPerStep,
  plural,
  unbroken,
} from '../base/format';
import {page, type Selection} from '../model/view_state';
import {Chip, topicOf} from '../ui/cause_mark';
import {CopyButton} from '../ui/copy_button';
import {ViewLink} from '../ui/link';
import {AreaActions, CausePieces, Fact, timeFact, type DetailsProps} from './details_parts';

export function GapDetails(
  props: DetailsProps & {sel: Extract<NonNullable<Selection>, {kind: 'gap'}>},
): JSX.Element {
  const {model, navigator, sel} = props;
  const gap = model.gap.value;
  const dur = sel.t1 - sel.t0;
  const step = model.steps.at(sel.t0);
  return (
    <>
      <header class="tl-details-head">
        <h2 class="tl-title">
          {gap && <Chip topic={topicOf(gap.cause)} />}
          GPU {sel.device} waits {formatDuration(dur, 3)}
          {gap && ` ${causeWord(gap.cause).waits}`}
        </h2>
        <div class="tl-actions">
          <GapActions model={model} navigator={navigator} gap={gap} />
          <AreaActions
            model={model}
            navigator={navigator}
            t0={sel.t0}
            t1={sel.t1}
            metric="waiting"
          />
        </div>
      </header>
      {gap ? (
        <CausePieces causeNs={gap.cause_ns} totalNs={gap.dur_ns} />
      ) : (
        <p class="tl-muted">No causes: this interval is not one of the gaps of 10 µs or more.</p>
      )}
      <dl class="tl-facts">
        {gap?.root_cause !== undefined && gap.root_cause !== '' && (
          <Fact name="why">{unbroken(gap.root_cause)}</Fact>
        )}
        {gap?.per_step !== undefined && (
          <Fact name="how often">{howOften(gap.per_step, model.steps.all.length)}</Fact>
        )}
        <Fact name="starts at">{timeFact(sel.t0)}</Fact>
        {step && (
          <Fact name="in">
            {step.name || `step ${step.index}`}
            {step.dur > 0 && `, ${formatPct((100 * dur) / step.dur)} of it`}
          </Fact>
        )}
        <Fact name="duration">
          {timeFact(dur)} <CopyButton text={String(dur)} label="Copy the duration in ns" />
        </Fact>
      </dl>
    </>
  );
}

function GapActions({
  model,
  navigator,
  gap,
}: DetailsProps & {gap: GapInfo | undefined}): JSX.Element {
  // the first is the one that is worth most
  const finding = gap && model.analysis?.findings.find(f => f.cause === gap.cause);
  const batch = model.chain.value[1];
  return (
    <>
      <button type="button" class="tl-button" onClick={() => void navigator.gap(1, true)}>
        next like this <kbd>Alt G</kbd>
      </button>
      {gap?.ended_by !== undefined && (
        <button
          type="button"
          class="tl-button"
          onClick={() => navigator.goToSlice(gap.ended_by ?? 0, undefined)}
        >
          operation that ended it
        </button>
      )}
      {batch && (
        <button
          type="button"
          class="tl-button"
          onClick={() => navigator.goToSlice(batch.id, undefined)}
        >
          late batch
        </button>
      )}
      {gap && (
        <button
          type="button"
          class="tl-button"
          onClick={() => void navigator.hostDuring(gap.start_ns, gap.start_ns + gap.dur_ns)}
        >
          what the host did
        </button>
      )}
      {finding && (
        <ViewLink
          class="tl-button"
          view={{page: page.value === 'timeline' ? 'overview' : page.value}}
        >
          <span class="tl-clip">finding: {finding.title || finding.id}</span>
        </ViewLink>
      )}
    </>
  );
}

/** A wait that some steps have and others do not: how many of them. */
const howOften = (perStep: number, steps: number): string =>
  perStep >= 0.5 && perStep < 1 && steps > 0
    ? `${formatCount(Math.round(perStep * steps))} of ${plural(steps, 'step')}`
    : formatPerStep(perStep);
