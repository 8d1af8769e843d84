// A trace handed to Perfetto's page in a new tab, by the messages that it takes (PING, PONG, the bytes).
// They go from tab to tab; nothing is uploaded.

const PERFETTO = 'https://ui.perfetto.dev';
const PING_MS = 100;
const PATIENCE_MS = 60_000;

/** Until the page in the tab answers. */
function answers(tab: Window): Promise<void> {
  return new Promise((resolve, reject) => {
    const since = Date.now();
    const hear = (event: MessageEvent<unknown>): void => {
      if (event.source === tab && event.data === 'PONG') end(resolve);
    };
    const timer = setInterval(() => {
      if (tab.closed || Date.now() - since > PATIENCE_MS)
        end(() => reject(new Error('Perfetto did not answer. Download the window instead.')));
      else tab.postMessage('PING', PERFETTO);
    }, PING_MS);
    const end = (settle: () => void): void => {
      clearInterval(timer);
      removeEventListener('message', hear);
      settle();
    };
    addEventListener('message', hear);
  });
}

/** Call it in the click: a browser blocks a tab that opens later. */
export async function openInPerfetto(title: string, trace: Promise<Blob>): Promise<void> {
  const tab = open(PERFETTO);
  const bytes = trace.then(blob => blob.arrayBuffer());
  bytes.catch(() => tab?.close()); // with it the pings end
  if (!tab) throw new Error('The browser blocked the new tab.');
  const [buffer] = await Promise.all([bytes, answers(tab)]);
  tab.postMessage({perfetto: {buffer, title}}, PERFETTO, [buffer]);
}
