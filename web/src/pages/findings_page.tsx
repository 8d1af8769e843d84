// What findings mean: the list of all documents, or one of them.
import type {JSX} from 'preact';
import {getFinding, listFindings} from '../api/client';
import {findingId} from '../model/view_state';
import {Chip, topicOf} from '../ui/cause_mark';
import {Header, useTitle} from '../ui/header';
import {ViewLink} from '../ui/link';
import {Markdown} from '../ui/markdown';
import {useResource, type Resource} from '../ui/resource';
import {Failed, Loading} from '../ui/states';

export function FindingsPage(): JSX.Element {
  useTitle(findingId.value || 'Findings');
  return (
    <>
      <Header />
      <main class="page">
        {findingId.value === '' ? <Index /> : <Document id={findingId.value} />}
      </main>
    </>
  );
}

function Index(): JSX.Element {
  const all = useResource('findings', async s => (await listFindings(s)).findings);
  return (
    <div class="prose">
      <h1>Findings</h1>
      <p>
        Everything Lacuna looks for. Each page says how the finding is detected, how its gain is
        computed, what to change, and when it is wrong.
      </p>
      <Loaded resource={all}>
        {findings => (
          <ul class="finding-list">
            {findings.map(finding => (
              <li key={finding.id}>
                <Chip topic={topicOf(finding.cause)} />{' '}
                <ViewLink view={{page: 'findings', findingId: finding.id}}>
                  {finding.title}
                </ViewLink>{' '}
                <code class="muted">{finding.id}</code>
              </li>
            ))}
          </ul>
        )}
      </Loaded>
    </div>
  );
}

function Document({id}: {id: string}): JSX.Element {
  const document = useResource(`finding ${id}`, async s => await getFinding(id, s));
  return (
    <>
      <p class="prose">
        <ViewLink view={{page: 'findings', findingId: ''}}>All findings</ViewLink>
      </p>
      <Loaded resource={document}>{({markdown}) => <Markdown text={markdown} />}</Loaded>
    </>
  );
}

function Loaded<T>(props: {
  resource: Resource<T>;
  children: (value: T) => JSX.Element;
}): JSX.Element {
  const {resource} = props;
  if (resource.kind === 'loading') return <Loading what="the findings" />;
  if (resource.kind === 'error')
    return (
      <Failed
        title="The findings could not be loaded"
        text={resource.text}
        retry={resource.retry}
      />
    );
  return props.children(resource.value);
}
