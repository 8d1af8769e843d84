// A project's settings: what it is about, who may do what in it.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import {
  endMember,
  getMembers,
  getSettings,
  putMember,
  putSettings,
  type Member,
  type ProjectSettings,
} from '../../api/people';
import {latest, useResource} from '../../ui/resource';
import {StandIn} from '../../ui/states';
import {Problem, SureButton, useAct} from './act';
import {QuotaPanel} from './quota_panel';
import {WebhooksPanel} from './webhooks_panel';

const ROLES = ['read', 'write', 'admin'] as const;
const ROLE_TEXT: Readonly<Record<string, string>> = {
  none: 'nothing',
  read: 'read, and comment',
  write: 'read, upload, change and delete',
  admin: 'all of that, and these settings',
};

export function MembersTab({name}: {name: string}): JSX.Element {
  const [round, setRound] = useState(0);
  const reply = useResource(`${name}/${round}`, async signal => ({
    members: (await getMembers(name, signal)).members,
    settings: await getSettings(name, signal),
  }));
  const again = (): void => setRound(before => before + 1);
  const shown = latest(reply);
  if (!shown)
    return (
      <StandIn of={reply} what="the project’s settings" title="These settings cannot be shown" />
    );
  return (
    <>
      <section class="panel">
        <h2>Settings</h2>
        <SettingsForm name={name} settings={shown.settings} />
      </section>
      <section class="panel">
        <h2>Members</h2>
        {shown.members.length > 0 && (
          <table class="people-table" data-testid="members">
            <tbody>
              {shown.members.map(each => (
                <MemberRow key={each.user} project={name} member={each} changed={again} />
              ))}
            </tbody>
          </table>
        )}
        <NewMember project={name} changed={again} />
      </section>
      <QuotaPanel name={name} />
      <WebhooksPanel name={name} />
    </>
  );
}

function SettingsForm(props: {name: string; settings: ProjectSettings}): JSX.Element {
  const [description, setDescription] = useState(props.settings.description);
  const [everybody, setEverybody] = useState(props.settings.everybody);
  const [isSaved, setSaved] = useState(false);
  const {act, isBusy, problem} = useAct();
  return (
    <form
      class="people-form"
      aria-label="Settings"
      onSubmit={event => {
        event.preventDefault();
        setSaved(false);
        act(
          () => putSettings(props.name, {everybody, description}),
          () => setSaved(true),
        );
      }}
    >
      <label class="people-wide">
        What it is about
        <textarea
          class="input"
          rows={2}
          maxLength={1000}
          value={description}
          onInput={event => setDescription(event.currentTarget.value)}
        />
      </label>
      <label>
        Everybody who is signed in may
        <RoleChoice value={everybody} roles={['none', ...ROLES]} choose={setEverybody} />
      </label>
      <button type="submit" class="button" disabled={isBusy}>
        Save
      </button>
      {isSaved && <span role="status">Saved.</span>}
      <Problem text={problem} />
    </form>
  );
}

function RoleChoice(props: {
  value: string;
  roles: readonly string[];
  label?: string;
  choose: (role: string) => void;
}): JSX.Element {
  return (
    <select
      class="input"
      {...(props.label === undefined ? {} : {'aria-label': props.label})}
      value={props.value}
      onChange={event => props.choose(event.currentTarget.value)}
    >
      {props.roles.map(role => (
        <option key={role} value={role}>
          {ROLE_TEXT[role] ?? role}
        </option>
      ))}
    </select>
  );
}

function MemberRow(props: {project: string; member: Member; changed: () => void}): JSX.Element {
  const {project, member, changed} = props;
  const {act, isBusy, problem} = useAct();
  return (
    <tr>
      <td class="break">{member.user}</td>
      <td>
        <RoleChoice
          value={member.role}
          roles={ROLES}
          label={`Role of ${member.user}`}
          choose={role => act(() => putMember(project, member.user, role), changed)}
        />
      </td>
      <td>
        <SureButton
          label="Remove"
          sure={`Remove ${member.user}`}
          isBusy={isBusy}
          onClick={() => act(() => endMember(project, member.user), changed)}
        />
        <Problem text={problem} />
      </td>
    </tr>
  );
}

function NewMember({project, changed}: {project: string; changed: () => void}): JSX.Element {
  const [user, setUser] = useState('');
  const [role, setRole] = useState('write');
  const {act, isBusy, problem} = useAct();
  return (
    <form
      class="people-form"
      aria-label="Add a member"
      onSubmit={event => {
        event.preventDefault();
        act(
          () => putMember(project, user.trim(), role),
          () => {
            setUser('');
            changed();
          },
        );
      }}
    >
      <label>
        User
        <input
          class="input"
          required
          maxLength={64}
          autocomplete="off"
          value={user}
          onInput={event => setUser(event.currentTarget.value)}
        />
      </label>
      <label>
        may
        <RoleChoice value={role} roles={ROLES} choose={setRole} />
      </label>
      <button type="submit" class="button" disabled={isBusy}>
        Add
      </button>
      <Problem text={problem} />
    </form>
  );
}
