// Start: key, theme, address, then the page.
import {signal} from '@preact/signals';
import {render, type JSX} from 'preact';
import {
  askForTrace,
  errorText,
  getVocabulary,
  openSession,
  setUnauthorizedListener,
} from './api/client';
import {setVocabulary} from './base/vocabulary';
import {syncAddress, takeKeyFromAddress} from './model/address';
import {offer, takeOffers} from './model/list/offer';
import {paletteIsOpen} from './model/palette/commands';
import {adding} from './model/report_text';
import {helpIsOpen, isTyping, registerShortcuts} from './model/shortcuts';
import {startTheme} from './model/theme';
import {serverAway, startLiveUpdates} from './model/traces';
import {
  findingId,
  OTHER_PAGES,
  page,
  projectName,
  reportId,
  runId,
  traceId,
} from './model/view_state';
// in both parts that come later: as a part of its own it compresses worse
import './api/sql';
import './flame/flame_canvas';
import './model/data_table';
import './timeline/data/rows';
import './timeline/input/running';
import {DropZone} from './pages/drop_zone';
import {fetchPages, later} from './pages/later';
import {ListPage} from './pages/list_page';
import {TracePage} from './pages/trace_page';
import {PatternDefs} from './ui/cause_mark';
import './ui/dialog';
import './ui/table_copies';
import {explained} from './ui/explain';
import {title} from './ui/header';
import {fetchTheRest, lazyQuiet} from './ui/lazy';
import {Failed} from './ui/states';
import './style/app.css';

const ComparePage = later('the comparison', pages => pages.ComparePage);
const Palette = later('the commands', pages => pages.Palette, true);
const HelpDialog = later('the keys', pages => pages.HelpDialog, true);
const OfferDialog = later('the offered trace', pages => pages.OfferDialog, true);
const AddDialog = later('the reports', pages => pages.AddDialog, true);
const KeyPage = later('the sign-in', pages => pages.KeyPage);
const NotFoundPage = later('this page', pages => pages.NotFoundPage);
const RunPage = later('the run', pages => pages.RunPage);
const FindingsPage = later('the findings', pages => pages.FindingsPage);
const ReportsPage = later('the reports', pages => pages.ReportsPage);
const ProjectPage = later('the project', pages => pages.ProjectPage);
const SettingsPage = later('the settings', pages => pages.SettingsPage);
const ExplanationPanel = lazyQuiet(async () => (await fetchPages()).ExplanationPanel);
const REST_AFTER_MS = 2000;

type Access = 'asking' | 'open' | 'locked' | 'wrong_key';
const access = signal<Access>('asking');

/** What things are called: no page is drawn before it is known. */
const words = signal<{readonly isHere: boolean; readonly problem: string}>({
  isHere: false,
  problem: '',
});
const WORDS_AGAIN_MS = 5000;

async function loadWords(): Promise<void> {
  try {
    setVocabulary(await getVocabulary());
    words.value = {isHere: true, problem: ''};
  } catch (error) {
    words.value = {isHere: false, problem: errorText(error)};
    setTimeout(() => void loadWords(), WORDS_AGAIN_MS);
  }
}

function App(): JSX.Element {
  if (access.value === 'asking') return <div class="page" />;
  if (access.value !== 'open')
    return <KeyPage wrongKey={access.value === 'wrong_key'} onOpen={enter} />;
  const {isHere, problem} = words.value;
  if (!isHere)
    return (
      <main class="page">
        {problem !== '' && <Failed title="This page could not be loaded" text={problem} />}
      </main>
    );
  return (
    <>
      {serverAway.value && (
        <div class="banner" role="status">
          The server is not responding. This page keeps its data and will retry.
        </div>
      )}
      {page.value === 'list' && <ListPage />}
      {page.value === 'compare' && <ComparePage />}
      {page.value === 'run' && <RunPage key={runId.value} />}
      {page.value === 'findings' && <FindingsPage key={findingId.value} />}
      {page.value === 'reports' && <ReportsPage key={reportId.value} />}
      {page.value === 'project' && <ProjectPage key={projectName.value} />}
      {page.value === 'settings' && <SettingsPage />}
      {page.value === 'not_found' && <NotFoundPage />}
      {!OTHER_PAGES.includes(page.value) && <TracePage key={traceId.value} />}
      <p class="off-screen" role="status">
        {title.value}
      </p>
      <DropZone />
      {explained.value && <ExplanationPanel />}
      {offer.value && <OfferDialog />}
      {adding.value && <AddDialog {...adding.value} />}
      {helpIsOpen.value && <HelpDialog />}
      {paletteIsOpen.value && <Palette />}
      <PatternDefs />
    </>
  );
}

let stopUpdates: (() => void) | undefined;
function enter(): void {
  access.value = 'open';
  stopUpdates ??= startLiveUpdates();
  setTimeout(() => access.value === 'open' && fetchTheRest(), REST_AFTER_MS);
}

/** Sign in with the key in the address; without one, an earlier cookie may still be valid. */
async function useKey(key: string | undefined): Promise<void> {
  if (key === undefined) {
    enter();
    return;
  }
  try {
    if (await openSession(key)) enter();
    else access.value = 'wrong_key';
  } catch (error) {
    console.warn(errorText(error));
    enter();
  }
}

function start(root: HTMLElement): void {
  startTheme(document.documentElement);
  const key = takeKeyFromAddress();
  takeOffers(location.search);
  if (new URLSearchParams(location.search).get('embed') === '1')
    document.documentElement.classList.add('embedded');
  syncAddress();
  // with a key in the address nothing is answered before it is exchanged
  if (key === undefined && !OTHER_PAGES.includes(page.value) && traceId.value !== undefined)
    askForTrace(traceId.value, page.value === 'timeline');
  // an address of a timeline: its scripts come beside the trace, not after it
  if (page.value === 'timeline') import('./timeline/timeline_panel').catch(() => undefined);
  // the printed address pasted into a tab that is already open
  addEventListener('hashchange', () => {
    const pasted = takeKeyFromAddress();
    if (pasted !== undefined) void useKey(pasted);
  });
  registerShortcuts({
    title: 'Everywhere',
    shortcuts: [
      {keys: ['?'], text: 'shortcuts and legend'},
      {keys: ['Ctrl', 'K'], text: 'go to or do anything by name (also Ctrl Shift P)'},
    ],
  });
  addEventListener('keydown', event => {
    const letter = event.key.toLowerCase();
    const isPalette = event.shiftKey ? letter === 'p' : letter === 'k';
    if ((event.ctrlKey || event.metaKey) && !event.altKey && isPalette && access.value === 'open') {
      event.preventDefault();
      paletteIsOpen.value = !paletteIsOpen.value;
    }
    if (event.key !== '?' || isTyping(event) || access.value !== 'open') return;
    event.preventDefault();
    helpIsOpen.value = true;
  });
  document.querySelector('.skip')?.addEventListener('click', event => {
    event.preventDefault();
    const main = document.querySelector('main');
    if (main) main.tabIndex = -1;
    main?.focus();
  });
  setUnauthorizedListener(() => {
    // without the key there are no events
    stopUpdates?.();
    stopUpdates = undefined;
    if (access.value !== 'wrong_key') access.value = 'locked';
  });
  render(<App />, root);
  void loadWords();
  void useKey(key);
}

const root = document.getElementById('app');
if (root) start(root);
