// Forward and backward of an operator, by autograd's sequence number: asked for when it is wanted,
// since all operators are read for it.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import {errorText} from '../api/client';
import {askSql} from '../api/sql';
import type {SliceInfo} from '../api/types';
import {formatDuration} from '../base/format';
import {otherPass, passQuery, sequenceOf, type PassRow} from '../model/sql/passes';
import {ViewLink} from '../ui/link';
import type {TimelineModel} from './data/timeline_model';
import {Fact} from './details_parts';

const SHOWN = 8;

export function ForwardBackward(props: {
  model: TimelineModel;
  slice: SliceInfo;
}): JSX.Element | null {
  const {model, slice} = props;
  const sequence = sequenceOf(slice.args);
  const [rows, setRows] = useState<readonly PassRow[]>();
  const [failure, setFailure] = useState('');
  const [asked, setAsked] = useState(false);
  if (sequence === undefined) return null;
  const ask = (): void => {
    setAsked(true);
    askSql(model.trace.id, passQuery(sequence), 100).then(
      reply => setRows(otherPass(reply.rows, slice.id)),
      (error: unknown) => setFailure(errorText(error)),
    );
  };
  return (
    <Fact name="forward, backward">
      {rows === undefined ? (
        <button type="button" class="tl-button" disabled={asked && failure === ''} onClick={ask}>
          find by sequence number {sequence}
        </button>
      ) : rows.length === 0 ? (
        'no other pass was recorded'
      ) : (
        <span class="tl-chain">
          {rows.slice(0, SHOWN).map(row => (
            <ViewLink
              key={row.slice}
              view={{selection: {kind: 'slice', slice: row.slice}}}
              title={`${row.isBackward ? 'backward' : 'forward'}, ${formatDuration(row.durNs)}`}
            >
              {row.isBackward ? 'backward: ' : 'forward: '}
              {row.name}
            </ViewLink>
          ))}
        </span>
      )}
      {failure !== '' && <span class="tl-muted"> {failure}</span>}
    </Fact>
  );
}
