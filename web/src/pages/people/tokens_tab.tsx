// Tokens: for scripts and nodes. A new one is shown once; each has its end and its last use.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import {endToken, getTokens, makeToken, type Token, type Who} from '../../api/people';
import {formatWhen} from '../../base/format';
import {CopyButton} from '../../ui/copy_button';
import {latest, useResource} from '../../ui/resource';
import {Empty, StandIn} from '../../ui/states';
import {Problem, SureButton, useAct} from './act';

const DAY_MS = 86400000;
const SCOPES = [
  {id: 'upload', label: 'upload: add traces, read nothing'},
  {id: 'read', label: 'read'},
  {id: 'write', label: 'write: read, upload, change and delete'},
  {id: 'admin', label: 'admin: all that you may do'},
];
const ENDS = [
  {label: 'in a month', days: 31},
  {label: 'in three months', days: 92},
  {label: 'in a year', days: 366},
  {label: 'never', days: 0},
];

export function TokensTab({who}: {who: Who}): JSX.Element {
  const [round, setRound] = useState(0);
  const reply = useResource(`tokens/${round}`, getTokens);
  const again = (): void => setRound(before => before + 1);
  const rows = latest(reply)?.tokens;
  return (
    <>
      <p class="people-about">
        A token lets a script or a node do what its scope says, and no more than you can. Put it
        into a file that only its owner can read: <code>lacuna push --token-file FILE</code>.
      </p>
      <NewToken who={who} made={again} />
      <StandIn keeps of={reply} what="the tokens" />
      {rows && rows.length === 0 && <Empty title="No tokens" />}
      {rows && rows.length > 0 && (
        <div class="people-scroll">
          <table class="people-table" data-testid="tokens">
            <thead>
              <tr>
                <th>Name</th>
                <th>Scope</th>
                <th>Project</th>
                <th>Of</th>
                <th>Made</th>
                <th>Ends</th>
                <th>Last used</th>
                <td />
              </tr>
            </thead>
            <tbody>
              {rows.map(row => (
                <TokenRow key={row.id} row={row} changed={again} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

const when = (iso: string | undefined, none: string): string =>
  iso === undefined ? none : formatWhen(iso, new Date());

function TokenRow({row, changed}: {row: Token; changed: () => void}): JSX.Element {
  const {act, isBusy, problem} = useAct();
  const isOver = row.expires_at !== undefined && Date.parse(row.expires_at) <= Date.now();
  return (
    <tr class={isOver ? 'faint' : ''}>
      <td class="break">{row.name}</td>
      <td>{row.scope}</td>
      <td class="break">{row.project ?? 'any'}</td>
      <td class="break">{row.user}</td>
      <td>{when(row.created_at, '')}</td>
      <td>{(isOver ? 'ended ' : '') + when(row.expires_at, 'never')}</td>
      <td>{when(row.last_used_at, 'never')}</td>
      <td>
        <SureButton
          label="Revoke"
          sure="Revoke for good"
          isBusy={isBusy}
          onClick={() => act(() => endToken(row.id), changed)}
        />
        <Problem text={problem} />
      </td>
    </tr>
  );
}

function NewToken({who, made}: {who: Who; made: () => void}): JSX.Element {
  const [name, setName] = useState('');
  const [scope, setScope] = useState('upload');
  const [project, setProject] = useState('');
  const [days, setDays] = useState(92);
  const [secret, setSecret] = useState('');
  const {act, isBusy, problem} = useAct();
  const send = async (): Promise<void> => {
    const ends = new Date(Date.now() + days * DAY_MS).toISOString().slice(0, 19);
    const reply = await makeToken({
      name: name.trim(),
      scope,
      ...(project === '' ? {} : {project}),
      ...(days === 0 ? {} : {expires_at: `${ends}Z`}),
    });
    setSecret(reply.token);
  };
  return (
    <>
      <form
        class="people-form"
        aria-label="New token"
        onSubmit={event => {
          event.preventDefault();
          act(send, () => {
            setName('');
            made();
          });
        }}
      >
        <label>
          Name
          <input
            class="input"
            required
            maxLength={100}
            placeholder="where it is used"
            value={name}
            onInput={event => setName(event.currentTarget.value)}
          />
        </label>
        <label>
          Scope
          <select
            class="input"
            value={scope}
            onChange={event => setScope(event.currentTarget.value)}
          >
            {SCOPES.map(each => (
              <option key={each.id} value={each.id}>
                {each.label}
              </option>
            ))}
          </select>
        </label>
        <label>
          Project
          <select
            class="input"
            value={project}
            onChange={event => setProject(event.currentTarget.value)}
          >
            <option value="">any of mine</option>
            {who.projects
              .filter(each => each.name !== '' && each.name !== '-')
              .map(each => (
                <option key={each.name} value={each.name}>
                  {each.name}
                </option>
              ))}
          </select>
        </label>
        <label>
          Ends
          <select
            class="input"
            value={String(days)}
            onChange={event => setDays(Number(event.currentTarget.value))}
          >
            {ENDS.map(each => (
              <option key={each.days} value={String(each.days)}>
                {each.label}
              </option>
            ))}
          </select>
        </label>
        <button type="submit" class="button button-primary" disabled={isBusy}>
          Make a token
        </button>
      </form>
      <Problem text={problem} />
      {secret !== '' && (
        <p class="people-secret" role="status">
          <input class="input" aria-label="The token" readOnly value={secret} />
          <CopyButton text={secret} label="Copy the token" />
          <span class="muted">It is shown only once: copy it now.</span>
        </p>
      )}
    </>
  );
}
