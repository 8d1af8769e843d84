// A finding in its grammar: what waits for what, why we think so, CHANGE, EXPECT, COSTS,
// WRONG IF, CHECK, SEE. A part that cannot be filled is left out.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import type {Finding, TraceInfo} from '../api/types';
import {
  formatDuration,
  formatFromTo,
  formatGain,
  formatPct,
  plural,
  sentence,
  unbroken,
} from '../base/format';
import {word} from '../base/vocabulary';
import {effortWords} from '../model/overview';
import {DEFAULT_VIEW} from '../model/view_state';
import {Chip, topicOf} from '../ui/cause_mark';
import {CopyButton} from '../ui/copy_button';
import {IconArrow, IconChevron, IconHelp} from '../ui/icons';
import {ViewLink} from '../ui/link';
import {AddButton} from './reports/add_button';
import {showEvidence, viewOfEvidence} from './evidence_link';
import {findingAnchor} from './ladder';

const EVIDENCE_SHOWN = 4;

export function FindingCard(props: {
  trace: TraceInfo;
  finding: Finding;
  repeatsVerdict: boolean;
}): JSX.Element {
  const {finding} = props;
  return (
    <article
      class="finding"
      id={findingAnchor(finding.id)}
      tabIndex={-1}
      aria-label={finding.title}
    >
      <header class="finding-head">
        <span class="kicker">
          {finding.change === '' || finding.severity === 'info' ? 'Finding' : 'Change this first'}
        </span>
        <span class="finding-tools">
          <Gain finding={finding} />
          <AddButton
            isQuiet
            project={props.trace.project}
            choices={[
              {line: `finding trace=${props.trace.id} id=${finding.id}`, label: finding.title},
            ]}
          />
          <Meaning id={finding.id} />
        </span>
      </header>
      {!props.repeatsVerdict && (
        <h2 class="finding-title">
          <FindingChip finding={finding} /> {unbroken(sentence(finding.title))}
        </h2>
      )}
      <FindingBody trace={props.trace} finding={finding} />
    </article>
  );
}

function FindingChip({finding}: {finding: Finding}): JSX.Element | null {
  return finding.cause === undefined ? null : <Chip topic={topicOf(finding.cause)} />;
}

/** What a change gains; where none is advised, nothing is promised. */
function Gain({finding}: {finding: Finding}): JSX.Element | null {
  if (finding.change === '') return null;
  const {low, mid, high} = finding.gain_pct ?? {};
  const gain = formatGain(mid, low, high);
  if (gain.mid === '') return null;
  const after = finding.step_ns?.mid;
  const before =
    after !== undefined && mid !== undefined && mid < 100 ? after / (1 - mid / 100) : undefined;
  const fromTo = (mid ?? 0) >= 1 ? formatFromTo(before, mid) : '';
  return (
    <span
      class={`gain gain-large num ${(mid ?? 0) < 1 ? 'gain-none' : ''}`}
      title="Predicted reduction of the step time, from replaying the step"
    >
      {gain.mid}
      {fromTo !== '' && <span class="gain-band">{fromTo}</span>}
      {gain.band !== '' && <span class="gain-band">{gain.band}</span>}
    </span>
  );
}

/** The document of this kind of finding. */
function Meaning({id}: {id: string}): JSX.Element {
  return (
    <ViewLink
      class="button button-quiet button-icon"
      view={{...DEFAULT_VIEW, page: 'findings', findingId: id}}
      title="What this finding means, how it is detected, and when it is wrong"
    >
      <IconHelp />
      <span class="off-screen">What this finding means</span>
    </ViewLink>
  );
}

function FindingBody(props: {
  trace: TraceInfo;
  finding: Finding;
  isFurther?: boolean;
}): JSX.Element {
  const {trace, finding, isFurther = false} = props;
  return (
    <div class="finding-body">
      {finding.why !== '' && <p class="finding-why">{unbroken(sentence(finding.why))}</p>}
      <dl class="parts">
        <Part
          name="Change"
          text={finding.change}
          kind={finding.change_kind}
          where={finding.where}
          effort={effortWords(finding.effort)}
        />
        <Part name="Expect" text={finding.expect} />
        <Part name="Costs" text={finding.costs} />
        <Part name="Wrong if" text={finding.wrong_if} />
        <Part name="Check" text={finding.check} kind={finding.check_kind} />
        <See trace={trace} finding={finding} />
      </dl>
      {isFurther && <Meaning id={finding.id} />}
    </div>
  );
}

function See({trace, finding}: {trace: TraceInfo; finding: Finding}): JSX.Element | null {
  const [showsAll, setShowsAll] = useState(false);
  const all = finding.evidence;
  if (all.length === 0) return null;
  const shown = showsAll || all.length <= EVIDENCE_SHOWN + 1 ? all : all.slice(0, EVIDENCE_SHOWN);
  return (
    <>
      <dt>See</dt>
      <dd class="evidence">
        {shown.map((evidence, index) => (
          <ViewLink
            key={index}
            class="evidence-link"
            testId="evidence"
            view={viewOfEvidence(trace, evidence)}
            title={`${evidence.track}: ${formatDuration(evidence.t1_ns - evidence.t0_ns)}`}
            onPress={() => void showEvidence(trace, evidence)}
          >
            {unbroken(evidence.text || evidence.track) || 'in the timeline'} <IconArrow />
          </ViewLink>
        ))}
        {shown.length < all.length && (
          <button type="button" class="plain-link muted" onClick={() => setShowsAll(true)}>
            {all.length - shown.length} more
          </button>
        )}
      </dd>
    </>
  );
}

interface PartProps {
  readonly name: string;
  readonly text: string;
  /** Code and commands are set as such and can be copied; anything else is read. */
  readonly kind?: Finding['change_kind'];
  readonly where?: string;
  readonly effort?: string;
}

function Part({name, text, kind, where = '', effort = ''}: PartProps): JSX.Element | null {
  if (text === '') return null;
  const isCopied = kind === 'code' || kind === 'command';
  return (
    <>
      <dt>{name}</dt>
      <dd>
        {where !== '' && !text.includes(where) && <code class="where">{where}</code>}
        {isCopied ? (
          <div class="code">
            <pre>{text}</pre>
            <CopyButton text={text} label={`Copy: ${name.toLowerCase()}`} />
          </div>
        ) : (
          <span class="part-text">{text}</span>
        )}
        {effort !== '' && <span class="tag">{effort}</span>}
      </dd>
    </>
  );
}

export function FurtherFindings(props: {
  trace: TraceInfo;
  /** What is repeated: "step", "batch" or "iteration". */
  unit: string;
  findings: readonly Finding[];
  smaller: readonly Finding[];
}): JSX.Element | null {
  const [showsAll, setShowsAll] = useState(false);
  if (props.findings.length === 0) return null;
  const shown = showsAll ? [...props.findings, ...props.smaller] : props.findings;
  return (
    <section class="further" aria-label="Further findings">
      <h2>Further findings</h2>
      {shown.map((finding, index) => (
        <details
          key={`${finding.id}/${index}`}
          class="further-item"
          id={findingAnchor(finding.id)}
          tabIndex={-1}
        >
          <summary>
            <span class="further-turn">
              <IconChevron />
            </span>
            <FindingChip finding={finding} />
            <span class="further-title">{unbroken(sentence(finding.title))}</span>
            {finding.severity === 'info' && finding.gain_pct?.mid === undefined && (
              <span class="tag">{word('severities', finding.severity).label}</span>
            )}
            {finding.cost_pct !== undefined && finding.cost_pct > 0 && (
              <span class="further-cost num" title="Share of the mean step that this costs">
                {formatPct(finding.cost_pct)} of the {props.unit}
              </span>
            )}
            <Gain finding={finding} />
          </summary>
          <FindingBody trace={props.trace} finding={finding} isFurther />
        </details>
      ))}
      {props.smaller.length > 0 && !showsAll && (
        <button type="button" class="button button-quiet" onClick={() => setShowsAll(true)}>
          Show {plural(props.smaller.length, 'smaller finding')}
        </button>
      )}
    </section>
  );
}
