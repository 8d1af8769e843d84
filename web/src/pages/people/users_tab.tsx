// Users of the service, for its administrators.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import {endUser, getUsers, putUser, type User} from '../../api/people';
import {formatWhen} from '../../base/format';
import {latest, useResource} from '../../ui/resource';
import {Empty, StandIn} from '../../ui/states';
import {Problem, SureButton, useAct} from './act';

export function UsersTab(): JSX.Element {
  const [round, setRound] = useState(0);
  const reply = useResource(`users/${round}`, getUsers);
  const again = (): void => setRound(before => before + 1);
  const rows = latest(reply)?.users;
  return (
    <>
      <p class="people-about">
        Without a password a user signs in through a proxy or a provider only. What each may do in a
        project is in the project’s settings; an administrator may do all.
      </p>
      <UserForm title="Add a user" button="Add" changed={again} />
      <StandIn keeps of={reply} what="the users" />
      {rows && rows.length === 0 && (
        <Empty title="No users">Only the server’s key gives access.</Empty>
      )}
      {rows && rows.length > 0 && (
        <div class="people-scroll">
          <table class="people-table" data-testid="users">
            <thead>
              <tr>
                <th>Name</th>
                <th>Administrator</th>
                <th>Password</th>
                <th>Since</th>
                <td />
              </tr>
            </thead>
            <tbody>
              {rows.map(row => (
                <UserRow key={row.name} row={row} changed={again} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

function UserRow({row, changed}: {row: User; changed: () => void}): JSX.Element {
  const {act, isBusy, problem} = useAct();
  const [isEdited, setEdited] = useState(false);
  return (
    <>
      <tr>
        <td class="break">{row.name}</td>
        <td>
          <label class="check">
            <input
              type="checkbox"
              aria-label={`${row.name} is an administrator`}
              checked={row.is_admin}
              disabled={isBusy}
              onChange={() => act(() => putUser(row.name, {is_admin: !row.is_admin}), changed)}
            />
          </label>
        </td>
        <td>{row.has_password ? 'set' : 'none'}</td>
        <td>{row.created_at === undefined ? '' : formatWhen(row.created_at, new Date())}</td>
        <td>
          <button type="button" class="button button-quiet" onClick={() => setEdited(!isEdited)}>
            New password
          </button>
          <SureButton
            label="Remove"
            sure={`Remove ${row.name}`}
            isBusy={isBusy}
            onClick={() => act(() => endUser(row.name), changed)}
          />
          <Problem text={problem} />
        </td>
      </tr>
      {isEdited && (
        <tr>
          <td colSpan={5}>
            <UserForm
              title={`New password of ${row.name}`}
              button="Set"
              name={row.name}
              changed={() => {
                setEdited(false);
                changed();
              }}
            />
          </td>
        </tr>
      )}
    </>
  );
}

function UserForm(props: {
  title: string;
  button: string;
  name?: string;
  changed: () => void;
}): JSX.Element {
  const [name, setName] = useState(props.name ?? '');
  const [password, setPassword] = useState('');
  const [isAdmin, setAdmin] = useState(false);
  const {act, isBusy, problem} = useAct();
  const isNew = props.name === undefined;
  return (
    <form
      class="people-form"
      aria-label={props.title}
      onSubmit={event => {
        event.preventDefault();
        act(
          () =>
            putUser(name.trim(), {
              ...(password === '' ? {} : {password}),
              ...(isNew && isAdmin ? {is_admin: true} : {}),
            }),
          () => {
            if (isNew) setName('');
            setPassword('');
            setAdmin(false);
            props.changed();
          },
        );
      }}
    >
      {isNew && (
        <label>
          Name
          <input
            class="input"
            required
            maxLength={64}
            pattern="[A-Za-z0-9][A-Za-z0-9._@\-]*"
            title="letters, digits and . _ - @"
            autocomplete="off"
            value={name}
            onInput={event => setName(event.currentTarget.value)}
          />
        </label>
      )}
      <label>
        Password
        <input
          class="input"
          type="password"
          autocomplete="new-password"
          minLength={8}
          required={!isNew}
          value={password}
          onInput={event => setPassword(event.currentTarget.value)}
        />
      </label>
      {isNew && (
        <label class="check">
          <input type="checkbox" checked={isAdmin} onChange={() => setAdmin(!isAdmin)} />
          Administrator
        </label>
      )}
      <button type="submit" class="button" disabled={isBusy}>
        {props.button}
      </button>
      <Problem text={problem} />
    </form>
  );
}
