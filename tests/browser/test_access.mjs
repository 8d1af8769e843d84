// Every screen by axe-core, in light and dark; on a phone and at 200 % zoom nothing leaves the
// screen sideways, and what a screen is for is still on it.
import assert from 'node:assert/strict';
import {readFileSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {ROOT, until} from './harness.mjs';
import {archiveOfRanks, stage} from './stage.mjs';

/** Loading and launching one after the other in the main thread: 34 and 63 ms of each step. */
function inSeries() {
  const traceEvents = [];
  const event = (cat, pid, tid, ts, dur, name, args) => traceEvents.push({ph: 'X', cat, name, pid, tid, ts, dur, args});
  for (let i = 0; i < 8; i++) {
    const at = i * 100_000;
    event('user_annotation', 1, 1, at, 99_900, `ProfilerStep#${i}`);
    event('user_annotation', 1, 1, at + 100, 34_000, 'enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__');
    for (let k = 0; k < 35; k++) {
      const ts = at + 36_000 + k * 1_800;
      const correlation = 35 * i + k + 1;
      event('cpu_op', 1, 1, ts, 1_700, k < 18 ? 'aten::mm' : 'autograd::engine::evaluate_function: MmBackward0');
      event('cuda_runtime', 1, 1, ts + 10, 1_600, 'cudaLaunchKernel', {correlation});
      event('kernel', 0, 7, ts + 1_620, 200, 'volta_sgemm_128x64_tn', {correlation, device: 0, stream: 7});
    }
  }
  return JSON.stringify({schemaVersion: 1, deviceProperties: [{id: 0, name: 'Tesla V100'}], traceEvents});
}
function drawn(scratch) {
  const path = join(scratch, 'in series.json');
  writeFileSync(path, inSeries());
  return path;
}
const {server, page, complaints, answered, main} = await stage({
  demo: ['1-two-workers', '2-five-workers'], files: (scratch) => [drawn(scratch), archiveOfRanks(scratch, 47)],
});
const api = async (path, init) => (await server.api(path, init)).json();
const axe = readFileSync(join(ROOT, 'web/node_modules/axe-core/axe.min.js'), 'utf8');
const pictures = process.env.LACUNA_PICTURES;

/** What a screen reader or a keyboard would stumble over; of one rule alone where it is named. */
async function violations(rule) {
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axe);
  return page.evaluate(async (only) => {
    const options = only === undefined ? {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']} : {runOnly: {type: 'rule', values: [only]}};
    const {violations: found} = await window.axe.run(document, {...options, resultTypes: ['violations']});
    return found.map(({id, nodes}) => `${id}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 140)).join(' | ')}`);
  }, rule);
}

await server.api('traces?name=damaged', {method: 'POST', body: '[{"this is": no trace'});
let traces = [];
await until(async () => {
  ({traces} = await api('traces'));
  return traces.some(({state}) => state === 'failed');
});
const one = traces.find(({name}) => name.startsWith('1-')).id;
const series = traces.find(({name}) => name === 'in series').id;
const two = traces.find(({name}) => name.startsWith('2-')).id;
const rank = traces.find(({run}) => run);
const failed = traces.find(({state}) => state === 'failed').id;
const report = await api('reports', {method: 'POST', body: JSON.stringify({project: 'default', title: 'What was learned', markdown: '# Loading\n\n```lacuna-ladder\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n'}), headers: {'Content-Type': 'application/json'}});
await api('tokens', {method: 'POST', body: JSON.stringify({name: 'nodes', scope: 'upload'}), headers: {'Content-Type': 'application/json'}});

/** Address, what is on the screen when it is whole, and what is done there first. */
const SCREENS = {
  list: ['', '.trace-row'],
  overview: [`t/${one}`, '[data-testid=workers-chart]'],
  series: [`t/${series}`, 'text=run one after the other in the main thread'],
  reserve: [`t/${series}`, 'text=with 1 worker; 2 leave reserve'],
  timeline: [`t/${one}?view=timeline`, '.tl[data-settled=yes]'],
  gap: [`t/${one}?view=timeline&dock=gaps`, '.tl[data-settled=yes]'],
  area: [`t/${one}?view=timeline&sel=a:0,2000000000`, '.tl-dock-table tbody tr'],
  tables: [`t/${one}?view=kernels`, '.grid-row, [role=row]'],
  flame: [`t/${one}?view=flame`, '.flame-table, [role=row], canvas'],
  difference: [`t/${one}?view=flame&with=${two}`, '.flame-table .is-faster'],
  callers: [`t/${one}?view=flame&of=loader.fetch`, '.flame-box'],
  sql: [`t/${one}?view=sql`, 'textarea, [role=textbox]'],
  answer: [`t/${one}?view=sql`, '.sql-questions button', async () => {
    await page.locator('.sql-questions button').first().click();
    await page.getByRole('button', {name: 'Run', exact: true}).click();
    await page.locator('.sql-rows td').first().waitFor();
  }],
  failed: [`t/${failed}`, 'main h1, main h2'],
  compare: [`compare?a=${one}&b=${two}`, '[data-testid=waterfall], h2'],
  run: [`r/${rank?.run ?? ''}`, '.ranks'],
  findings: ['findings', 'main a'],
  finding: ['findings/input-starvation', 'main h2'],
  reports: ['reports', '.reports-head'],
  report: [`reports/${report.id}`, '.report-frame'],
  project: ['p/-', '[data-testid=ladder-chart]'],
  trends: ['p/-?tab=trends', 'main h2, main svg, main .empty'],
  settingsOverTime: ['p/-?tab=series', 'main .project-choice, main .state'],
  members: ['p/-?tab=settings', 'main form, main table'],
  settings: ['settings', 'main table'],
  tokens: ['settings/tokens', 'main form'],
  users: ['settings/users', 'main form'],
  audit: ['settings/audit', 'main table'],
  nothing: ['no/such/page', 'main'],
};

/** Another address without a reload, as a link on the page would go there. */
async function goTo([address, whole, act]) {
  await page.evaluate((to) => {
    history.pushState(null, '', to);
    dispatchEvent(new PopStateEvent('popstate'));
  }, `/${address}`);
  await page.locator(whole).first().waitFor();
  await act?.();
  await answered();
}

const picture = async (name) => pictures && (await page.screenshot({path: join(pictures, `${name}.png`)}));
const SIZES = [[1024, 768], [768, 1024], [720, 450], [390, 844]];

/** At each size, 720x450 being 1440x900 at 200 %: how far the page leaves the screen sideways. */
async function overflows(name) {
  const wide = [];
  const columns = name === 'tables' ? await page.locator('.grid').evaluate((grid) => grid.scrollWidth - grid.clientWidth) : 0;
  if (columns > 0) wide.push(`the table of kernels, at 1440, by ${columns}`);
  for (const [width, height] of SIZES) {
    await page.setViewportSize({width, height});
    const fits = () => document.documentElement.scrollWidth <= innerWidth;
    if (!(await page.waitForFunction(fits).catch(() => undefined)))
      wide.push(`${name}, ${width} wide: ${await page.evaluate(() => document.documentElement.scrollWidth)}`);
    const narrow = await page.locator('.further-title').evaluateAll((titles) => Math.min(...titles.map((title) => title.clientWidth)));
    if (narrow < 200) wide.push(`${name}, ${width} wide: a title of ${narrow}`);
    if (name === 'run' && width <= 768) {
      const table = await page.locator('.ranks-scroll').evaluate((box) => [box.scrollWidth, box.clientWidth]);
      if (table[0] > table[1]) wide.push(`the table of ranks, ${table}`);
    }
    await picture(`${name}-${width}-light`);
  }
  await page.setViewportSize({width: 1440, height: 900});
  return wide;
}

const found = [];
const tooWide = [];

const steps = [
  ['every screen opens, in light and in dark, from 390 px on', async () => {
    await page.goto(`${server.base}/#key=${server.key}`);
    await page.locator('.trace-row').first().waitFor();
    for (const [name, screen] of Object.entries(SCREENS)) {
      await goTo(screen);
      found.push(...(await violations()).map((text) => `${name}: ${text}`));
      await picture(`${name}-1440-light`);
      await page.emulateMedia({colorScheme: 'dark'});
      found.push(...(await violations('color-contrast')).map((text) => `${name}, dark: ${text}`));
      await picture(`${name}-1440-dark`);
      await page.emulateMedia({colorScheme: 'light'});
      tooWide.push(...(await overflows(name)));
    }
  }, page],
  ['axe-core has nothing to name on any of them', () => assert.deepEqual(found, [])],
  ['nothing leaves the screen sideways, at 200 % neither', () => assert.deepEqual(tooWide, [])],
  ['nothing complained', async () => assert.deepEqual(complaints, [])],
];

await main(steps);
