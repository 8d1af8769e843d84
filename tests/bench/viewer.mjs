// The page on a big trace in headless Chromium: how long until the timeline stands, what frames cost
// while a person zooms and pans for ten seconds, and the memory of the page's process.
//
//   node tests/bench/viewer.mjs ADDRESS KEY TRACE_ID       prints one line of JSON
import {readFileSync} from 'node:fs';
import {obstacle, startBrowser} from '../browser/harness.mjs';

/** A frame is late when it took more than one and a half times what 60 Hz leaves it. */
const LATE_MS = 25;
const MOVE_MS = 10_000;
const SETTLE_MS = 30_000;

const why = obstacle();
if (why) {
  console.log(`skip: ${why}`);
  console.log('{}');
  process.exit(0);
}
const [address, key, trace] = process.argv.slice(2);
const {browser, page, complaints} = await startBrowser();

// The page itself notes when: a wait for a selector looks 270, 770 and 1,270 ms after it began, and would
// round what it finds up to these.
await page.addInitScript(() => {
  const observer = new MutationObserver(() => {
    if (!document.querySelector('.tl[data-settled=yes]')) return;
    observer.disconnect();
    // the frame after the one that drew it: by then it is on the screen
    requestAnimationFrame(() => (globalThis.benchSettledMs = performance.now()));
  });
  observer.observe(document, {subtree: true, childList: true, attributeFilter: ['data-settled']});
});

/** Resolves with the milliseconds from the start of the navigation to the timeline's final picture. */
const settled = async () => {
  const found = await page.waitForFunction(() => globalThis.benchSettledMs, undefined, {timeout: SETTLE_MS});
  return found.jsonValue();
};

/** Resolves with the intervals between animation frames that `action` takes, and what its own frames cost. */
async function frames(action) {
  await page.evaluate(() => {
    const intervals = [];
    let last = performance.now();
    const tick = (now) => {
      intervals.push(now - last);
      last = now;
      globalThis.benchHandle = requestAnimationFrame(tick);
    };
    globalThis.benchIntervals = intervals;
    globalThis.benchHandle = requestAnimationFrame(tick);
  });
  await action();
  return page.evaluate(() => {
    cancelAnimationFrame(globalThis.benchHandle);
    return globalThis.benchIntervals.slice(1);
  });
}

/** Zooms in and out and pans, with keys held and with the wheel, as a person looking for something does. */
async function zoomAndPan() {
  const stage = await page.locator('.tl-stage').boundingBox();
  const hold = async (code, ms) => {
    await page.keyboard.down(code);
    await page.waitForTimeout(ms);
    await page.keyboard.up(code);
  };
  const wheel = async (dx, dy, times) => {
    for (let i = 0; i < times; i++) {
      await page.mouse.wheel(dx, dy);
      await page.waitForTimeout(16);
    }
  };
  const end = Date.now() + MOVE_MS;
  for (let round = 0; Date.now() < end; round++) {
    await page.mouse.move(stage.x + stage.width * (0.3 + 0.1 * (round % 5)), stage.y + stage.height * 0.4);
    await hold('w', 900);
    await hold('d', 500);
    await wheel(0, 60, 10);
    await hold('a', 300);
    await page.keyboard.down('Control');
    await wheel(0, -120, 12);
    await wheel(0, 120, 8);
    await page.keyboard.up('Control');
    await hold('s', 700);
    await wheel(0, -60, 10);
  }
}

/** Proportional memory of the page's process, in bytes. */
async function pageMemory() {
  const session = await browser.newBrowserCDPSession();
  const {processInfo} = await session.send('SystemInfo.getProcessInfo');
  const sizes = processInfo
    .filter(({type}) => type === 'renderer')
    .map(({id}) => Number(/^Pss: +(\d+) kB/m.exec(readFileSync(`/proc/${id}/smaps_rollup`, 'utf8'))[1]) * 1024);
  return Math.max(...sizes);
}

const round = (value) => Math.round(value * 100) / 100;

try {
  await page.goto(`${address}/#key=${key}`);
  await page.locator('main').waitFor();
  await page.waitForLoadState('networkidle').catch(() => undefined);
  await page.goto('about:blank');
  await page.goto(`${address}/t/${trace}?view=timeline`, {waitUntil: 'commit'});
  const first = await settled();
  const contentful = await page.evaluate(
    () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime,
  );
  const intervals = await frames(zoomAndPan);
  const stats = await page.locator('.tl').first().evaluate(({dataset}) => ({...dataset}));
  const figures = {
    first_paint_ms: round(first),
    first_contentful_paint_ms: round(contentful),
    frame_work_p95_ms: Number(stats.frameWorkP95Ms),
    frame_late_pct: round((100 * intervals.filter((ms) => ms > LATE_MS).length) / intervals.length),
    frames_drawn: Number(stats.frames),
    page_memory_mb: round((await pageMemory()) / 1e6),
  };
  if (complaints.length > 0) throw new Error(complaints.join('; '));
  console.log(JSON.stringify(figures));
} finally {
  await browser.close();
}
