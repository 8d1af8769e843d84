// The page in a language that nobody speaks: every text in brackets, with accents and a third
// longer (LACUNA_LANG=en-XA). What stands on a screen without brackets and is no word of the
// server escaped web/text/en.json.
import assert from 'node:assert/strict';
import {spawnSync} from 'node:child_process';
import {readFileSync} from 'node:fs';
import {join} from 'node:path';
import {pseudo} from '../../web/tools/texts/pseudo.mjs';
import {ROOT, eventually, run, until} from './harness.mjs';
import {archiveOfRanks, demoTrace, stage} from './stage.mjs';

const {scratch, data, server, page, complaints, answered, main} = await stage({flags: ['--webhook-allow', '127.0.0.0/8']});
const dist = join(scratch, 'dist');

/** What the server said, as people may read it: names, verdicts, findings. */
const told = new Set();
const plain = (text) => text.replace(/[\s\u00a0]+/g, ' ').trim().toLowerCase();
const hear = (value) => {
  if (typeof value === 'string') told.add(plain(value));
  else if (value !== null && typeof value === 'object') Object.entries(value).forEach(([key, inner]) => (told.add(plain(key)), hear(inner)));
};
page.on('response', async (response) => {
  const body = await response.body().catch(() => undefined);
  if (body === undefined || !new URL(response.url()).pathname.startsWith('/api/')) return;
  try {
    hear(JSON.parse(body.toString('utf8')));
  } catch {
    heardBytes.push(plain(body.toString('utf8'))); // tiles, with names between numbers
  }
});
const heardBytes = [];

/** The server's own page, with the scripts and the document of the other language. */
async function speakPseudo() {
  const document = await fetch(server.base);
  const documentHeaders = Object.fromEntries(['content-type', 'content-security-policy'].map((name) => [name, document.headers.get(name)]));
  await page.route(`${server.base}/**`, async (route) => {
    const {pathname} = new URL(route.request().url());
    if (/^\/[\w-]+\.js$/.test(pathname))
      return route.fulfill({contentType: 'text/javascript', body: readFileSync(join(dist, pathname), 'utf8')});
    if (route.request().resourceType() !== 'document') return route.fallback();
    return route.fulfill({headers: documentHeaders, body: readFileSync(join(dist, 'index.html'), 'utf8')});
  });
}

/** Every text in the document but what is code, and what people hear of it. */
const textsOfPage = () => page.evaluate(() => {
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_ALL);
  for (let node = walker.currentNode; node; node = walker.nextNode()) {
    const element = node instanceof Element ? node : node.parentElement;
    if (!element || element.closest('code, kbd, pre, textarea, script, noscript, [data-theirs]')) continue;
    if (node instanceof Text) found.push({text: node.data, where: `<${element.tagName.toLowerCase()} class="${element.getAttribute('class')}">`});
    else if (node instanceof Element)
      for (const name of ['title', 'aria-label', 'aria-roledescription', 'placeholder', 'alt'])
        if (node.hasAttribute(name)) found.push({text: node.getAttribute(name), where: `${node.tagName.toLowerCase()} ${name} class="${node.getAttribute('class')}"`});
  }
  found.push({text: document.title, where: 'document.title'});
  return found;
});

/** Names of tools and of things that have one name everywhere. */
const PRODUCTS = new Set(['lacuna', ...['nsight systems', 'nvprof', 'nsight compute', 'nvidia-smi', 'jax', 'rocprofv3', 'perf', 'flamegraph', 'py-spy', 'cprofile', 'callgrind', 'line_profiler', 'pytorch memory', 'scalene', 'firefox profiler', 'perf stat', 'tensorboard', 'viztracer', 'perfetto', 'sqlite', 'speedscope']]);
const UNITS = /(?<![\p{L}])(?:ns|µs|ms|min|kB|[kMGTP]B|GB|px|UTC|kWh|TFLOP|FLOP|GiB|MiB|KiB)(?![\p{L}])/gu;
const KEYS = /\b(?:shift|alt|ctrl)[+ ].$|^(?:esc|backspace)$|\b(?:shift|alt|ctrl)\+./g;
/** As the browser writes them. */
const CLOCK = /\d+\/\d+\/\d+, \d+:\d+:\d+ [ap]m/g;
const isTold = (words) => {
  // no text has a digit or a _ within a word: models of GPUs, names of functions
  if (PRODUCTS.has(words) || /^\S*[\d_]\S*$/.test(words)) return true;
  if (told.has(words)) return true;
  for (const each of told) if (words.includes(' ') ? each.includes(words) : each.split(' ').includes(words) && each.length > words.length + 40) return true;
  return heardBytes.some((bytes) => bytes.includes(words));
};

/** What stands on the screen, is no word of the server and not in brackets. */
async function escapedTexts() {
  const seen = new Set();
  for (const {text, where} of await textsOfPage())
    for (const piece of text.replace(/⟦[^⟧]*⟧/gu, '\n').split('\n')) {
      if (!/\p{L}{2}/u.test(piece.replace(UNITS, ''))) continue;
      const words = plain(piece);
      if (isTold(words)) continue;
      // several things of the server side by side
      const loose = words.replace(CLOCK, '').split(/[,;·→|]| \(/).filter((part) => !isTold(part.trim())).join(',');
      const parts = loose.replace(UNITS, '').replace(KEYS, '').split(/[,;:·()→|]|(?<![\p{L}\d_])[\d.]+(?:\/s)?(?![\p{L}\d_-])/u);
      for (const part of parts.map((each) => each.replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, '').replace(/\/s$/, '').replace(/^\p{L} +/u, '')))
        if (/\p{L}{2}/u.test(part) && !isTold(part)) seen.add(`${part}  in ${where}: ${piece}`);
    }
  return [...seen];
}

async function look(name) {
  await answered();
  // what the server said is heard here a moment after the page shows it
  await eventually(async () => {
    assert.deepEqual(await escapedTexts(), [], `${name}: not in brackets`);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `${name}: ${wide} px wider than the window`);
  });
}

/** Another address without a reload, as a link on the page would go there. */
const goTo = (address) => page.evaluate((to) => {
  history.pushState(null, '', to);
  dispatchEvent(new PopStateEvent('popstate'));
}, `/${address}`);

const press = (text, within = page) => within.getByRole('button', {name: pseudo(text), exact: true}).first().click();
/** Looks at the dialog, or menu, that is open now, and closes it. */
const lookAndClose = async (name, selector = 'dialog[open]') => {
  await page.locator(selector).first().waitFor();
  await look(name);
  await page.keyboard.press('Escape');
  await page.locator(selector).waitFor({state: 'detached'});
};

let traces = [];
const idOf = (name) => traces.find((each) => each.name.startsWith(name)).id;
const damaged = () => traces.find(({state}) => state === 'failed').id;
const run2 = () => traces.find((each) => each.run).run;
const first = (rest) => () => `t/${idOf('1-')}${rest}`;

/** Address, and what is on the screen when it is whole. */
const SCREENS = {
  overview: [first(''), '[data-testid=workers-chart]'],
  timeline: [first('?view=timeline'), '.tl[data-settled=yes]'],
  'dock of gaps': [first('?view=timeline&dock=gaps'), '.tl[data-settled=yes]'],
  'dock of findings': [first('?view=timeline&dock=findings'), '.tl[data-settled=yes]'],
  'dock of steps': [first('?view=timeline&dock=steps'), '.tl[data-settled=yes]'],
  ...Object.fromEntries(['slices', 'gpu', 'idle', 'steps'].map((tab) =>
    [`area: ${tab}`, [first(`?view=timeline&sel=a:0,2000000000&tab=${tab}`), '.tl[data-settled=yes]']])),
  flame: [first('?view=flame'), 'canvas'],
  'flame of the host': [first('?view=flame&m=cpu'), 'canvas'],
  tables: [first('?view=kernels'), '.grid-row, [role=row]'],
  sql: [first('?view=sql'), 'textarea'],
  compare: [() => `compare?a=${idOf('1-')}&b=${idOf('2-')}`, 'main h2'],
  'a run of ranks': [() => `r/${run2()}`, '.ranks'],
  'a trace that failed': [() => `t/${damaged()}`, 'main'],
  journal: [() => 'p/-', '[data-testid=journal-run]'],
  trends: [() => 'p/-?tab=trends', '[data-testid=weeks-chart]'],
  series: [() => 'p/-?tab=series&setting=num_workers', '[data-testid=series-chart]'],
  members: [() => 'p/-?tab=settings', 'main form, main table'],
  reports: [() => 'reports', 'main'],
  findings: [() => 'findings', 'main li'],
  finding: [() => 'findings/small_kernels', 'main'],
  settings: [() => 'settings', 'main'],
  tokens: [() => 'settings/tokens', 'main'],
  users: [() => 'settings/users', 'main'],
  audit: [() => 'settings/audit', 'main'],
  'not found': [() => 'nothing/here', 'main'],
};

const steps = [
  ['the page is built in the language', async () => {
    const built = spawnSync('node', ['build.mjs', '--quick', '--out', dist], {cwd: join(ROOT, 'web'), env: {...process.env, LACUNA_LANG: 'en-XA'}, encoding: 'utf8'});
    assert.equal(built.status, 0, built.stderr);
    assert.match(readFileSync(join(dist, 'index.html'), 'utf8'), /<html lang="en-XA">/);
    await speakPseudo();
  }],
  ['who has no key is asked for it', async () => {
    await page.goto(server.base);
    await page.locator('input').first().waitFor();
    await look('key');
  }],
  ['how to begin', async () => {
    await page.goto(`${server.base}/#key=${server.key}`);
    await page.locator('.page-list').waitFor();
    await look('begin');
  }],
  ['the list, and what is done with a row', async () => {
    run('import', '--data', data, demoTrace('1-two-workers'), demoTrace('2-five-workers'), archiveOfRanks(scratch, 47));
    await server.api('traces?name=damaged', {method: 'POST', body: '[{"this is": no trace'});
    await until(async () => {
      ({traces} = await (await server.api('traces')).json());
      return traces.some(({state}) => state === 'failed');
    });
    await page.goto(server.base);
    await page.locator('.trace-row').nth(3).waitFor();
    await look('list');
    await page.locator('.row-pick').nth(1).check();
    await look('list, one selected');
  }],
  ...Object.entries(SCREENS).map(([name, [path, ready]]) => [name, async () => {
    await goTo(path());
    await page.locator(ready).first().waitFor();
    await look(name);
  }]),
  ['a gap, a kernel, the keys, the palette and what is shared', async () => {
    await goTo(`t/${idOf('1-')}?view=timeline`);
    await page.locator('.tl[data-settled=yes]').waitFor();
    await page.keyboard.press('g');
    await page.locator('.tl-details .tl-title').waitFor();
    await look('gap');
    await page.keyboard.press('?');
    await page.locator('dialog, [role=dialog]').first().waitFor();
    await look('keys');
    await page.keyboard.press('Escape');
    await page.keyboard.press('Control+k');
    await page.locator('[role=option]').first().waitFor();
    await look('palette');
    await page.keyboard.press('Escape');
  }],
  ['every dialog and menu of a trace', async () => {
    await goTo(`t/${idOf('1-')}`);
    await page.locator('.share-button').click();
    await lookAndClose('share a report');
    await page.locator('.explain').first().click();
    await lookAndClose('what a number means', '.explanation');
    await goTo(`t/${idOf('1-')}?view=timeline`);
    await page.locator('.tl[data-settled=yes]').waitFor();
    await page.keyboard.press('g');
    await page.locator('.tl-details .tl-title').waitFor();
    await page.keyboard.press('Shift+M');
    await lookAndClose('a new bookmark');
    const rows = await page.locator('.tl-stage').boundingBox();
    await page.mouse.click(rows.x + rows.width / 2, rows.y + 20, {button: 'right'});
    await lookAndClose('what can be done with a slice', '[role=menu]');
  }],
  ['every dialog of the list, of what is offered, and of a report', async () => {
    await goTo('');
    await page.locator('.trace-row').nth(3).waitFor();
    await page.locator('.row-pick').nth(1).check();
    const bar = page.locator('.selection-bar');
    await press('Edit', bar);
    await page.locator('.label-editor').waitFor();
    await look('labels of a trace');
    await press('Delete', bar);
    await lookAndClose('what is deleted');
    await page.locator('.row-pick').nth(2).check();
    await look('two selected, with labels for both');
    await goTo(`compare?a=${idOf('1-')}&b=${idOf('2-')}`);
    await page.locator('main h2').first().waitFor();
    await press('Add to a report');
    await lookAndClose('add to a report');
    const {id} = await (await server.api('reports', {method: 'POST', body: JSON.stringify({project: '', title: 'one', from: [idOf('1-')]})})).json();
    await goTo(`reports/${id}`);
    await press('Share');
    await lookAndClose('share a report that was written');
    await press('Delete');
    await lookAndClose('delete a report');
    told.add('trace.json'); // its name is that of the file
    await page.goto(`${server.base}/?url=${encodeURIComponent('https://127.0.0.1:1/trace.json')}`);
    await lookAndClose('a trace that another page offers');
  }],
  ['the settings of a project, and what is shown once: a webhook and a token', async () => {
    const json = (value) => ({method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(value)});
    await server.api('projects', json({name: 'a1'}));
    await server.api('users', json({name: 'u1', password: 'correct horse'}));
    await page.goto(`${server.base}/p/a1?tab=settings`);
    await page.locator('[data-testid=quota]').waitFor();
    const hooks = page.locator('[data-testid=webhooks]');
    await hooks.locator('input:not([type=checkbox])').first().fill('https://127.0.0.1:1/x1');
    await press('Add', hooks);
    await page.locator('.people-secret').waitFor();
    await look('a webhook');
    await goTo('settings/tokens');
    await page.locator('form input').first().fill('t1');
    await press('Make a token');
    await page.locator('.people-secret').waitFor();
    await look('a token');
  }],
  ['nothing complains', async () => assert.deepEqual(complaints.filter((each) => !/status of 40[14]/.test(each)), [])],
];

await main(steps);
