// The journal: runs in a row, one change each, with what was predicted beside what came.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import {errorText, labelTrace, type Labels} from '../../api/client';
import {getJournal, type Journal, type JournalRun} from '../../api/project';
import {
  formatDuration,
  formatGain,
  formatGpuTime,
  formatNumber,
  formatPct,
  formatWhen,
  plural,
  rateUnit,
  sentence,
} from '../../base/format';
import {rungsOf, topOf} from '../../model/journal/ladder_chart';
import {DEFAULT_VIEW} from '../../model/view_state';
import {AXIS_PX, ChartPanel, useWidth} from '../../ui/chart_frame';
import {ViewLink} from '../../ui/link';
import {latest, useResource} from '../../ui/resource';
import {Empty, StandIn} from '../../ui/states';
import {Pending, useRounds} from './pending';

const HEIGHT = 220;
const LIMIT = 30;

export function JournalTab(props: {
  name: string;
  job: string | undefined;
  after: string | undefined;
  choose: (parts: Readonly<Record<string, string>>) => void;
}): JSX.Element {
  const {name, job, after, choose} = props;
  const {round, again} = useRounds();
  const reply = useResource(`${name}\n${job ?? ''}\n${after ?? ''}\n${round}`, s =>
    getJournal(name, {job, after, limit: LIMIT}, s),
  );
  const journal = latest(reply);
  if (!journal) return <StandIn of={reply} what="the journal" />;
  if (journal.run_count === 0)
    return (
      <>
        <Pending count={journal.pending} again={again} />
        <Empty title="No runs yet">
          Give traces this project (in the list, or with <code>lacuna run --project</code>), and
          they stand here in order.
        </Empty>
      </>
    );
  return (
    <>
      {journal.jobs.length > 1 && (
        <label class="project-choice">
          Job{' '}
          <select
            class="input"
            value={journal.job}
            onChange={event => choose({job: event.currentTarget.value, after: ''})}
          >
            {journal.jobs.map(each => (
              <option key={each.name} value={each.name}>
                {each.name === '' ? 'not recorded' : each.name} ({each.run_count})
              </option>
            ))}
          </select>
        </label>
      )}
      <LadderChart runs={[...journal.runs].reverse()} />
      <Summary journal={journal} />
      <Pending count={journal.pending} again={again} />
      <ol class="journal-runs" reversed>
        {journal.runs.map(run => (
          <RunRow key={run.trace} run={run} changed={again} />
        ))}
      </ol>
      <p class="project-pages">
        {after !== undefined && (
          <button type="button" class="button" onClick={() => choose({after: ''})}>
            Newest
          </button>
        )}
        {journal.next !== undefined && (
          <button type="button" class="button" onClick={() => choose({after: journal.next ?? ''})}>
            Older runs
          </button>
        )}
      </p>
    </>
  );
}

function LadderChart({runs}: {runs: readonly JournalRun[]}): JSX.Element | null {
  const box = useWidth();
  const {width} = box;
  const rungs = rungsOf(runs);
  const top = topOf(rungs) * 1.08;
  const unit = runs.find(run => run.throughput_unit !== undefined)?.throughput_unit ?? 'steps';
  if (top <= 0) return null;
  const room = (width - AXIS_PX) / runs.length;
  const x = (i: number): number => AXIS_PX + i * room;
  const y = (value: number): number => HEIGHT - (HEIGHT * value) / top;
  const busy = rungs
    .map((rung, i) =>
      rung.computingPct === undefined
        ? ''
        : `${(x(i) + room / 2).toFixed(1)} ${(HEIGHT - (HEIGHT * rung.computingPct) / 100).toFixed(1)}`,
    )
    .filter(point => point !== '')
    .join('L');
  return (
    <ChartPanel
      id="ladder-chart"
      title="Throughput, run by run"
      aside={rateUnit(unit)}
      box={box}
      plot={{height: HEIGHT, above: 14, below: 20, top, format: value => formatNumber(value, 3)}}
      label={`Throughput of ${plural(runs.length, 'run')}, oldest first`}
      note={
        <p class="chart-legend">
          <span>
            <i class="chart-key ladder-key" /> achieved
          </span>
          <span>
            <i class="chart-key ladder-key-predicted" /> predicted band
          </span>
          {busy.includes('L') && (
            <span>
              <i class="chart-key ladder-key-busy" /> computing, 0 to 100 %
            </span>
          )}
        </p>
      }
    >
      {busy.includes('L') && <path class="ladder-busy" d={`M${busy}`} />}
      {rungs.map((rung, i) => {
        const before = rungs[i - 1]?.perS;
        const {perS, predicted} = rung;
        return (
          <g key={runs[i]?.trace}>
            {predicted && (
              <g class={rung.isWithin ? 'ladder-predicted' : 'ladder-missed'}>
                <rect
                  x={x(i) + room * 0.08}
                  width={room * 0.84}
                  y={y(predicted.high) - 3}
                  height={Math.max(6, y(predicted.low) - y(predicted.high) + 6)}
                  rx={3}
                />
              </g>
            )}
            {perS !== undefined && before !== undefined && (
              <line class="ladder-riser" x1={x(i)} x2={x(i)} y1={y(before)} y2={y(perS)} />
            )}
            {perS !== undefined && (
              <>
                <line
                  class={
                    runs[i]?.regression?.lasting ? 'ladder-tread ladder-slower' : 'ladder-tread'
                  }
                  x1={x(i)}
                  x2={x(i) + room}
                  y1={y(perS)}
                  y2={y(perS)}
                />
                {room > 34 && (
                  <text x={x(i) + room / 2} y={y(perS) - 7} text-anchor="middle">
                    {formatNumber(perS, 3)}
                  </text>
                )}
              </>
            )}
            {room > 70 && (
              <text class="ladder-name" x={x(i) + room / 2} y={HEIGHT + 15} text-anchor="middle">
                {cut(runs[i]?.name ?? '', Math.floor(room / 7))}
              </text>
            )}
          </g>
        );
      })}
    </ChartPanel>
  );
}

const cut = (text: string, length: number): string =>
  text.length > length ? `${text.slice(0, Math.max(1, length - 1))}…` : text;

function Summary({journal}: {journal: Journal}): JSX.Element {
  const {next_change: next, stop, saved_pct: saved} = journal;
  const band = next?.calibrated_pct;
  return (
    <div class="journal-summary" data-testid="journal-summary">
      {saved !== undefined && (
        <p>
          <strong class="num">{formatPct(saved)}</strong>{' '}
          {saved >= 0 ? 'of the GPU hours per epoch saved' : 'more GPU hours per epoch'} since the
          first run
        </p>
      )}
      <p class="muted">{sentence(journal.calibration.text)}.</p>
      {next && stop?.verdict === 'go_on' ? (
        <p>
          Next best change:{' '}
          <ViewLink view={{...DEFAULT_VIEW, page: 'overview', traceId: next.trace}}>
            {next.text || next.finding}
          </ViewLink>
          {band?.mid !== undefined && (
            <>
              , {formatGain(band.mid).mid} ({formatPct(band.low ?? 0)} to{' '}
              {formatPct(band.high ?? 0)} of the step)
            </>
          )}
        </p>
      ) : (
        stop && stop.text !== '' && <p>{stop.text}</p>
      )}
    </div>
  );
}

function RunRow({run, changed}: {run: JournalRun; changed: () => void}): JSX.Element {
  const [isEdited, setEdited] = useState(false);
  const [problem, setProblem] = useState('');
  const set = async (labels: Labels): Promise<void> => {
    try {
      await labelTrace(run.trace, labels);
      setProblem('');
      changed();
    } catch (error) {
      setProblem(sentence(errorText(error)));
    }
  };
  const compared = run.from_previous;
  return (
    <li class="journal-run" data-testid="journal-run">
      <div class="journal-head">
        <ViewLink view={{...DEFAULT_VIEW, page: 'overview', traceId: run.trace}}>
          {run.name}
        </ViewLink>
        {run.baseline && <span class="tag">baseline</span>}
        {run.pinned && <span class="tag">pinned</span>}
        {run.is_simulated && <span class="tag tag-simulated">sim</span>}
        <Regression run={run} />
        <span class="muted">{formatWhen(run.recorded_at, new Date())}</span>
        <span class="journal-tools">
          {compared && (
            <ViewLink
              class="button button-quiet"
              view={{
                ...DEFAULT_VIEW,
                page: 'compare',
                compareA: compared.trace,
                compareB: run.trace,
              }}
            >
              Compare
            </ViewLink>
          )}
          <button type="button" class="button button-quiet" onClick={() => setEdited(!isEdited)}>
            Note
          </button>
          <button
            type="button"
            class="button button-quiet"
            title="Later runs are compared with the baseline"
            aria-pressed={run.baseline}
            onClick={() => void set({baseline: !run.baseline})}
          >
            Baseline
          </button>
          <button
            type="button"
            class="button button-quiet"
            title="Pinned traces outlive the retention time"
            aria-pressed={run.pinned}
            onClick={() => void set({pinned: !run.pinned})}
          >
            Pin
          </button>
        </span>
      </div>
      {run.notes !== undefined && run.notes !== '' && !isEdited && (
        <p class="journal-note">{run.notes}</p>
      )}
      {isEdited && (
        <NoteEditor
          run={run}
          save={async labels => {
            await set(labels);
            setEdited(false);
          }}
          close={() => setEdited(false)}
        />
      )}
      {problem !== '' && (
        <p class="journal-problem" role="alert">
          {problem}
        </p>
      )}
      <Changed run={run} />
      <Numbers run={run} />
    </li>
  );
}

/** Slowdowns up to that are expected to be found. */
const NOISY_PCT = 5;

function Regression({run}: {run: JournalRun}): JSX.Element | null {
  const it = run.regression;
  if (it?.verdict === 'none' && (it.visible_pct ?? 0) > NOISY_PCT)
    return (
      <span
        class="tag"
        title="Noisy steps, short recordings and few runs in the baseline hide small slowdowns: longer recordings and more runs show them."
      >
        no slowdown seen; one below {formatPct(it.visible_pct ?? 0)} may hide in the noise
      </span>
    );
  const slow = it?.lasting;
  if (!it || (!slow && it.verdict !== 'slower' && it.verdict !== 'faster')) return null;
  const sure = formatPct(100 * ((slow ?? it).confidence ?? 0));
  return (
    <span
      class={slow ? 'tag journal-slower' : 'tag'}
      title={`against the baseline and ${plural(Math.max(0, it.baseline_count - 1), 'run')} like it; confidence ${sure}${it.same_settings ? ', same settings' : ', other settings'}`}
    >
      {slow ? 'regression: ' : ''}
      {slow && slow.run_count > 1 ? `${slow.run_count} runs ` : ''}
      {formatPct(Math.abs((slow ?? it).change_pct ?? 0))} {slow ? 'slower' : it.verdict} than the
      baseline, {sure} sure
    </span>
  );
}

function NoteEditor(props: {
  run: JournalRun;
  save: (labels: Labels) => Promise<void>;
  close: () => void;
}): JSX.Element {
  const {run} = props;
  const [name, setName] = useState(run.name);
  const [why, setWhy] = useState(run.notes ?? '');
  return (
    <form
      class="journal-editor"
      aria-label={`Note of ${run.name}`}
      onSubmit={event => {
        event.preventDefault();
        void props.save({
          ...(name.trim() === run.name ? {} : {name: name.trim()}),
          notes: why.trim(),
        });
      }}
      onKeyDown={event => {
        if (event.key === 'Escape') props.close();
      }}
    >
      <label>
        Name
        <input
          class="input"
          value={name}
          maxLength={200}
          onInput={event => setName(event.currentTarget.value)}
        />
      </label>
      <label>
        Why
        <textarea
          class="input"
          rows={2}
          value={why}
          maxLength={2000}
          onInput={event => setWhy(event.currentTarget.value)}
        />
      </label>
      <button type="submit" class="button">
        Save
      </button>
    </form>
  );
}

function Changed({run}: {run: JournalRun}): JSX.Element {
  const compared = run.from_previous;
  if (run.is_first) return <p class="muted">The first run of this job.</p>;
  if (!compared) return <p class="muted">Not compared with the run before it yet.</p>;
  const {prediction, result} = compared;
  const several = compared.change_count > 1 && !compared.is_one_change;
  if (compared.verdict === 'unknown')
    return (
      <p class="journal-changed">
        {`Not compared with the run before it: ${compared.why_not}. A is that run, B this one.`}
      </p>
    );
  return (
    <div class="journal-changed">
      <p class={several ? 'journal-several' : ''}>
        {compared.why_not !== ''
          ? sentence(compared.why_not)
          : sentence(compared.changed === '' ? 'no recorded setting changed' : compared.changed)}
      </p>
      {prediction && (
        <p class={prediction.is_within ? '' : 'journal-missed'}>{sentence(prediction.text)}.</p>
      )}
      {!prediction && compared.headline !== '' && <p>{sentence(compared.headline)}.</p>}
      {result?.is_known && (
        <p class={result.is_same === false ? 'journal-missed' : 'muted'}>
          {result.is_same ? 'Same result: ' : 'Another result: '}
          {result.text}
        </p>
      )}
    </div>
  );
}

function Numbers({run}: {run: JournalRun}): JSX.Element {
  const unit = run.throughput_unit ?? 'steps';
  const rows: readonly (readonly [string, string | undefined])[] = /* text */ [
    [
      'throughput',
      run.throughput_per_s === undefined
        ? undefined
        : `${formatNumber(run.throughput_per_s)} ${rateUnit(unit)}`,
    ],
    ['step', run.step_mean_ns === undefined ? undefined : formatDuration(run.step_mean_ns)],
    [
      'not computing',
      run.not_computing_pct === undefined ? undefined : formatPct(run.not_computing_pct),
    ],
    [
      'GPU time wasted',
      run.gpu_hours_wasted === undefined || run.gpu_hours === undefined
        ? undefined
        : `${formatGpuTime(run.gpu_hours_wasted)} of ${formatGpuTime(run.gpu_hours)} recorded`,
    ],
    [
      'energy',
      run.energy_j === undefined ? undefined : `${formatNumber(run.energy_j / 3.6e6, 3)} kWh`,
    ],
    ['model FLOP/s used', run.mfu_pct === undefined ? undefined : formatPct(run.mfu_pct)],
    ...(run.facts?.metrics ?? []).map(
      metric =>
        [
          metric.name,
          metric.last === undefined
            ? undefined
            : `${formatNumber(metric.last, 4)}${metric.best === undefined || metric.best === metric.last ? '' : ` (best ${formatNumber(metric.best, 4)})`}`,
        ] as const,
    ),
    ['by', run.person],
    ['commit', run.facts?.commit?.slice(0, 12)],
  ];
  return (
    <dl class="journal-numbers num">
      {rows
        .filter(([, value]) => value !== undefined)
        .map(([label, value]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}
