// An address that does not exist: an old link, or a typo.
import type {JSX} from 'preact';
import {DEFAULT_VIEW} from '../model/view_state';
import {Header, useTitle} from '../ui/header';
import {ViewLink} from '../ui/link';
import {Empty} from '../ui/states';

export function NotFoundPage(): JSX.Element {
  useTitle('');
  return (
    <>
      <Header />
      <main class="page">
        <Empty title="There is no page at this address" isPage>
          Traces are at /t/ID, runs at /r/ID. <ViewLink view={DEFAULT_VIEW}>All traces</ViewLink>
        </Empty>
      </main>
    </>
  );
}
