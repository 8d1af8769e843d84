// The ranks of two runs: each before and after, and who is late.
import type {JSX} from 'preact';
import type {ComparedRun, Comparison} from '../api/types';
import {formatDuration, plural, sentence} from '../base/format';
import {compareA, compareB, DEFAULT_VIEW} from '../model/view_state';
import {Explain} from '../ui/explain';
import {ViewLink} from '../ui/link';

type Ranks = NonNullable<Comparison['ranks']>;

export function ComparedRanks({ranks}: {ranks: Ranks}): JSX.Element {
  // totals of recordings of different length cannot be compared
  const hasWaits = ranks.shared.some(
    rank =>
      rank.a_collective_wait_ns_per_step !== undefined ||
      rank.b_collective_wait_ns_per_step !== undefined,
  );
  return (
    <section class="panel ranks-panel" aria-labelledby="compared-ranks">
      <header class="panel-head">
        <h2 id="compared-ranks">Ranks before and after</h2>
        <span class="panel-aside faint">the other panels compare the lowest rank of each run</span>
      </header>
      <dl class="facts">
        <RunFacts letter="A" id={compareA.value} run={ranks.a} />
        <RunFacts letter="B" id={compareB.value} run={ranks.b} />
      </dl>
      {ranks.shared.length === 0 ? (
        <p class="muted">The runs have no rank in common.</p>
      ) : (
        <div class="ranks-scroll" role="region" aria-labelledby="compared-ranks" tabIndex={0}>
          <table class="ranks compared-ranks" data-testid="compared-ranks">
            <thead>
              <tr>
                <th scope="col">rank</th>
                <th scope="col" class="cell-num">
                  step
                </th>
                {hasWaits && (
                  <th scope="col" class="cell-num">
                    <Explain
                      title="Waits for other ranks"
                      text="Time in matched collectives beyond the shortest of each, divided by the steps of the trace."
                    >
                      waits for other ranks, per step
                    </Explain>
                  </th>
                )}
                <th scope="col">late</th>
              </tr>
            </thead>
            <tbody>
              {ranks.shared.map(rank => (
                <tr key={rank.rank} data-rank={rank.rank}>
                  <th scope="row">Rank {rank.rank}</th>
                  <td class="cell-num num">
                    <Pair a={rank.a_step_mean_ns} b={rank.b_step_mean_ns} />
                  </td>
                  {hasWaits && (
                    <td class="cell-num num">
                      <Pair
                        a={rank.a_collective_wait_ns_per_step}
                        b={rank.b_collective_wait_ns_per_step}
                      />
                    </td>
                  )}
                  <td>{lateIn(ranks, rank.rank)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function RunFacts(props: {letter: string; id: string; run: ComparedRun}): JSX.Element {
  const {run} = props;
  return (
    <>
      <dt>
        <ViewLink view={{...DEFAULT_VIEW, page: 'run', runId: props.id}}>
          Run {props.letter}
        </ViewLink>
      </dt>
      <dd>
        {plural(run.count, 'rank')}
        {run.text !== '' && `: ${sentence(run.text)}`}
      </dd>
    </>
  );
}

function Pair({a, b}: {a: number | undefined; b: number | undefined}): JSX.Element {
  const words = (ns: number | undefined): string => (ns === undefined ? '–' : formatDuration(ns));
  if (a === undefined && b === undefined) return <span class="faint">–</span>;
  return (
    <>
      {words(a)} → {words(b)}
    </>
  );
}

function lateIn(ranks: Ranks, rank: number): JSX.Element {
  const before = ranks.a.late_rank === rank;
  const after = ranks.b.late_rank === rank;
  if (!before && !after) return <span class="faint">–</span>;
  return (
    <span class="tag tag-late">
      {before && after ? 'before and after' : before ? 'before' : 'after'}
    </span>
  );
}
