// The job besides its training steps: a band of the whole recording, and one line per kind of step.
import type {JSX} from 'preact';
import type {Analysis} from '../api/types';
import {exactNs, formatDuration, formatPct, sentence} from '../base/format';
import {kindLines, phaseMarks, type PhaseMark} from '../model/phases';
import {Explain} from '../ui/explain';

const HEIGHT = 12;
/** A mark is never too narrow to be seen. */
const WIDTH_MIN = 0.4;

export function PhasesPanel({analysis}: {analysis: Analysis}): JSX.Element | null {
  const marks = phaseMarks(analysis);
  const lines = kindLines(analysis);
  if (lines.length === 0) return null;
  return (
    <section class="panel" aria-labelledby="phases-title" data-testid="phases">
      <header class="panel-head">
        <h2 id="phases-title">Besides training</h2>
        <span class="panel-aside">whole recording</span>
      </header>
      <Band marks={marks} />
      <ul class="notes phase-lines">
        {lines.map(line => (
          <li key={line.text}>
            <Explain title="Evidence" text={sentence(line.why)} exact={exactNs(line.ownNs)}>
              {sentence(line.text)}
            </Explain>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Band({marks}: {marks: readonly PhaseMark[]}): JSX.Element {
  return (
    <svg
      class="device-bar phase-band"
      height={HEIGHT}
      role="img"
      aria-label={`Phases besides training:  ${marks.map(mark => `${mark.label} ${formatPct(mark.percent)}`).join(', ')}`}
    >
      <rect class="phase-training" width="100%" height={HEIGHT} />
      {marks.map(mark => (
        <rect
          key={mark.start}
          class="phase-beside"
          x={`${mark.start}%`}
          width={`${Math.max(mark.percent, WIDTH_MIN)}%`}
          height={HEIGHT}
        >
          <title>{`${mark.label}: ${formatDuration(mark.durNs)}`}</title>
        </rect>
      ))}
    </svg>
  );
}
