// A cause on screen: its letter on its color, or its color with its pattern.
import type {JSX} from 'preact';
import {CAUSES, CAUSE_STYLES, causeWord, isCause, type Cause, type Stroke} from '../base/causes';
import {words} from '../base/vocabulary';

/** What a verdict or a finding is about: a cause of waiting, or something else with its letter. */
export interface Topic {
  readonly letter: string;
  readonly cause: Cause | undefined;
  readonly label: string;
}

export function topicOf(cause: string, letter?: string): Topic {
  // a verdict may name what there is to see and yet be about something else: its letter says so
  if (isCause(cause) && (!letter || letter === causeWord(cause).letter)) {
    const {letter: own, label} = causeWord(cause);
    return {letter: own, cause, label};
  }
  const shown = letter?.slice(0, 1) || (cause === 'gpu' ? 'G' : '~');
  const limit = words('limits').find(word => word.letter === shown);
  return {letter: shown, cause: undefined, label: limit?.label ?? cause};
}

export function Chip({topic, large = false}: {topic: Topic; large?: boolean}): JSX.Element {
  return (
    <span
      class={`chip ${large ? 'chip-large' : ''} ${topic.cause ? `cause-${topic.cause}` : 'chip-plain'}`}
      title={topic.label}
      role="img"
      aria-label={topic.label}
    >
      {topic.letter}
    </span>
  );
}

export function patternUrl(cause: Cause): string {
  return `url(#pattern-${cause})`;
}

function strokePath(strokes: readonly Stroke[]): string {
  return strokes.map(([x0, y0, x1, y1]) => `M${x0} ${y0}L${x1} ${y1}`).join('');
}

/** The patterns, once in the document; others refer to them by id. */
export function PatternDefs(): JSX.Element {
  return (
    <svg class="pattern-defs" width="0" height="0" aria-hidden="true" focusable="false">
      <defs>
        {CAUSES.map(cause => (
          <pattern
            key={cause}
            id={`pattern-${cause}`}
            width="8"
            height="8"
            patternUnits="userSpaceOnUse"
          >
            <path
              class={`pattern-stroke on-${cause}`}
              d={strokePath(CAUSE_STYLES[cause].strokes)}
            />
          </pattern>
        ))}
      </defs>
    </svg>
  );
}

export function Swatch({cause}: {cause: Cause}): JSX.Element {
  return (
    <svg class="swatch" width="14" height="14" aria-hidden="true">
      <rect class={`fill-${cause}`} width="14" height="14" rx="3" />
      <rect width="14" height="14" rx="3" fill={patternUrl(cause)} />
    </svg>
  );
}
