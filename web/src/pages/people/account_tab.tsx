// Oneself: what one may do, one's password, signing out.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import {setPassword, signOut, type Who} from '../../api/people';
import {BASE_URL} from '../../api/client';
import {DEFAULT_VIEW} from '../../model/view_state';
import {ViewLink} from '../../ui/link';
import {Problem, useAct} from './act';

export function AccountTab({who}: {who: Who}): JSX.Element {
  const {act, isBusy, problem} = useAct();
  return (
    <>
      <p class="people-about">
        {who.kind === 'key' ? (
          <>
            You hold this server’s key: every right, as the owner of the machine. For a team, add
            people under <em>Users</em>.
          </>
        ) : (
          <>
            You are signed in as <strong>{who.name}</strong>
            {who.is_admin ? ', an administrator of the service.' : '.'}
          </>
        )}
      </p>
      {who.projects.length > 0 && (
        <table class="people-table">
          <thead>
            <tr>
              <th>Project</th>
              <th>Your role</th>
            </tr>
          </thead>
          <tbody>
            {who.projects.map(each => (
              <tr key={each.name}>
                <td class="break">
                  <ViewLink
                    view={{...DEFAULT_VIEW, page: 'project', projectName: each.name || '-'}}
                  >
                    {each.name || 'traces without a project'}
                  </ViewLink>
                </td>
                <td>{each.role}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {who.kind === 'user' && <NewPassword name={who.name} />}
      <p>
        <button
          type="button"
          class="button"
          disabled={isBusy}
          onClick={() => act(signOut, () => location.assign(BASE_URL))}
        >
          Sign out
        </button>
      </p>
      <Problem text={problem} />
    </>
  );
}

function NewPassword({name}: {name: string}): JSX.Element {
  const [old, setOld] = useState('');
  const [fresh, setFresh] = useState('');
  const [isDone, setDone] = useState(false);
  const {act, isBusy, problem} = useAct();
  return (
    <form
      class="people-form"
      aria-label="Change the password"
      onSubmit={event => {
        event.preventDefault();
        setDone(false);
        act(
          () => setPassword({old, new: fresh}),
          () => {
            setOld('');
            setFresh('');
            setDone(true);
          },
        );
      }}
    >
      <input type="text" class="off-screen" autocomplete="username" readOnly value={name} />
      <label>
        Password now
        <input
          class="input"
          type="password"
          autocomplete="current-password"
          required
          value={old}
          onInput={event => setOld(event.currentTarget.value)}
        />
      </label>
      <label>
        New password
        <input
          class="input"
          type="password"
          autocomplete="new-password"
          required
          minLength={8}
          value={fresh}
          onInput={event => setFresh(event.currentTarget.value)}
        />
      </label>
      <button type="submit" class="button" disabled={isBusy}>
        Change
      </button>
      {isDone && <span role="status">The password was changed.</span>}
      <Problem text={problem} />
    </form>
  );
}
