// Oneself, tokens, and for administrators the users and the audit.
import type {JSX} from 'preact';
import {getWho} from '../../api/people';
import {DEFAULT_VIEW, settingsTab} from '../../model/view_state';
import {BackToTraces, ViewLink} from '../../ui/link';
import {Header, useTitle} from '../../ui/header';
import {useResource} from '../../ui/resource';
import {StandIn} from '../../ui/states';
import {AccountTab} from './account_tab';
import {AuditTab} from './audit_tab';
import {TokensTab} from './tokens_tab';
import {UsersTab} from './users_tab';

const TABS = [
  {id: '', label: 'You', isForAdmins: false},
  {id: 'tokens', label: 'Tokens', isForAdmins: false},
  {id: 'users', label: 'Users', isForAdmins: true},
  {id: 'audit', label: 'Audit', isForAdmins: true},
];

export function SettingsPage(): JSX.Element {
  const tab = settingsTab.value;
  const reply = useResource('who', getWho);
  const who = reply.kind === 'ready' ? reply.value : undefined;
  useTitle('Settings');
  return (
    <>
      <Header>
        <BackToTraces />
      </Header>
      <main class="page people">
        <h1>Settings</h1>
        <StandIn of={reply} what="the account" title="The account could not be read" />
        {who && (
          <>
            <nav class="project-tabs" aria-label="Settings">
              {TABS.filter(each => who.is_admin || !each.isForAdmins).map(each => (
                <ViewLink
                  key={each.id}
                  view={{...DEFAULT_VIEW, page: 'settings', settingsTab: each.id}}
                  current={each.id === tab}
                >
                  {each.label}
                </ViewLink>
              ))}
            </nav>
            {tab === 'tokens' && <TokensTab who={who} />}
            {tab === 'users' && <UsersTab />}
            {tab === 'audit' && <AuditTab />}
            {tab === '' && <AccountTab who={who} />}
          </>
        )}
      </main>
    </>
  );
}
