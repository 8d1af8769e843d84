// What the job did besides its steps: kinds of steps, and the phases of the whole recording.
import type {Analysis} from '../api/types';
import {word} from '../base/vocabulary';

/** The training itself and its edges are not drawn. */
const NOT_DRAWN: ReadonlySet<string> = new Set(['start_up', 'training', 'steps', 'end']);

/** Percent of the recording below which a stretch has no pixel. */
const DRAWN_MIN = 0.1;
/** Percent below which a kind of step is not worth a line. */
const SAID_MIN = 1;

export interface PhaseMark {
  readonly name: string;
  readonly label: string;
  readonly start: number;
  readonly percent: number;
  readonly durNs: number;
}

/** What is not training, and where it is in the recording; both in percent. */
export function phaseMarks(analysis: Analysis): readonly PhaseMark[] {
  const wholeNs = analysis.phases.reduce((sum, phase) => sum + phase.dur_ns, 0);
  return analysis.phases.flatMap(phase => {
    const percent = (100 * phase.dur_ns) / wholeNs;
    return NOT_DRAWN.has(phase.name) || !(percent >= DRAWN_MIN)
      ? []
      : [
          {
            name: phase.name,
            label: word('phases', phase.name).label,
            start: (100 * phase.start_ns) / wholeNs,
            percent,
            durNs: phase.dur_ns,
          },
        ];
  });
}

export interface KindLine {
  readonly text: string;
  readonly why: string;
  readonly ownNs: number;
}

/** One line per kind of step that is not training. */
export function kindLines(analysis: Analysis): readonly KindLine[] {
  const wholeNs = analysis.phases.reduce((sum, phase) => sum + phase.dur_ns, 0);
  return analysis.steps.kinds
    .filter(kind => kind.text !== '' && 100 * kind.own_ns >= SAID_MIN * wholeNs)
    .map(kind => ({text: kind.text, why: kind.why, ownNs: kind.own_ns}));
}
