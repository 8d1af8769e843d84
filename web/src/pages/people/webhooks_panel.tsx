// Where a project's news go: addresses, what each is told, and what came of it.
import type {JSX} from 'preact';
import {useEffect, useState} from 'preact/hooks';
import {ApiError} from '../../api/client';
import {addWebhook, endWebhook, getWebhooks, testWebhook, type Webhook} from '../../api/webhooks';
import {formatWhen} from '../../base/format';
import {CopyButton} from '../../ui/copy_button';
import {latest, useResource} from '../../ui/resource';
import {Empty, StandIn} from '../../ui/states';
import {Problem, SureButton, useAct} from './act';

const EVENT_TEXT: Readonly<Record<string, string>> = {
  'trace.ready': 'a trace is ready',
  'trace.failed': 'a trace cannot be read',
  'run.regression': 'a run is slower than the baseline',
  'run.hang': 'a job hangs',
  'run.resumed': 'it goes on',
  'report.published': 'a report is published',
  'report.comment': 'a comment',
  'report.mention': 'somebody is mentioned',
};
const FORM_TEXT: Readonly<Record<string, string>> = {
  json: 'JSON, signed',
  slack: 'Slack, Mattermost',
};
/** While news wait the list is asked again, so often at most. */
const ROUNDS_MAX = 40;
const ROUND_MS = 1500;

const eventText = (event: string): string => EVENT_TEXT[event] ?? event;

/** Who may not administer the project has no such panel. */
async function webhooksOf(
  project: string,
  signal: AbortSignal,
): Promise<Awaited<ReturnType<typeof getWebhooks>> | 'hidden'> {
  try {
    return await getWebhooks(project, signal);
  } catch (error) {
    if (error instanceof ApiError && error.status === 403) return 'hidden';
    throw error;
  }
}

export function WebhooksPanel({name}: {name: string}): JSX.Element | null {
  const [round, setRound] = useState(0);
  const [asked, setAsked] = useState(0);
  const reply = useResource(`${name}/${round}`, signal => webhooksOf(name, signal));
  const shown = latest(reply);
  const isHidden = shown === 'hidden';
  const isWaiting =
    shown && !isHidden ? shown.webhooks.some(each => each.waiting_count > 0) : false;
  useEffect(() => {
    if (reply.kind !== 'ready' || !isWaiting || asked >= ROUNDS_MAX) return undefined;
    const timer = setTimeout(() => {
      setAsked(asked + 1);
      setRound(before => before + 1);
    }, ROUND_MS);
    return () => clearTimeout(timer);
  }, [round, reply.kind, isWaiting]);
  const again = (): void => {
    setAsked(0);
    setRound(before => before + 1);
  };
  if (isHidden) return null;
  return (
    <section class="panel" data-testid="webhooks">
      <h2>Webhooks</h2>
      <p class="people-about">
        Events of this project are sent to these addresses as they happen, with up to eight attempts
        each. An address inside a private network needs{' '}
        <code>lacuna serve --webhook-allow NETWORK</code>.
      </p>
      <StandIn keeps of={reply} what="the webhooks" />
      {shown && (
        <>
          {shown.webhooks.length === 0 && <Empty title="No webhooks" />}
          {shown.webhooks.length > 0 && (
            <Rows
              project={name}
              rows={shown.webhooks}
              eventCount={shown.events.length}
              changed={again}
            />
          )}
          <NewWebhook project={name} events={shown.events} changed={again} />
        </>
      )}
    </section>
  );
}

function Rows(props: {
  project: string;
  rows: readonly Webhook[];
  eventCount: number;
  changed: () => void;
}): JSX.Element {
  return (
    <div class="people-scroll">
      <table class="people-table">
        <thead>
          <tr>
            <th>Address</th>
            <th>Form</th>
            <th>Events</th>
            <th>By</th>
            <th>Outcome</th>
            <td />
          </tr>
        </thead>
        <tbody>
          {props.rows.map(row => (
            <Row
              key={row.id}
              project={props.project}
              row={row}
              isAll={row.events.length === props.eventCount}
              changed={props.changed}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** "3 delivered, 1 waiting" */
function outcome(row: Webhook): string {
  const parts = [`${row.delivered_count} delivered`];
  if (row.waiting_count > 0) parts.push(`${row.waiting_count} waiting`);
  if (row.failed_count > 0) parts.push(`${row.failed_count} given up`);
  return parts.join(', ');
}

function Row(props: {
  project: string;
  row: Webhook;
  isAll: boolean;
  changed: () => void;
}): JSX.Element {
  const {project, row, changed} = props;
  const {act, isBusy, problem} = useAct();
  return (
    <tr>
      <td class="break">{row.url}</td>
      <td>{FORM_TEXT[row.form] ?? row.form}</td>
      <td>{props.isAll ? 'everything' : row.events.map(eventText).join(', ')}</td>
      <td class="break">{row.author}</td>
      <td>
        {outcome(row)}
        {row.last_at !== undefined && (
          <div class="muted">
            last {formatWhen(row.last_at, new Date())}
            {row.last_status !== undefined && row.last_status > 0 ? `: ${row.last_status}` : ''}
          </div>
        )}
        {row.problem !== undefined && <div class="error-text break">{row.problem}</div>}
      </td>
      <td>
        <button
          type="button"
          class="button button-quiet"
          disabled={isBusy}
          onClick={() => act(() => testWebhook(project, row.id), changed)}
        >
          Send a test
        </button>
        <SureButton
          label="Remove"
          sure="Remove permanently"
          isBusy={isBusy}
          onClick={() => act(() => endWebhook(project, row.id), changed)}
        />
        <Problem text={problem} />
      </td>
    </tr>
  );
}

function NewWebhook(props: {
  project: string;
  events: readonly string[];
  changed: () => void;
}): JSX.Element {
  const [url, setUrl] = useState('');
  const [form, setForm] = useState('json');
  const [leftOut, setLeftOut] = useState<readonly string[]>([]);
  const [secret, setSecret] = useState('');
  const {act, isBusy, problem} = useAct();
  const events = props.events.filter(each => !leftOut.includes(each));
  const send = async (): Promise<void> => {
    const made = await addWebhook(props.project, {url: url.trim(), form, events: events.join(' ')});
    setSecret(form === 'slack' ? '' : made.secret);
  };
  return (
    <>
      <form
        class="people-form"
        aria-label="Add a webhook"
        onSubmit={event => {
          event.preventDefault();
          act(send, () => {
            setUrl('');
            props.changed();
          });
        }}
      >
        <label class="people-wide">
          Address
          <input
            class="input"
            type="url"
            required
            maxLength={1000}
            autocomplete="off"
            placeholder="a URL that accepts POST"
            value={url}
            onInput={event => setUrl(event.currentTarget.value)}
          />
        </label>
        <label>
          Form
          <select class="input" value={form} onChange={event => setForm(event.currentTarget.value)}>
            {Object.entries(FORM_TEXT).map(([id, text]) => (
              <option key={id} value={id}>
                {text}
              </option>
            ))}
          </select>
        </label>
        <fieldset class="people-wide people-checks">
          <legend>Events</legend>
          {props.events.map(each => (
            <label class="check" key={each}>
              <input
                type="checkbox"
                checked={!leftOut.includes(each)}
                onChange={() =>
                  setLeftOut(
                    leftOut.includes(each)
                      ? leftOut.filter(other => other !== each)
                      : [...leftOut, each],
                  )
                }
              />
              <span>{eventText(each)}</span>
            </label>
          ))}
        </fieldset>
        <button type="submit" class="button" disabled={isBusy || events.length === 0}>
          Add
        </button>
        <Problem text={problem} />
      </form>
      {secret !== '' && (
        <p class="people-secret" role="status">
          <input class="input" aria-label="The secret" readOnly value={secret} />
          <CopyButton text={secret} label="Copy the secret" />
          <span class="muted">
            Deliveries are signed with this key, in <code>Lacuna-Signature</code>. It is shown only
            once: copy it now.
          </span>
        </p>
      )}
    </>
  );
}
