// What lies in a selected area: the dock's tabs against what the server counts, and as links.
import assert from 'node:assert/strict';
import {eventually, until} from './harness.mjs';
import {stage} from './stage.mjs';

const {server, page, newPage, complaints, answered, main} = await stage({demo: ['1-two-workers']});
await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
const dock = page.getByTestId('area-dock');
const param = (key) => new URL(page.url()).searchParams.get(key);
const tab = (name) => dock.getByRole('link', {name, exact: true});
const rows = () => dock.locator('tbody tr');
/** What the server says of the selected area. */
const counted = async (query = '') => {
  await page.waitForFunction(() => /^a:/.test(new URL(location.href).searchParams.get('sel') ?? '')); // the address follows
  return page.evaluate(countedInPage, query);
};
const countedInPage = async (more) => {
  const [t0, t1] = new URL(location.href).searchParams.get('sel').slice(2).split(',');
  const id = location.pathname.split('/').pop();
  return (await fetch(`/api/v1/traces/${id}/area?t0=${t0}&t1=${t1}${more}`)).json();
};

const row = () => page.getByTestId('table-row');
const served = (name, query = '') => page.evaluate(async ([table, more]) => (await fetch(`/api/v1/traces/${location.pathname.split('/').pop()}/tables/${table}${more}`)).json(), [name, query]);

const steps = [
  ['a drag opens the dock: the slices of the area by name, longest total first', async () => {
    await page.goto(`${server.base}/#key=${server.key}`);
    await page.locator('.trace-row .row-link').first().click();
    await page.getByRole('link', {name: 'Timeline', exact: true}).click();
    await page.locator('.tl[data-settled=yes]').waitFor();
    const view = await page.locator('.tl-stage').boundingBox();
    await page.mouse.move(view.x + view.width * 0.3, view.y + view.height * 0.7);
    await page.mouse.down();
    await page.mouse.move(view.x + view.width * 0.6, view.y + view.height * 0.7, {steps: 5});
    await page.mouse.up();
    await rows().first().waitFor();
    await eventually(async () => {
      const area = await counted();
      assert.ok(area.name_count > 5);
      assert.equal(await rows().count(), Math.min(200, area.name_count));
      assert.ok((await rows().first().innerText()).includes(area.names[0].short));
      assert.match(await dock.locator('.tl-dock-sum').innerText(), /slices, .* names/);
    });
  }],
  ['a press on a head sorts by it, once more the other way round', async () => {
    for (const [order, pick] of [['desc', 0], ['asc', 0]]) {
      const before = await rows().first().innerText();
      await dock.getByRole('button', {name: 'count'}).click();
      const area = await counted(`&sort=count&order=${order}`);
      await page.waitForFunction((want) => document.querySelector('.tl-dock-table tbody td')?.textContent?.replace(/\D/g, '') === want, String(area.names[pick].count));
      assert.notEqual(await rows().first().innerText(), before);
    }
    await dock.getByRole('button', {name: 'total'}).click();
  }],
  ['a name is a link that finds all its slices', async () => {
    const area = await counted();
    const name = area.names.find((n) => n.kind === 'kernel');
    await dock.getByRole('link', {name: name.short, exact: true}).first().click();
    await page.waitForFunction((want) => new URL(location.href).searchParams.get('q') === want, name.name);
    await dock.locator('.tl-dock-lit').first().waitFor();
    await dock.locator('.tl-dock-lit a').first().click();
    await page.waitForFunction(() => !new URL(location.href).searchParams.has('q'));
  }],
  ['only the rows shown: fewer slices', async () => {
    const all = await counted();
    const shown = await dock.locator('.tl-dock-sum').innerText();
    await dock.getByRole('checkbox').check();
    await eventually(async () => {
      const fewer = await dock.locator('.tl-dock-sum').innerText();
      assert.notEqual(fewer, shown);
      assert.ok(Number(fewer.match(/^[\d\s  ]+/)[0].replace(/\D/g, '')) <= all.slice_count * 2);
    });
    await dock.getByRole('checkbox').uncheck();
    await eventually(async () => assert.equal(await dock.locator('.tl-dock-sum').innerText(), shown));
  }],
  ['the table is copied whole, as CSV and as Markdown', async () => {
    const area = await counted();
    // said for 2.5 s: a look that begins after the click may come too late
    await Promise.all([dock.getByText('rows copied').waitFor(), dock.getByRole('button', {name: 'Copy as CSV'}).click()]);
    const csv = await page.evaluate(() => navigator.clipboard.readText());
    assert.equal(csv.trimEnd().split('\n').length, area.name_count + 1);
    assert.ok(csv.includes(`,${area.names[0].total_ns},`));
    await dock.getByRole('button', {name: 'Copy as Markdown'}).click();
    await page.waitForFunction(async () => (await navigator.clipboard.readText()).startsWith('| name'));
  }],
  ['GPU and idle time are those of the area, and each tab is an address', async () => {
    const area = await counted();
    const [device] = area.devices;
    assert.equal(device.busy_ns + device.idle_ns, device.span_ns);
    await tab('GPU').click();
    await dock.getByText(/GPU 0: busy/).waitFor();
    await page.waitForFunction(() => new URL(location.href).searchParams.get('tab') === 'gpu');
    const share = (100 * (device.span_ns - device.computing_ns)) / device.span_ns;
    const told = Number(/not computing ([\d.]+)/.exec(await dock.getByText(/not computing/).innerText())[1]);
    assert.ok(Math.abs(told - share) < 1, `${told} % of ${share} %`);
    assert.ok(device.computing_ns <= device.busy_ns && device.computing_ns > 0);
    await tab('Counters').click();
    await dock.getByRole('columnheader', {name: 'mean'}).waitFor();
    await eventually(async () => assert.ok((await rows().first().locator('td').nth(2).innerText()) !== ''));
    await tab('Idle by cause').click();
    await dock.getByText(/GPU 0: idle/).waitFor();
    assert.equal(Object.values(device.idle_by_cause_ns).reduce((a, b) => a + b, 0), device.idle_ns);
    await answered();
    await page.reload();
    await dock.getByText(/GPU 0: idle/).waitFor();
  }],
  ['the flame graph of the area, of what is asked for', async () => {
    const asked = page.waitForRequest((request) => /\/flame\?/.test(request.url()) && /metric=gpu/.test(request.url()));
    await tab('Flame').click();
    const [t0, t1] = param('sel').slice(2).split(',').map(Number);
    const flame = new URL((await asked).url()).searchParams;
    assert.deepEqual([Number(flame.get('t0')), Number(flame.get('t1'))], [t0, t1]);
    await dock.getByLabel('GPU waiting').check();
    await dock.locator('.flame-canvas').waitFor();
    assert.ok((await dock.locator('.flame-canvas').boundingBox()).height > 100);
  }],
  ['a step of the list becomes the area', async () => {
    await tab('Steps').click();
    const before = param('sel');
    await rows().first().getByRole('link').click();
    await page.waitForFunction((old) => new URL(location.href).searchParams.get('sel') !== old, before);
    await eventually(async () => assert.equal(await rows().count(), 1, 'that step alone'));
  }],
  ['the longest slice of a name is one press away', async () => {
    await tab('Slices').click();
    const area = await counted();
    await rows().first().filter({hasText: area.names[0].short}).getByTitle('Go to the longest').click();
    await page.waitForFunction((want) => new URL(location.href).searchParams.get('sel') === want, `s:${area.names[0].longest_slice}`);
  }],
  ['a kernel says what launched it, the operator what it launched', async () => {
    const table = await served('kernels', '?sort=count');
    const at = (id) => table.columns.findIndex((c) => c.id === id);
    const kernel = table.rows.find((r) => r.cells[at('operator')]?.startsWith('aten::')) ?? table.rows.find((r) => r.cells[at('operator')] !== null && r.cells[at('operator')] !== '(several)');
    const told = (slice) => page.evaluate(async (n) => (await fetch(`/api/v1/traces/${location.pathname.split('/').pop()}/slices/${n}/launched`)).json(), slice);
    const around = (await told(kernel.slice)).chain.filter((r) => r.kind !== 'api');
    await page.goto(`${page.url().split('?')[0]}?view=timeline&sel=s:${kernel.slice}`);
    const chain = page.locator('.tl-chain a');
    await eventually(async () => assert.equal(await chain.first().innerText(), around[0].short));
    await chain.first().click();
    await page.waitForFunction((want) => new URL(location.href).searchParams.get('sel') === want, `s:${around[0].slice}`);
    const toLaunch = page.locator('.tl-toolbar').getByRole('button', {name: 'Kernel to launch and back'});
    await eventually(async () => assert.equal(await toLaunch.isDisabled(), false, 'an operator leads to what it launched'));
    await page.goBack();
    await eventually(async () => assert.equal(await toLaunch.isDisabled(), false, 'a kernel has one'));
    await page.goForward();
    const work = await told(around[0].slice);
    assert.ok(work.launched.some((r) => r.slice === kernel.slice));
    await page.getByText('launched on GPUs').waitFor();
    await page.getByRole('link', {name: 'their time'}).click();
    await page.waitForFunction((want) => new URL(location.href).searchParams.get('sel') === want, `a:${work.first_ns},${Math.max(work.end_ns, work.first_ns + 1)}`);
  }],
  ['L leads from an operator to the first kernel that it launched, ] to the others, and arrows to all', async () => {
    const told = (slice) => page.evaluate(async (n) => (await fetch(`/api/v1/traces/${location.pathname.split('/').pop()}/slices/${n}/launched`)).json(), slice);
    let operator;
    let launched;
    for ({slice: operator} of [...(await served('operators')).rows, ...(await served('ranges')).rows]) {
      if (operator === undefined || operator === null) continue;
      ({launched} = await told(operator));
      if (launched.length > 2 && launched.length < 20) break;
    }
    assert.ok(launched.length > 2, 'one that launched several');
    const begin = launched[0].start_ns;
    const end = Math.max(...launched.map((r) => r.start_ns + r.dur_ns));
    const pad = Math.round((end - begin) / 10);
    await page.goto(`${page.url().split('?')[0]}?view=timeline&v=${begin - pad},${end - begin + 2 * pad}&sel=s:${operator}`);
    await page.getByText('launched on GPUs').waitFor();
    await page.locator('.tl[data-settled=yes]').waitFor();
    const centers = launched.map((r) => (r.start_ns + r.dur_ns / 2 - begin + pad) / (end - begin + 2 * pad));
    // each arrow ends in a dot: a run of its color in the column where it is
    const runs = () => page.evaluate((at) => {
      const canvas = document.querySelector('.tl-overlay');
      const context = canvas.getContext('2d');
      const probe = Object.assign(document.createElement('canvas'), {width: 1, height: 1}).getContext('2d');
      probe.fillStyle = getComputedStyle(document.querySelector('.tl')).getPropertyValue('--tl-accent').trim();
      probe.fillRect(0, 0, 1, 1);
      const [r, g, b] = probe.getImageData(0, 0, 1, 1).data;
      return at.map((part) => {
        const {data} = context.getImageData(Math.round(part * canvas.width), 0, 1, canvas.height);
        let longest = 0;
        for (let y = 0, run = 0; y < canvas.height; y++) {
          const is = data[4 * y] === r && data[4 * y + 1] === g && data[4 * y + 2] === b && data[4 * y + 3] === 255;
          run = is ? run + 1 : 0;
          longest = Math.max(longest, run);
        }
        return longest;
      });
    }, centers);
    await eventually(async () => assert.ok((await runs()).every((run) => run >= 5), `dots of ${await runs()}`));
    await page.locator('.tl').focus();
    const selected = (slice) => page.waitForFunction((want) => new URL(location.href).searchParams.get('sel') === want, `s:${slice}`);
    await page.keyboard.press('l');
    await selected(launched[0].slice);
    for (const next of launched.slice(1, 3)) {
      await page.keyboard.press(']');
      await selected(next.slice);
    }
    await page.keyboard.press('[');
    await selected((await told(launched[2].slice)).chain[0].slice);
  }],
  ['where more was launched than is told, the panel and the last one say so', async () => {
    const kernel = (await served('kernels', '?sort=count')).rows.find((r) => r.cells.some((cell) => /^aten::/.test(cell)));
    const told = (slice) => page.evaluate(async (n) => (await fetch(`/api/v1/traces/${location.pathname.split('/').pop()}/slices/${n}/launched`)).json(), slice);
    const operator = (await told(kernel.slice)).chain.find((r) => r.kind !== 'api').slice;
    const around = await told(operator);
    const [{slice}] = around.launched;
    const path = /\/launched$/;
    await page.route(path, (route) => route.fulfill({contentType: 'application/json', body: JSON.stringify({...around, count: 5000, launched: around.launched.slice(0, 1)})}));
    await page.goto(`${page.url().split('?')[0]}?view=timeline&sel=s:${operator}`);
    await page.getByText('arrows to the first 1').waitFor();
    await page.locator('.tl').focus();
    // the key comes before the details of the slice: what it says is said after them
    const details = /\/slices\/\d+$/;
    const late = async (route) => {
      await new Promise((resolve) => setTimeout(resolve, 300));
      await route.continue().catch(() => undefined);
    };
    await page.route(details, late);
    await page.keyboard.press('l');
    await page.waitForFunction((want) => new URL(location.href).searchParams.get('sel') === want, `s:${slice}`);
    await page.keyboard.press(']');
    await page.locator('[role=status]', {hasText: 'these were the first 1 of 5'}).waitFor();
    await page.unroute(details, late);
    await page.unroute(path);
  }],
  ['the launch is there before what is around a slice, and L stays where that does not come', async () => {
    const table = await served('kernels', '?sort=count');
    const at = table.columns.findIndex((c) => c.id === 'operator');
    const {slice: kernel} = table.rows.find((r) => r.cells[at]?.startsWith('aten::'));
    const path = /\/launched$/;
    const held = [];
    const before = complaints.length;
    await page.route(path, (route) => void held.push(route));
    await page.goto(`${page.url().split('?')[0]}?view=timeline&sel=s:${kernel}`);
    await page.locator('.tl-details').getByText('launched by').waitFor();
    const [{slice: operator}] = (await served('operators')).rows;
    await page.goto(`${page.url().split('?')[0]}?view=timeline&sel=s:${operator}`);
    await page.locator('.tl-title').waitFor();
    await until(() => held.length === 2);
    await Promise.all(held.splice(0).map((route) => route.abort().catch(() => undefined)));
    await answered();
    const toLaunch = page.locator('.tl-toolbar').getByRole('button', {name: 'Kernel to launch and back'});
    assert.equal(await toLaunch.isDisabled(), false, 'it is not known that nothing was launched');
    complaints.splice(before); // the browser says that requests failed
    await page.unroute(path);
  }],
  ['without a selection: findings, what is in view, gaps, steps and search hits, each an address', async () => {
    await page.keyboard.press('Escape');
    const whole = page.getByRole('navigation', {name: 'What to show of the trace'});
    const line = () => page.locator('.tl-details tbody tr');
    await whole.getByRole('link', {name: 'Gaps'}).click();
    const gaps = await served('gaps');
    await eventually(async () => assert.equal(await line().count(), Math.min(200, gaps.total)));
    await line().first().getByRole('link').click();
    await page.waitForFunction((want) => new URL(location.href).searchParams.get('sel') === want, `g:${gaps.rows[0].device},${gaps.rows[0].start_ns},${gaps.rows[0].start_ns + gaps.rows[0].dur_ns}`);
    await page.keyboard.press('Escape');
    await whole.getByRole('link', {name: 'Findings'}).click();
    await page.locator('.tl-dock-findings li').first().waitFor();
    await whole.getByRole('link', {name: 'In view'}).click();
    await dock.waitFor();
    await page.getByPlaceholder(/search names/).fill('sgd');
    await whole.getByRole('link', {name: 'Search hits'}).click();
    const longest = async (q) => (await page.evaluate(async (text) => (await fetch(`/api/v1/traces/${location.pathname.split('/').pop()}/search?q=${text}&sort=dur&limit=1`)).json(), q)).hits[0];
    const ofAll = await longest('e');
    await line().first().waitFor();
    const asked = page.waitForRequest((request) => /\/search\?q=e&/.test(request.url()) && /sort=dur/.test(request.url()));
    await page.getByPlaceholder(/search names/).fill('e'); // far more than are shown, or fetched
    await asked;
    await eventually(async () => assert.equal(await line().first().getByRole('link').innerText(), ofAll.name));
    await page.getByText(/hits, the first 200 shown/).waitFor();
    await page.getByPlaceholder(/search names/).fill('sgd');
    const {slice} = await longest('sgd');
    await line().first().waitFor();
    await page.waitForFunction(() => new URL(location.href).searchParams.get('dock') === 'hits');
    const [head, cell] = await page.locator('.tl-dock-table tr > :last-child').evaluateAll((cells) => cells.map((each) => getComputedStyle(each).textAlign));
    assert.equal(head, cell, 'the head of a column stands over its cells');
    await answered();
    await page.reload();
    await line().first().waitFor();
    await answered();
    assert.match(await line().first().getByRole('link').getAttribute('href'), new RegExp(`sel=s:${slice}\\b`));
    await line().first().getByRole('link').click();
    await page.waitForFunction((want) => new URL(location.href).searchParams.get('sel') === want, `s:${slice}`);
    await page.keyboard.press('Escape');
    await whole.getByRole('link', {name: 'Search hits'}).click();
    await page.getByPlaceholder(/search names/).fill('');
    await page.keyboard.press('Escape');
  }],
  ['every slice of a row is in a table, from the view on: the canvas for those who do not see it', async () => {
    await page.keyboard.press('Escape');
    await page.keyboard.press('0');
    const list = page.getByRole('button', {name: 'List the slices of main thread'});
    await list.focus(); // no pointer is needed
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => /^track:\d+$/.test(new URL(location.href).searchParams.get('q') ?? ''));
    const track = Number(new URL(page.url()).searchParams.get('q').slice(6));
    const all = await page.evaluate(async (n) => (await fetch(`/api/v1/traces/${location.pathname.split('/').pop()}/slices?track=${n}&limit=10000`)).json(), track);
    const {total} = await page.evaluate(async (n) => (await fetch(`/api/v1/traces/${location.pathname.split('/').pop()}/search?q=track:${n}&limit=1`)).json(), track);
    await page.getByText(new RegExp(`^${String(total).replace(/\B(?=(\d{3})+$)/g, '\\D')} hits`)).waitFor();
    const line = () => page.locator('.tl-details tbody tr');
    const names = () => line().getByRole('link').allInnerTexts();
    await eventually(async () => assert.deepEqual(await names(), all.slices.slice(0, 200).map((slice) => slice.name)));
    const t0 = all.slices[Math.floor(all.slices.length * 0.9)].start_ns; // far from the end, where a window would move
    const later = all.slices.filter((slice) => slice.start_ns >= t0);
    await page.evaluate(([from, dur]) => { history.replaceState(null, '', location.pathname + location.search.replace(/&v=[^&]*/, '') + `&v=${from},${dur}`); dispatchEvent(new PopStateEvent('popstate')); }, [t0, 1e5]);
    await eventually(async () => assert.deepEqual(await names(), later.slice(0, 200).map((slice) => slice.name)));
    await line().first().getByRole('link').press('Enter');
    await page.waitForFunction((want) => new URL(location.href).searchParams.get('sel') === want, `s:${later[0].id}`);
    await page.keyboard.press('Escape');
    await page.getByPlaceholder(/search names/).fill('');
    await page.keyboard.press('Escape');
    await page.keyboard.press('0');
  }],
  ['rows that were pinned, folded, opened and filtered are there after a reload', async () => {
    await page.keyboard.press('Escape');
    const labels = () => page.locator('.tl-labels').innerText();
    await page.getByRole('button', {name: /^rows: /}).click();
    const names = page.locator('.tl-labels .tl-name');
    const keep = page.getByRole('button', {name: 'Keep main thread at the top'});
    assert.equal(await names.first().innerText(), 'steps');
    await keep.dispatchEvent('click'); // its tools come with the pointer
    await eventually(async () => assert.deepEqual((await names.allInnerTexts()).slice(0, 2), ['main thread', 'steps']));
    await page.waitForFunction(() => /pin=t\d+/.test(new URL(location.href).searchParams.get('rows') ?? ''));
    await keep.dispatchEvent('click');
    await eventually(async () => assert.equal(await names.first().innerText(), 'steps'));
    await page.getByLabel('Filter rows by name').fill('worker');
    await page.waitForFunction(() => /only=worker/.test(new URL(location.href).searchParams.get('rows') ?? ''));
    await answered();
    const filtered = await labels();
    await page.reload();
    await page.waitForFunction((want) => document.querySelector('.tl-labels')?.innerText === want, filtered);
    await eventually(async () => assert.equal(await page.getByLabel('Filter rows by name').inputValue(), 'worker'));
    await page.getByLabel('Filter rows by name').fill('');
    await page.waitForFunction(() => new URL(location.href).searchParams.get('rows') === 'all');
    await page.getByRole('button', {name: /^rows: /}).click();
    await page.waitForFunction(() => !new URL(location.href).searchParams.has('rows'));
  }],
  ['a pinned row stays at the top while the others scroll: its label, its slices, and what a press selects', async () => {
    await page.setViewportSize({width: 1440, height: 480});
    for (const renderer of ['cpu', 'webgl']) {
      await page.goto(`${page.url().split('?')[0]}?view=timeline&renderer=${renderer}&rows=all`);
      await page.locator('.tl[data-settled=yes]').waitFor();
      const {tracks} = await page.evaluate(async () => (await fetch(`/api/v1/traces/${location.pathname.split('/').pop()}/tracks`)).json());
      const {index} = tracks.find((t) => t.kind === 'thread' && t.role === 'main');
      await page.goto(`${page.url().split('?')[0]}?view=timeline&renderer=${renderer}&rows=all;pin=t${index};fold=t${index}`);
      await page.locator('.tl[data-settled=yes]').waitFor();
      const scroller = page.locator('.tl-rows');
      const label = page.locator('.tl-label').filter({has: page.getByText('main thread', {exact: true})});
      const box = async () => [(await scroller.boundingBox()).y, (await label.boundingBox()).y, (await label.boundingBox()).height];
      /** What both canvases show of the pinned row, and of what is below it. */
      const shown = () => page.evaluate(() => ['.tl-base', '.tl-overlay'].map((of) => {
        const from = document.querySelector(of);
        const copy = Object.assign(document.createElement('canvas'), {width: from.width, height: 100});
        const context = copy.getContext('2d');
        context.drawImage(from, 0, 0);
        const height = document.querySelector('.tl-label').offsetHeight - 2;
        return [0, height + 4].map((y) => context.getImageData(0, y, copy.width, y === 0 ? height : 40).data.join());
      }));
      const [top, at, height] = await box();
      assert.equal(at, top, 'the first row');
      // WebGL's canvas is empty once it is shown, so only the CPU's is read
      const before = await shown();
      await scroller.evaluate((el) => el.scrollTo({top: 90}));
      await eventually(async () => {
        assert.ok(await scroller.evaluate((el) => el.scrollTop) > 50);
        assert.deepEqual(await box(), [top, at, height], 'its label is where it was');
        const after = await shown();
        const layers = renderer === 'cpu' ? [0, 1] : [1];
        for (const layer of layers) {
          assert.ok(after[layer][0] === before[layer][0], `the pinned row of layer ${layer} as before`);
          assert.ok(after[layer][1] !== before[layer][1], `the others of layer ${layer} scroll`);
        }
      });
      const covered = await label.evaluate((el) => {
        const {left, top: y} = el.getBoundingClientRect();
        return document.elementFromPoint(left + 30, y + 8).closest('.tl-label') === el;
      });
      assert.ok(covered, 'nothing lies over the label');
      const stage = await page.locator('.tl-stage').boundingBox();
      await page.mouse.click(stage.x + stage.width / 2, top + height / 2);
      await page.waitForFunction(() => /^s:/.test(new URL(location.href).searchParams.get('sel') ?? ''));
      const chosen = await page.evaluate(async () => (await fetch(`/api/v1/traces/${location.pathname.split('/').pop()}/slices/${new URL(location.href).searchParams.get('sel').slice(2)}`)).json());
      assert.equal(chosen.track, index);
    }
    await page.setViewportSize({width: 1440, height: 900});
    await page.goto(`${page.url().split('?')[0]}?view=timeline`);
    await page.locator('.tl[data-settled=yes]').waitFor();
  }],
  ['Ctrl A selects the whole time; F acts on no one who types meanwhile', async () => {
    await page.locator('.tl').focus();
    await page.keyboard.press('Control+a');
    const {duration_ns: whole} = await page.evaluate(async () => (await fetch(`/api/v1/traces/${location.pathname.split('/').pop()}/tracks`)).json());
    await page.waitForFunction((want) => new URL(location.href).searchParams.get('sel') === want, `a:0,${whole}`);
    const {rows: [kernel]} = await served('kernels', '?sort=count');
    let answer;
    const asked = new Promise((arrived) => page.route(`**/slices/${kernel.slice}`, (route) => {
      answer = () => route.continue();
      arrived();
    }));
    await page.evaluate((slice) => {
      history.pushState(null, '', `?view=timeline&sel=s:${slice}`);
      dispatchEvent(new PopStateEvent('popstate'));
    }, kernel.slice);
    await asked;
    await page.locator('.tl').focus();
    for (const key of ['f', 'Shift+F10']) await page.keyboard.press(key);
    await page.getByPlaceholder(/search names/).focus();
    await answer();
    await page.locator('.tl-details .tl-title').waitFor();
    await answered();
    assert.equal(param('v'), null, 'the window stays');
    assert.equal(await page.getByRole('menu').count(), 0, 'no menu takes the focus');
    await page.unroute(`**/slices/${kernel.slice}`);
    await page.locator('.tl').focus();
    await page.keyboard.press('Escape');
  }],
  ['tables: kernels by name with all columns of the server, a total row, ordered by a press on a head', async () => {
    await page.getByRole('link', {name: 'Tables', exact: true}).click();
    await row().first().waitFor();
    const table = await served('kernels');
    await eventually(async () => assert.equal(await row().count(), table.rows.length));
    await page.locator('.grid-sum', {hasText: 'all'}).waitFor();
    await page.getByRole('button', {name: 'p95', exact: true}).click();
    const byP95 = await served('kernels', '?sort=p95_ns&order=desc');
    await page.waitForFunction((want) => document.querySelector('[data-testid=table-row]')?.textContent.includes(want), byP95.rows[0].short);
    await page.waitForFunction(() => new URL(location.href).searchParams.get('sort') === 'p95_ns');
  }],
  ['the sums of a table are shown whole at each width', async () => {
    for (const width of [1440, 1024, 768]) {
      await page.setViewportSize({width, height: 900});
      for (const name of ['Kernels', 'Operators', 'CUDA calls']) {
        await page.getByRole('navigation', {name: 'Tables'}).getByRole('link', {name, exact: true}).click();
        await answered();
        const cut = await page.locator('.grid-sum .num').evaluateAll((cells) => cells.filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.textContent));
        assert.deepEqual(cut, [], `${name} at ${width} px`);
        assert.ok(await page.locator('.grid-sum .num').count() > 3);
      }
    }
    await page.setViewportSize({width: 1440, height: 900});
    await page.getByRole('navigation', {name: 'Tables'}).getByRole('link', {name: 'Kernels', exact: true}).click();
    await row().first().waitFor();
  }],
  ['by the operator that launched them, filtered, and copied', async () => {
    await page.getByLabel('Group').selectOption('operator');
    const table = await served('kernels', '?by=operator&sort=p95_ns&q=conv');
    await page.getByPlaceholder('Filter by any text').fill('conv');
    await page.getByText(`${table.total} rows`, {exact: true}).waitFor();
    await Promise.all([page.getByText('rows copied').waitFor(), page.getByRole('button', {name: 'Copy as CSV'}).click()]);
    const csv = await page.evaluate(() => navigator.clipboard.readText());
    assert.equal(csv.trimEnd().split('\n').length, table.total + 1);
    assert.ok(csv.startsWith(table.columns.map((c) => c.id).join(',')));
    await page.getByPlaceholder('Filter by any text').fill('');
  }],
  ['a row of steps is its area in the timeline, and the tables of that area are of it alone', async () => {
    await page.getByRole('navigation', {name: 'Tables'}).getByRole('link', {name: 'Steps'}).click();
    await row().filter({hasText: 'ProfilerStep'}).first().click();
    await dock.waitFor();
    const area = await counted();
    await page.getByRole('link', {name: 'Tables', exact: true}).click();
    await page.getByRole('navigation', {name: 'Tables'}).getByRole('link', {name: 'Kernels'}).click();
    await page.getByText(/^in the selected/).waitFor();
    const table = await served('kernels', `?t0=${area.t0_ns}&t1=${area.t1_ns}`);
    assert.equal(table.all.cells[table.columns.findIndex((c) => c.id === 'count')], area.names.filter((n) => n.kind === 'kernel').reduce((sum, n) => sum + n.count, 0));
    await page.getByText(`${table.total} rows`, {exact: true}).waitFor();
    const link = row().first().locator('.grid-link');
    const address = new URL(await link.getAttribute('href'), page.url());
    assert.deepEqual([address.searchParams.get('view'), address.searchParams.get('sel')], ['timeline', `s:${table.rows[0].slice}`]);
    await link.click();
    await page.waitForFunction((want) => new URL(location.href).searchParams.get('sel') === want, `s:${table.rows[0].slice}`);
    await page.waitForFunction(() => new URL(location.href).searchParams.has('v'), undefined, {polling: 100}); // what is asked for when it is pressed
  }],
  ['the address of a finding leads to its card', async () => {
    const [, findings] = await page.evaluate(async () => {
      const of = location.pathname.split('/').pop();
      return [of, (await (await fetch(`/api/v1/traces/${of}/analysis`)).json()).findings.map((each) => each.id)];
    });
    const id = `finding-${findings[findings.length - 1]}`;
    const beside = await newPage();
    await beside.goto(`${server.base}/#key=${server.key}`);
    await beside.locator('.trace-row').first().waitFor();
    await beside.goto(`${server.base}${new URL(page.url()).pathname}?view=overview#${id}`);
    await beside.waitForFunction((want) => document.activeElement?.id === want, id);
    const seen = await beside.locator(`#${id}`).boundingBox();
    assert.ok(seen.y < 900 && seen.y + seen.height > 0, 'it is on screen');
    await beside.close();
  }],
  ['Back undoes a zoom, not every frame of it', async () => {
    await page.goto(`${page.url().split('?')[0]}?view=timeline`);
    await page.locator('.tl[data-settled=yes]').waitFor();
    const shownWindow = () => new URL(page.url()).searchParams.get('v');
    await page.getByRole('button', {name: 'Zoom in'}).or(page.locator('.tl-toolbar button', {hasText: '+'})).first().click();
    await page.waitForFunction(() => new URL(location.href).searchParams.has('v'));
    /** A pause ends a gesture: it is what is tested. */
    const rest = async () => {
      let seen;
      await until(async () => {
        const before = seen;
        await page.waitForTimeout(1000);
        return (seen = shownWindow()) === before;
      });
      return seen;
    };
    const once = await rest();
    await page.locator('.tl').focus();
    await page.keyboard.down('w');
    await until(() => shownWindow() !== once);
    await page.waitForTimeout(400); // several frames
    await page.keyboard.up('w');
    await rest();
    await page.goBack();
    await page.waitForFunction((v) => new URL(location.href).searchParams.get('v') === v, once);
    await page.goBack();
    await page.waitForFunction(() => !new URL(location.href).searchParams.has('v'));
  }],
  ['the GPU, its launch queue and its memory have rows; a row that moves or goes is so after a reload', async () => {
    await page.goto(`${page.url().split('?')[0]}?view=timeline`);
    const label = (name) => page.locator('.tl-label').filter({has: page.getByText(name, {exact: true})});
    await label('GPU busy').waitFor();
    await label('launch queue').waitFor();
    const top = async (name) => Number.parseInt(await label(name).evaluate((el) => el.style.top), 10);
    await eventually(async () => assert.ok(await top('GPU busy') < await top('why idle') && await top('why idle') < await top('launch queue')));
    await label('launch queue').hover();
    await page.getByRole('button', {name: 'Move launch queue up'}).click();
    await page.waitForFunction(() => new URL(location.href).searchParams.get('rows')?.startsWith('order='));
    await label('why idle').hover();
    await page.getByRole('button', {name: 'Hide why idle'}).click();
    await label('show 1 hidden row').waitFor();
    await page.waitForFunction(() => new URL(location.href).searchParams.get('rows')?.includes('hide='));
    await page.reload();
    await label('show 1 hidden row').waitFor();
    await eventually(async () => assert.equal(await label('why idle').count(), 0));
    await page.getByRole('button', {name: 'show 1 hidden row'}).click();
    await label('why idle').waitFor();
    await eventually(async () => assert.ok(await top('launch queue') < await top('why idle')));
  }],
  ['a row is one stop of the Tab key, the arrows lead to its buttons and to other rows', async () => {
    await page.locator('.tl-filter').focus();
    const focused = () => page.evaluate(() => document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent);
    const walk = [['Tab', 'Move steps up'], ['ArrowRight', 'Move steps down'], ['ArrowDown', 'Move GPU busy up'], ['Tab', 'GPU 0'], ['ArrowRight', 'Move GPU 0 up'], ['ArrowUp', 'Move GPU busy up']];
    for (const [key, name] of walk) {
      await page.keyboard.press(key);
      await eventually(async () => assert.equal(await focused(), name));
    }
    // after a press with the pointer the arrows are the timeline's
    await page.locator('.tl-fold', {hasText: 'GPU 0'}).click();
    await page.locator('.tl-fold[aria-expanded=false]', {hasText: 'GPU 0'}).click();
    await page.keyboard.press('ArrowRight');
    await page.waitForFunction(() => new URL(location.href).searchParams.get('sel')?.startsWith('s:'));
    await page.keyboard.press('Escape');
  }],
  ['a drag goes from edge to edge, and a press with Shift measures from one slice to another', async () => {
    const {start_ns: starts} = await page.evaluate(async () => (await (await fetch(`/api/v1/traces/${location.pathname.split('/').pop()}/tracks`)).json()).steps);
    const [t0, width] = [starts[2] - 10e6, starts[6] - starts[2] + 20e6];
    await page.goto(`${page.url().split('?')[0]}?view=timeline&v=${t0},${width}`);
    await page.locator('.tl[data-settled=yes]').waitFor();
    const stage = await page.locator('.tl-overlay').boundingBox();
    const row = await page.locator('.tl-label-steps').first().boundingBox();
    const y = row.y + row.height / 2;
    const x = (t) => stage.x + ((t - t0) / width) * stage.width;
    const selected = async (want) => {
      await page.waitForFunction((sel) => new URL(location.href).searchParams.get('sel') === sel, want);
    };
    await page.mouse.move(x(starts[3]) + 4, y);
    await page.mouse.down();
    await page.mouse.move(x(starts[5]) - 40, y, {steps: 4});
    await page.mouse.move(x(starts[5]) + 3, y, {steps: 4});
    await page.mouse.up();
    await selected(`a:${starts[3]},${starts[5]}`);
    await page.mouse.click(x(starts[3]) + 30, y);
    await page.waitForFunction(() => /^s:/.test(new URL(location.href).searchParams.get('sel') ?? ''));
    await page.locator('.tl-details h2', {hasText: 'ProfilerStep'}).waitFor();
    await page.keyboard.down('Shift');
    await page.mouse.click(x(starts[4]) + 30, y);
    await page.keyboard.up('Shift');
    await selected(`a:${starts[3]},${starts[5]}`);
    const fact = page.locator('.tl-fact', {has: page.getByText('start to start', {exact: true})});
    await fact.waitFor();
    assert.match(await fact.locator('[title]').getAttribute('title'), new RegExp((starts[4] - starts[3]).toLocaleString('en').replaceAll(',', '\\D')));
  }],
  ['a bookmark keeps the selection with a note, for everybody who opens the trace', async () => {
    const {start_ns: starts} = await page.evaluate(async () => (await (await fetch(`/api/v1/traces/${location.pathname.split('/').pop()}/tracks`)).json()).steps);
    const marks = () => page.evaluate(async () => (await (await fetch(`/api/v1/traces/${location.pathname.split('/').pop()}/bookmarks`)).json()).bookmarks);
    const note = 'why is <b>this</b> one long?';
    await page.goto(`${page.url().split('?')[0]}?view=timeline&sel=a:${starts[3]},${starts[4]}`);
    await page.locator('.tl[data-settled=yes]').waitFor();
    await page.locator('.tl').focus();
    await page.keyboard.press('Shift+M');
    const dialog = page.getByRole('dialog', {name: 'New bookmark'});
    await dialog.getByLabel(/^Note/).fill(note);
    await dialog.getByLabel(/^Note/).press('Enter');
    await dialog.waitFor({state: 'detached'});
    const [mark] = await eventually(async () => {
      const all = await marks();
      assert.equal(all.length, 1);
      return all;
    });
    assert.deepEqual([mark.start_ns, mark.dur_ns, mark.note], [starts[3], starts[4] - starts[3], note]);
    await page.locator('.tl-bookmark-note', {hasText: note}).waitFor(); // over the area that it marks
    const other = await newPage();
    other.on('pageerror', (error) => complaints.push(String(error)));
    await other.goto(`${server.base}/#key=${server.key}`);
    await other.locator('.trace-row .row-link').first().waitFor();
    await other.goto(`${page.url().split('?')[0]}?view=timeline&dock=bookmarks`);
    await other.getByRole('button', {name: note, exact: true}).click();
    await other.waitForFunction((want) => new URL(location.href).searchParams.get('sel') === want, `a:${starts[3]},${starts[4]}`);
    // the other one gives it another note, and this page hears of it
    await other.locator('.tl-bookmark-note').getByRole('button', {name: 'edit'}).click();
    await other.getByRole('dialog', {name: 'Bookmark'}).getByLabel(/^Note/).fill('a validation');
    await other.getByRole('button', {name: 'Save'}).click();
    await page.locator('.tl-bookmark-note', {hasText: 'a validation'}).waitFor();
    await other.context().close();
    // a double click on the axis marks a single time; a press on the flag goes to it
    await page.keyboard.press('Escape');
    const axis = await page.locator('.tl-axis').boundingBox();
    await page.mouse.dblclick(axis.x + axis.width * 0.9, axis.y + axis.height / 2);
    await dialog.getByRole('button', {name: 'Save'}).click();
    await dialog.waitFor({state: 'detached'});
    await until(async () => (await marks()).length === 2);
    const single = (await marks()).find((each) => each.dur_ns === 0);
    await page.mouse.click(axis.x + axis.width * 0.9 + 2, axis.y + axis.height / 2);
    await page.waitForFunction((want) => new URL(location.href).searchParams.get('sel') === want, `a:${single.start_ns},${single.start_ns + 1}`);
    await page.locator('.tl-bookmark-note').getByRole('button', {name: 'edit'}).click();
    await page.getByRole('button', {name: 'Delete'}).click();
    await until(async () => (await marks()).length === 1);
    await page.locator('.tl-bookmark-note').waitFor({state: 'detached'});
    // opened again, it asks for them once
    let asked = 0;
    page.on('request', (request) => (asked += Number(request.url().endsWith('/bookmarks'))));
    await page.getByRole('link', {name: 'All traces'}).last().click();
    await page.locator('.trace-row .row-link').first().click();
    await page.getByRole('link', {name: 'Timeline', exact: true}).click();
    await page.locator('.tl[data-settled=yes]').waitFor();
    await eventually(async () => assert.equal(asked, 1));
  }],
  ['a step says what the GPU waited for in it, beside the mean step, and leads to the next and the slowest', async () => {
    const {tracks, steps} = await page.evaluate(async () => (await fetch(`/api/v1/traces/${location.pathname.split('/').pop()}/tracks`)).json());
    const row = tracks.find((track) => track.kind === 'steps').index;
    const slices = await page.evaluate(async ([track, end]) => (await fetch(`/api/v1/traces/${location.pathname.split('/').pop()}/slices?track=${track}&t0=0&t1=${end}`)).json(),
      [row, steps.start_ns.at(-1) + 1]);
    const [first, second] = [...slices.slices].sort((a, b) => a.start_ns - b.start_ns);
    await page.goto(`${page.url().split('?')[0]}?view=timeline&sel=s:${first.id}`);
    const panel = page.locator('.tl-details');
    const selected = (id) => page.waitForFunction((want) => new URL(location.href).searchParams.get('sel') === want, `s:${id}`);
    await panel.locator('.tl-step-waits tbody tr', {hasText: 'for data'}).waitFor();
    const analysis = await page.evaluate(async () => (await fetch(`/api/v1/traces/${location.pathname.split('/').pop()}/analysis`)).json());
    await eventually(async () => {
      const mean = await panel.locator('.tl-step-waits tbody tr', {hasText: 'for data'}).locator('td').last().getAttribute('title');
      assert.equal(Number(mean.replace(/\D/g, '')), analysis.partition.parts_ns.data_wait);
    });
    assert.doesNotMatch(await panel.innerText(), /launched by|latency|to launch/);
    await panel.getByRole('button', {name: 'step \u203a'}).click();
    await selected(second.id);
    const slowest = slices.slices.reduce((a, b) => (b.dur_ns > a.dur_ns ? b : a));
    if (slowest.id !== second.id) await panel.getByRole('button', {name: /^slowest/}).click();
    await selected(slowest.id);
    await panel.getByText('the slowest step', {exact: false}).waitFor();
    await page.keyboard.press('Escape');
  }],
  ['nothing complained', async () => assert.deepEqual(complaints, [])],
];

await main(steps);
