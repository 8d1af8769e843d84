import assert from 'node:assert/strict';
import test from 'node:test';
import {openInPerfetto} from './perfetto';

/** Stands for the browser's `open`, and for who listens to messages. */
function withTab(tab: unknown): void {
  Object.assign(globalThis, {
    open: () => tab,
    addEventListener: () => undefined,
    removeEventListener: () => undefined,
  });
}
const late = (text: string): Promise<Blob> =>
  new Promise((_, reject) => setTimeout(() => reject(new Error(text)), 20));
const rest = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms));

test('where the tab is blocked, an export that fails later bothers nobody', async () => {
  withTab(null);
  await assert.rejects(openInPerfetto('t', late('too many slices')), /blocked the new tab/);
  await rest(60); // one that nobody handles fails the test
});

test('where the export fails, the tab closes and is asked no more', async () => {
  let pings = 0;
  const tab = {
    closed: false,
    close: () => void (tab.closed = true),
    postMessage: () => void pings++,
  };
  withTab(tab);
  await assert.rejects(openInPerfetto('t', late('too many slices')), /too many slices/);
  assert.equal(tab.closed, true);
  const before = pings;
  await rest(350);
  assert.equal(pings, before);
});
