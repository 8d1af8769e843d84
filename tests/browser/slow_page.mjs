// LACUNA_SLOW_PAGE=12: scripts of the page take 12 times longer, what the server answers comes up to 600 ms late, not in the order in
// which it was asked, and the mouse is held down for 240 ms. A step that holds only on a quick machine fails with it.
const SLOW = Number(process.env.LACUNA_SLOW_PAGE ?? 0);
/** The most that an answer is late by, for each time that the page is slower. */
const LATE_MS = 50;
/** How long the mouse is held down, for each time that the page is slower: what is replaced meanwhile is not clicked. */
const PRESS_MS = 20;

/** The same delays in each run. */
let state = 1;
const random = () => (state = (state * 48271) % 0x7fffffff) / 0x7fffffff;
const pause = () => new Promise((resolve) => setTimeout(resolve, random() * SLOW * LATE_MS));

async function late(route) {
  const request = route.request();
  if (!['fetch', 'xhr'].includes(request.resourceType())) return route.fallback(); // events, and what is downloaded
  // a question that is late finds a newer answer: for the page to see an older one, the answer is
  if (request.method() !== 'GET') return pause().then(() => route.fallback());
  const response = await route.fetch({maxRedirects: 0}).catch(() => undefined);
  await pause();
  return response === undefined ? route.abort() : route.fulfill({response});
}

/** Answers on all pages of the context. */
export async function slowAnswers(context) {
  if (SLOW) await context.route('**/api/v1/**', (route) => late(route).catch(() => undefined)); // the page may be gone meanwhile
}

/** Scripts of this page, until it is closed. */
export async function slowScripts(page) {
  if (SLOW) await (await page.context().newCDPSession(page)).send('Emulation.setCPUThrottlingRate', {rate: SLOW});
}

/** Clicks on all pages of the browser. */
export function slowPresses(page) {
  if (!SLOW) return;
  const locator = Object.getPrototypeOf(page.locator('body'));
  if (locator.isSlow) return;
  const {click} = locator;
  Object.assign(locator, {isSlow: true, click(options) { return click.call(this, {delay: SLOW * PRESS_MS, ...options}); }});
}
