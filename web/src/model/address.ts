// Keeps the address bar and the signals of view_state.ts the same.
import {effect} from '@preact/signals';
import {BASE_URL} from '../api/client';
import {
  currentView,
  formatLocation,
  formatSelection,
  isLeaping,
  parseLocation,
  show,
} from './view_state';

const WRITE_DELAY_MS = 250;
/** Zooming that goes on shares one history entry: after this pause it is another. */
const ZOOM_QUIET_MS = 900;
/** Selections in quick succession (arrow keys) share one history entry, and what a page selects by
 *  itself shares that of its opening. */
const PUSH_QUIET_MS = 700;

/** Take the key out of the fragment, if one is there; the address loses it at once. */
export function takeKeyFromAddress(): string | undefined {
  const match = /^#key=([^&]+)$/.exec(location.hash);
  if (!match?.[1]) return undefined;
  history.replaceState(history.state, '', location.pathname + location.search);
  return decodeURIComponent(match[1]);
}

function read(): void {
  const base = new URL(BASE_URL);
  const path = location.pathname.startsWith(base.pathname)
    ? location.pathname.slice(base.pathname.length)
    : '';
  show(parseLocation(path, location.search));
}

/** Call once at start. */
export function syncAddress(): void {
  read();
  let written = formatLocation(currentView());
  let seen = written;
  let place = placeOf();
  let lastPushMs = 0;
  let lastInputMs = 0;
  let isOpening = false; // the newest entry is a page's, and nobody has pressed anything on it
  let lastZoomMs = 0;
  let span = spanOf();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let fromHistory = false;

  const replaceNow = (): void => {
    timer = undefined;
    const next = formatLocation(currentView());
    if (next === written) return;
    written = next;
    history.replaceState(history.state, '', BASE_URL + next);
  };

  addEventListener('popstate', () => {
    clearTimeout(timer);
    timer = undefined;
    fromHistory = true;
    read();
    fromHistory = false;
    written = seen = formatLocation(currentView());
    place = placeOf();
    span = spanOf();
  });
  addEventListener('pagehide', replaceNow);
  for (const input of ['pointerdown', 'keydown'])
    addEventListener(input, () => (lastInputMs = Date.now()), {capture: true, passive: true});

  effect(() => {
    const next = formatLocation(currentView());
    const nextPlace = placeOf();
    if (fromHistory || next === written) return;
    const moved = nextPlace.page !== place.page;
    const selected = nextPlace.selection !== place.selection;
    place = nextPlace;
    const nextSpan = spanOf();
    const zoomed = nextSpan !== span;
    span = nextSpan;
    const beginsZoom = zoomed && Date.now() - lastZoomMs > ZOOM_QUIET_MS;
    if (zoomed) lastZoomMs = Date.now();
    const isQuiet = Date.now() - lastPushMs > PUSH_QUIET_MS;
    const isPressed = isOpening && lastInputMs > lastPushMs;
    if (moved || beginsZoom || isLeaping() || (selected && (isQuiet || isPressed))) {
      // what was shown until now is what Back returns to
      if (timer !== undefined) history.replaceState(history.state, '', BASE_URL + seen);
      clearTimeout(timer);
      timer = undefined;
      written = next;
      lastPushMs = Date.now();
      isOpening = moved;
      history.pushState(null, '', BASE_URL + next);
    } else {
      timer ??= setTimeout(replaceNow, WRITE_DELAY_MS);
    }
    seen = next;
  });
}

/** How long the window is; Back undoes what changes it, not what moves it. */
function spanOf(): number {
  const {window} = currentView();
  return window ? Math.round(window.t1 - window.t0) : 0;
}

function placeOf(): {page: string; selection: string} {
  const view = currentView();
  return {
    page: `${view.traceId ?? ''}/${view.page}/${view.compareA}/${view.compareB}/${view.runId}/${view.reportId}/${view.projectName}/${view.projectQuery}/${view.settingsTab}`,
    selection: formatSelection(view.selection) + view.met,
  };
}
