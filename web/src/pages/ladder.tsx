// What to change, in order, with the step time that each change leaves: every rung leads to its
// finding.
import type {JSX} from 'preact';
import {useEffect} from 'preact/hooks';
import type {Analysis} from '../api/types';
import {formatFromTo, formatGain, sentence} from '../base/format';
import {ladderOf} from '../model/overview_charts';
import {decode, DEFAULT_VIEW} from '../model/view_state';
import {ViewLink} from '../ui/link';

/** Id of the element that holds a finding of this page. */
export const findingAnchor = (id: string): string => `finding-${id}`;

/** Opens the card of a finding and goes there. */
function toFinding(anchor: string): void {
  const card = document.getElementById(anchor);
  if (card instanceof HTMLDetailsElement) card.open = true;
  card?.scrollIntoView({block: 'center'});
  card?.focus();
}

export function Ladder({analysis}: {analysis: Analysis}): JSX.Element | null {
  const rungs = ladderOf(analysis);
  // cards come after the address was read
  useEffect(() => toFinding(decode(location.hash.slice(1)) ?? ''), []);
  if (rungs.length === 0) return null;
  const last = rungs[rungs.length - 1];
  const first = rungs[0];
  const whole = first && last ? 100 * (1 - last.toNs / first.fromNs) : 0;
  return (
    <nav class="ladder" aria-label="What to change, in this order" data-testid="ladder">
      <ol>
        {rungs.map((rung, index) => {
          const {findingId} = rung;
          const words = (
            <>
              <span class="rung-brief">{sentence(rung.brief)}</span>
              <span class="rung-gain num">
                {formatGain(rung.gainPct).mid}{' '}
                <span class="muted">({formatFromTo(rung.fromNs, rung.gainPct)})</span>
              </span>
            </>
          );
          return (
            <li key={rung.brief}>
              <span class="rung-number num">{index + 1}</span>
              {findingId !== undefined ? (
                <a
                  href={`#${findingAnchor(findingId)}`}
                  onClick={event => {
                    event.preventDefault();
                    toFinding(findingAnchor(findingId));
                  }}
                >
                  {words}
                </a>
              ) : (
                <ViewLink view={{...DEFAULT_VIEW, page: 'findings'}} title="What findings mean">
                  {words}
                </ViewLink>
              )}
            </li>
          );
        })}
      </ol>
      {rungs.length > 1 && (
        <p class="ladder-sum num">
          All {rungs.length}: {formatGain(whole).mid} ({formatFromTo(first?.fromNs, whole)})
        </p>
      )}
    </nav>
  );
}
