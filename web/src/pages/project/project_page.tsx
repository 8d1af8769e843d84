// A project: its runs in a row, by week, and against one setting.
import type {JSX} from 'preact';
import {projectName, projectQuery, show} from '../../model/view_state';
import {Header, useTitle} from '../../ui/header';
import {ViewLink} from '../../ui/link';
import {MembersTab} from '../people/members_tab';
import {WebhooksPanel} from '../people/webhooks_panel';
import {JournalTab} from './journal_tab';
import {SeriesTab} from './series_tab';
import {TrendsTab} from './trends_tab';

const TABS = [
  {id: '', label: 'Journal'},
  {id: 'trends', label: 'By week'},
  {id: 'series', label: 'By setting'},
  {id: 'settings', label: 'Members and settings'},
] as const;

/** The address's query with some of it replaced; '' takes a part out. */
function queryWith(parts: Readonly<Record<string, string>>): string {
  const query = new URLSearchParams(projectQuery.value);
  for (const [key, value] of Object.entries(parts))
    if (value === '') query.delete(key);
    else query.set(key, value);
  return query.toString();
}

export function ProjectPage(): JSX.Element {
  const name = projectName.value;
  const query = new URLSearchParams(projectQuery.value);
  const tab = query.get('tab') ?? '';
  const job = query.get('job') ?? undefined;
  const choose = (parts: Readonly<Record<string, string>>): void =>
    show({projectQuery: queryWith(parts)});
  const title = name === '-' ? 'Runs without a project' : name;
  useTitle(title);
  return (
    <>
      <Header />
      <main class="page project">
        <h1>{title}</h1>
        <nav class="project-tabs" aria-label="Runs over time">
          {TABS.map(each => (
            <ViewLink
              key={each.id}
              view={{projectQuery: queryWith({tab: each.id, after: ''})}}
              current={each.id === tab}
            >
              {each.id === 'settings' && name === '-' ? 'Webhooks' : each.label}
            </ViewLink>
          ))}
        </nav>
        {tab === 'settings' ? (
          name === '-' ? (
            <WebhooksPanel name={name} />
          ) : (
            <MembersTab name={name} />
          )
        ) : tab === 'trends' ? (
          <TrendsTab name={name} />
        ) : tab === 'series' ? (
          <SeriesTab
            name={name}
            job={job}
            setting={query.get('setting') ?? undefined}
            choose={choose}
          />
        ) : (
          <JournalTab
            name={name}
            job={job}
            after={query.get('after') ?? undefined}
            choose={choose}
          />
        )}
      </main>
    </>
  );
}
