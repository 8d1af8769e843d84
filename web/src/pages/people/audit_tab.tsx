// Who did what, the latest first.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import {getAudit} from '../../api/people';
import {latest, useResource} from '../../ui/resource';
import {Empty, StandIn} from '../../ui/states';

export function AuditTab(): JSX.Element {
  const [after, setAfter] = useState<string | undefined>(undefined);
  const reply = useResource(`audit/${after ?? ''}`, s => getAudit(after, s));
  const shown = latest(reply);
  if (!shown) return <StandIn of={reply} what="the audit" />;
  if (shown.audit.length === 0) return <Empty title="No entries yet" />;
  const {next} = shown;
  return (
    <>
      <div class="people-scroll">
        <table class="people-table" data-testid="audit">
          <thead>
            <tr>
              <th>When</th>
              <th>Who</th>
              <th>Action</th>
              <th>Of what</th>
            </tr>
          </thead>
          <tbody>
            {shown.audit.map(row => (
              <tr key={row.id}>
                <td class="num people-when">
                  <time dateTime={row.at}>{row.at.replace('T', ' ').slice(0, 19)}</time>
                </td>
                <td class="break">{row.actor}</td>
                <td>{row.action.replaceAll('-', ' ')}</td>
                <td class="break">{row.object}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="project-pages">
        {after !== undefined && (
          <button type="button" class="button" onClick={() => setAfter(undefined)}>
            Newest
          </button>
        )}
        {next !== undefined && (
          <button type="button" class="button" onClick={() => setAfter(next)}>
            Older
          </button>
        )}
        <span class="muted">Times are UTC.</span>
      </p>
    </>
  );
}
