// What the pages say and draw beyond the one journey: what a gap waited for, and a GPU-less trace.
import assert from 'node:assert/strict';
import {writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {eventually, run, until} from './harness.mjs';
import {archiveOfRanks, demoTrace, stage} from './stage.mjs';

const {scratch, data, server, page, newPage, complaints, answered, main} = await stage();
const upload = async (path) => {
  await page.goto(`${server.base}/`);
  await page.getByRole('button', {name: 'Add traces'}).first().waitFor();
  await page.setInputFiles('#upload-input', path);
  await page.getByTestId('verdict').waitFor();
};

const steps = [
  ['the key opens the page', async () => {
    await page.goto(`${server.base}/#key=${server.key}`);
    await page.getByText('I have a trace of PyTorch').first().waitFor();
  }],
  ['a link leads past the header', async () => {
    await page.keyboard.press('Tab');
    const skip = page.getByRole('link', {name: 'Skip to content'});
    await eventually(async () => assert.ok((await skip.boundingBox()).y >= 0, 'in sight'));
    await page.keyboard.press('Enter');
    await until(() => page.evaluate(() => document.activeElement?.tagName === 'MAIN'));
    await eventually(async () => assert.ok((await skip.boundingBox()).y < 0, 'and away again'));
  }],
  ['people sign in with name and password, and a wrong one is said', async () => {
    const file = join(scratch, 'password');
    writeFileSync(file, 'correct horse\n');
    run('admin', 'user', 'add', 'ana', '--password-file', file, '--data', data);
    const other = await newPage({viewport: {width: 390, height: 700}});
    await other.goto(server.base);
    await other.getByLabel('name', {exact: true}).fill('ana');
    await other.getByLabel('password').fill('wrong horse');
    await other.getByRole('button', {name: 'Sign in'}).click();
    await other.getByText('Wrong name or password.').waitFor();
    await eventually(async () => assert.ok((await other.evaluate(() => document.documentElement.scrollWidth)) <= 390));
    await other.getByLabel('password').fill('correct horse');
    await other.getByRole('button', {name: 'Sign in'}).click();
    await other.getByText('I have a trace of PyTorch').first().waitFor();
    const cookie = (await other.context().cookies()).find((each) => each.name === 'lacuna_session');
    assert.ok(cookie.httpOnly && cookie.sameSite === 'Strict');
    await other.context().close();
  }],
  ['the first look takes 90 kB of scripts at most and all of them 160, the rest comes later', async () => {
    const index = await (await fetch(`${server.base}/`)).text();
    const first = [...index.matchAll(/"(\/[^"]+\.js)"/g)].map((match) => match[1]);
    const sizes = new Map();
    const weigh = async (path) => {
      if (sizes.has(path)) return;
      sizes.set(path, 0);
      const reply = await fetch(server.base + path, {headers: {'Accept-Encoding': 'gzip'}});
      sizes.set(path, Number(reply.headers.get('content-length')));
      const text = await reply.text();
      for (const [, name] of text.matchAll(/"\.\/([\w-]+\.js)"/g)) await weigh(`/${name}`);
    };
    for (const path of first) await weigh(path);
    const sum = (paths) => paths.reduce((bytes, path) => bytes + sizes.get(path), 0);
    const told = JSON.stringify(Object.fromEntries(sizes));
    assert.ok(first.includes('/app.js') && sizes.size > first.length, told);
    assert.ok(sum(first) <= 90000, `the first scripts are ${sum(first)} bytes: ${told}`);
    assert.ok(sum([...sizes.keys()]) <= 160000, `all scripts are ${sum([...sizes.keys()])} bytes: ${told}`);
    assert.ok(!first.some((path) => /timeline_panel|lazy_/.test(path)), String(first));
    await page.waitForFunction(() => ['lazy_pages', 'timeline_panel'].every((name) =>
      performance.getEntriesByType('resource').some((entry) => entry.name.includes(`/${name}-`) && entry.name.endsWith('.js'))));
  }],
  ['what does not come says so', async () => {
    const other = await page.context().newPage();
    await other.route(/\/lazy_pages-/, (route) => route.abort());
    await other.goto(`${server.base}/compare?a=x&b=y`);
    await other.getByText('This page failed to load').waitFor();
    await other.unroute(/\/lazy_pages-/);
    await other.getByRole('button', {name: 'Try again'}).click();
    await other.getByText('This page failed to load').waitFor({state: 'detached'});
    await other.close();
  }],
  ['no page is drawn before its words are here, and they are asked for again', async () => {
    const other = await page.context().newPage();
    await other.route(/\/vocabulary$/, (route) => route.abort());
    await other.goto(server.base);
    await other.getByText('This page could not be loaded').waitFor();
    assert.equal(await other.getByText('I have a trace of PyTorch').count(), 0);
    await other.unroute(/\/vocabulary$/);
    await other.getByText('I have a trace of PyTorch').first().waitFor();
    await other.close();
  }],
  ['a list that did not come is asked for again, also while events come', async () => {
    const other = await page.context().newPage();
    await other.route(/\/traces\?/, (route) => route.abort());
    const events = other.waitForResponse(/\/api\/v1\/events/);
    await other.goto(server.base);
    await events;
    await other.getByText('The list cannot be shown').waitFor();
    await other.unroute(/\/traces\?/);
    await other.getByText('I have a trace of PyTorch').first().waitFor();
    await other.close();
  }],
  ['a project shows its runs in a row, what was predicted, and keeps a note', async () => {
    run('import', '--data', data, demoTrace('1-two-workers'), demoTrace('2-five-workers'));
    await page.goto(`${server.base}/p/-`);
    const rows = page.getByTestId('journal-run');
    await page.getByText('within the band, it came true').waitFor();
    await eventually(async () => assert.match(await rows.first().innerText(), /num_workers 2 -> 5 \(one change\)/));
    await page.getByTestId('ladder-chart').locator('.ladder-predicted').waitFor();
    await rows.first().getByRole('button', {name: 'Note'}).click();
    await page.getByLabel('Why').fill('<b>the loader was late</b>');
    await page.getByRole('button', {name: 'Save'}).click();
    await page.locator('.journal-note', {hasText: '<b>the loader was late</b>'}).waitFor();
    await rows.last().getByRole('button', {name: 'Baseline'}).click();
    await page.getByText(/51\s% faster than the baseline/).waitFor();
    await page.getByRole('link', {name: 'By setting'}).click();
    await page.getByText('Throughput by num_workers').waitFor(); // the first one, before one is chosen
    await page.getByLabel('Setting').selectOption('num_workers');
    await page.getByTestId('series-chart').locator('.series-ideal').waitFor();
    await page.waitForURL(/\/p\/-\?tab=series&setting=num_workers$/);
    await page.goBack();
    await page.getByRole('link', {name: 'By week'}).click();
    await page.getByTestId('weeks-chart').waitFor();
    await page.getByText('in which no compute kernel ran').waitFor();
  }],
  ['runs that cannot be compared say why once, and which is A', async () => {
    await server.api('projects', {method: 'POST', body: JSON.stringify({name: 'few'})});
    for (const at of [1, 2]) {
      const events = [{ph: 'X', cat: 'kernel', name: 'gemm', pid: 0, tid: 7, ts: 1.6e15 * at, dur: 900, args: {device: 0, stream: 7}}];
      await server.api(`traces?name=few${at}&project=few`, {method: 'POST', body: JSON.stringify({schemaVersion: 1, traceEvents: events})});
    }
    await until(async () => (await (await server.api('traces?q=few')).json()).traces.filter((trace) => trace.state === 'ready').length === 2);
    await page.goto(`${server.base}/p/few`);
    const told = page.locator('.journal-changed');
    await told.waitFor();
    assert.match(await told.innerText(), /^Not compared with the run before it: (?!.*cannot be compared).*\. A is that run, B this one\.$/);
  }],
  ['a part that was not there is no 0 ms', async () => {
    await upload(demoTrace('1-two-workers'));
    const needs = page.locator('.needs', {hasText: /communication\s*(none|not recorded)/});
    assert.doesNotMatch(await needs.innerText(), /(^|\s)0\sms/);
  }],
  ['a gap leads to late batch, in the worker that made it', async () => {
    await page.getByRole('link', {name: 'Timeline', exact: true}).click();
    await page.locator('.tl-stage canvas').first().waitFor();
    await page.keyboard.press('g');
    await page.getByRole('button', {name: 'late batch'}).click();
    await page.locator('.tl-details .tl-title', {hasText: /^loader\./}).waitFor();
    await eventually(async () => {
      const text = await page.locator('.tl-details').innerText();
      assert.match(text, /worker/);
      assert.match(text, /batch\s+\d+/);
    });
  }],
  ['B goes from what a worker made to who waited for it and back; the queue has a row', async () => {
    await page.locator('.tl-row, .tl-labels', {hasText: 'batches ready'}).first().waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('loader.fetch');
    await page.locator('.tl-count', {hasText: /\d/}).waitFor();
    await page.keyboard.press('Enter');
    const title = (text) => page.locator('.tl-details .tl-title', {hasText: text});
    const batch = () => eventually(async () => {
      const [, number] = /batch\s+(\d+)/.exec(await page.locator('.tl-details').innerText()) ?? [];
      assert.ok(number, 'the details have a batch');
      return number;
    });
    await title('loader.fetch').waitFor();
    const made = await batch();
    await page.keyboard.press('Escape'); // what is looked for goes, then the field; the selection stays
    await page.keyboard.press('Escape');
    await page.keyboard.press('b');
    await title('loader.wait').waitFor();
    await eventually(async () => assert.equal(await batch(), made));
    await page.keyboard.press('Shift+b');
    await eventually(async () => assert.equal(Number(await batch()), Number(made) + 1));
    await title('loader.wait').waitFor();
    await page.keyboard.press('b');
    await title('loader.fetch').waitFor();
  }],
  ['where no batch was recorded nothing is offered', async () => {
    const event = (ts, dur, name, cat, tid, args = {}) => ({ph: 'X', cat, name, pid: 1, tid, ts, dur, args});
    const traceEvents = [];
    for (let i = 0; i < 4; i++) {
      traceEvents.push(event(i * 1000, 999, `ProfilerStep#${i}`, 'user_annotation', 1));
      traceEvents.push(event(i * 1000 + 10, 700, 'enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__', 'user_annotation', 1));
      traceEvents.push(event(i * 1000 + 720, 10, 'cudaLaunchKernel', 'cuda_runtime', 1, {correlation: i + 1}));
      traceEvents.push({...event(i * 1000 + 740, 200, 'gemm', 'kernel', 7, {device: 0, stream: 7, correlation: i + 1}), pid: 0});
    }
    const path = join(scratch, 'plain.json');
    writeFileSync(path, JSON.stringify({traceEvents}));
    await upload(path);
    await page.getByRole('link', {name: 'Timeline', exact: true}).click();
    await page.locator('.tl-stage canvas').first().waitFor();
    await page.keyboard.press('g');
    await page.locator('.tl-details .tl-title', {hasText: /waits/}).waitFor();
    await answered();
    assert.equal(await page.getByRole('button', {name: 'late batch'}).count(), 0);
  }],
  ['ranks of an archive are one row, which opens', async () => {
    await upload(archiveOfRanks(scratch, 47));
    await page.getByRole('link', {name: 'rank 0 of 2'}).waitFor();
    await page.getByRole('link', {name: 'All traces'}).click();
    const row = page.getByTestId('run');
    await row.waitFor();
    const single = page.locator('.trace-row', {hasText: 'rank 1'}).locator('.tag-rank');
    await eventually(async () => assert.equal(await single.count(), 0, 'ranks are hidden in their run'));
    await row.locator('.run-toggle').click();
    await single.first().waitFor();
  }],
  ['the run names the rank that the other waits for, and leads to it', async () => {
    await page.getByTestId('run').locator('.row-link').click();
    await page.locator('h1', {hasText: /waits for rank 0/}).waitFor();
    const late = page.locator('.ranks tr.rank-late');
    await late.filter({hasText: 'Rank 0'}).waitFor();
    await page.reload();
    await late.waitFor();
    await late.getByRole('link').click();
    await page.locator('.trace-name', {hasText: /rank0/}).waitFor();
    await page.getByRole('link', {name: 'rank 0 of 2'}).click();
    await late.waitFor();
  }],
  ['a run compares with another one, rank by rank', async () => {
    const run1 = page.url();
    assert.equal(await page.locator('.run-compare').count(), 0, 'with no other run nothing is offered');
    await upload(archiveOfRanks(scratch, 45));
    await page.goto(run1);
    await page.locator('.run-compare').getByRole('link', {name: 'Compare'}).click();
    const table = page.getByTestId('compared-ranks');
    await eventually(async () => {
      assert.equal(await table.locator('tbody tr').count(), 2);
      const first = await table.locator('tr[data-rank="0"]').innerText();
      assert.match(first, /Rank 0\s+[\d.]+\sm?s → [\d.]+\sm?s\s/);
      assert.match(first, /before/, 'rank 0 is late in the older run');
    });
    assert.match(page.url(), /compare\?a=[a-z2-7]{26}&b=[a-z2-7]{26}/);
    assert.equal(page.url().match(/a=([a-z2-7]+)/)[1], run1.match(/\/r\/([a-z2-7]+)/)[1], 'the older run is before');
    await page.getByRole('link', {name: 'Run A'}).click();
    await page.waitForURL(run1);
    await page.locator('.ranks').waitFor();
    if (process.env.LACUNA_PICTURES) {
      for (const scheme of ['light', 'dark']) {
        for (const width of [1280, 390]) {
          await page.emulateMedia({colorScheme: scheme});
          await page.setViewportSize({width, height: 900});
          await page.goto(run1);
          await page.locator('.run-compare').waitFor();
          await page.screenshot({path: join(process.env.LACUNA_PICTURES, `run-${scheme}-${width}.png`), fullPage: true});
          await page.locator('.run-compare').getByRole('link', {name: 'Compare'}).click();
          await table.waitFor();
          await page.screenshot({path: join(process.env.LACUNA_PICTURES, `compare-${scheme}-${width}.png`), fullPage: true});
        }
      }
      await page.setViewportSize({width: 1280, height: 800});
      await page.goto(run1);
      await page.locator('.ranks').waitFor();
    }
  }],
  ['the evidence of a run opens in the rank that it is about', async () => {
    await page.getByTestId('evidence').first().click();
    await page.locator('.tl-stage canvas').first().waitFor();
    await page.locator('.trace-name', {hasText: /rank0/}).waitFor();
    await page.waitForURL(/\/t\/[a-z2-7]+\?view=timeline/);
    await page.goBack();
    await page.locator('.ranks').waitFor();
  }],
  ['what the server left unanswered comes by itself when it is back', async () => {
    const analysis = /\/analysis(\?|$)/;
    await page.route(analysis, (route) => route.abort());
    await page.locator('.ranks').getByRole('link', {name: 'Rank 1'}).click();
    await page.getByText('The server is not responding').first().waitFor();
    await page.unroute(analysis);
    await page.getByTestId('verdict').waitFor();
    complaints.splice(0, complaints.length); // the browser's own about the aborted request
    await page.getByRole('link', {name: 'rank 1 of 2'}).click();
    await page.locator('.ranks').waitFor();
  }],
  ['a deleted trace says so to who has it open', async () => {
    await page.locator('.ranks').getByRole('link', {name: 'Rank 1'}).click();
    await page.locator('.trace-name', {hasText: /rank1/}).waitFor();
    await answered(); // what is asked of a trace that goes meanwhile is a 404, rightly
    const id = /\/t\/([a-z2-7]+)/.exec(page.url())[1];
    assert.equal((await server.api(`traces/${id}`, {method: 'DELETE'})).status, 204);
    await page.getByText('There is no such trace here').waitFor();
  }],
  ['and to whom no event told it', async () => {
    await page.route('**/api/v1/events', (route) => route.abort());
    await upload(join(scratch, 'plain.json'));
    await answered();
    const id = /\/t\/([a-z2-7]+)/.exec(page.url())[1];
    await server.api(`traces/${id}`, {method: 'DELETE'});
    await page.getByText('There is no such trace here').waitFor();
    await page.unroute('**/api/v1/events');
    complaints.splice(0, complaints.length); // the browser's own: no events, and the trace asked for once more
  }],
  ['a trace of the host alone opens its flame graph on the time of the host', async () => {
    const path = join(scratch, 'host.json');
    const event = (ts, dur, name) => ({ph: 'X', cat: 'cpu_op', name, pid: 1, tid: 1, ts, dur});
    writeFileSync(path, JSON.stringify({traceEvents: [event(0, 1000, 'aten::outer'), event(100, 500, 'aten::inner')]}));
    await upload(path);
    await page.getByRole('link', {name: 'Flame graph', exact: true}).click();
    await page.getByText(/^all /).first().waitFor();
    await eventually(async () => assert.equal(await page.getByRole('button', {name: 'Host threads'}).getAttribute('aria-pressed'), 'true'));
  }],
  ['a recording in which nothing is says why', async () => {
    const recording = join(scratch, 'nothing');
    run('run', '--quiet', '-o', recording, '--', 'python3', '-c', 'import time; time.sleep(0.2)');
    const {verdict} = JSON.parse(run('analyze', '--json', recording));
    assert.match(verdict.text, /^nothing was recorded: .{20}/);
    const [, id] = /^([a-z2-7]{26}) /m.exec(run('import', '--data', data, recording));
    await page.goto(`${server.base}/t/${id}`);
    await page.getByTestId('verdict').filter({hasText: verdict.text.slice(1)}).waitFor();
  }],
  ['a log of counters is told from a trace of the host', async () => {
    const path = join(scratch, 'gpu.csv');
    const row = (second, used) => `2026/04/25 16:06:${second}.000, 0, ${used} %\n`;
    writeFileSync(path, `timestamp, index, utilization.gpu [%]\n${row('06', 90)}${row('07', 10)}${row('08', 50)}`);
    await upload(path);
    await page.getByRole('heading', {name: 'Counters only'}).waitFor();
    assert.equal(await page.getByText('Host-only trace').count(), 0);
    const chart = page.locator('section', {has: page.locator('.chart-area')}).first();
    await chart.waitFor();
    for (const line of await chart.locator('path').all()) assert.doesNotMatch(await line.getAttribute('d'), /L/, 'a value holds until the next one');
    assert.match(await chart.locator('.chart-ends').innerText(), /^0\s+2\ss$/);
    const tabs = page.getByRole('navigation', {name: 'Views of this trace'});
    await eventually(async () => assert.match(await tabs.innerText(), /^Overview\s+Timeline\s+SQL$/, 'nothing ran that a table could list'));
    await page.locator('.no-device').getByRole('link', {name: 'timeline'}).click();
    await page.locator('.tl[data-settled=yes]').waitFor();
    await page.getByText('GPU 0: GPU utilization (%)').first().waitFor();
  }],
  ['findings are listed, and each leads to its document, with links, tables and code as elements', async () => {
    await page.goto(`${server.base}/findings`);
    await page.getByRole('link', {name: "A synchronization empties the GPU's queue"}).click();
    await page.getByRole('heading', {name: 'How the gain is computed'}).waitFor();
    await page.waitForURL(/\/findings\/sync-stall$/);
    await page.locator('.prose pre').first().waitFor();
    assert.equal(await page.locator('.prose').getByText('```').count(), 0);
    await page.getByRole('link', {name: 'All findings'}).click();
    await page.getByRole('link', {name: 'The GPU waits for the data loader'}).click();
    await page.locator('.prose table').first().waitFor();
    await page.getByRole('link', {name: 'cpu-throttled'}).first().click();
    await page.getByRole('heading', {name: /^cpu-throttled: /}).waitFor();
  }],
  ['on a phone nothing leaves the screen sideways', async () => {
    await upload(join(scratch, 'plain.json'));
    await page.getByRole('link', {name: 'Timeline', exact: true}).click();
    await page.locator('.tl-stage canvas').first().waitFor();
    await page.setViewportSize({width: 390, height: 844});
    const address = page.url().split('?')[0];
    await page.goto(`${address}?view=kernels`);
    await page.getByTestId('table-row').first().waitFor();
    const numbers = page.getByTestId('table-row').first().locator('.is-number');
    await eventually(async () => {
      const seen = await numbers.evaluateAll((cells) => cells.filter((cell) => cell.getBoundingClientRect().right <= innerWidth).length);
      assert.ok(seen >= 2, `${seen} numbers of a kernel are in sight`);
    });
    await page.goto(`${address}?view=flame`);
    await page.locator('.flame-shapes').waitFor();
    await eventually(async () => {
      for (const tools of ['.tools', '.flame-shapes']) assert.ok((await page.locator(tools).boundingBox()).height < 60, `${tools} are a line`);
    });
    await page.goto(`${address}?view=timeline`);
    await page.locator('.tl-stage canvas').first().waitFor();
    await page.setViewportSize({width: 720, height: 450});
    await eventually(async () => {
      const {x, width} = await page.locator('.tl-rows-button').boundingBox();
      assert.ok(x >= 0 && x + width <= 720, 'search and rows are in sight');
    });
    await page.setViewportSize({width: 390, height: 844});
    await page.locator('.tl').focus();
    await page.keyboard.press('g');
    await page.locator('.tl-details .tl-title', {hasText: /waits/}).waitFor();
    await answered();
    await eventually(async () => {
      for (const button of await page.locator('.tl-actions .tl-button').all()) {
        const box = await button.boundingBox();
        assert.ok(box && box.x + box.width <= 390, await button.innerText());
      }
    });
  }],
  ['nothing complained', async () => {
    assert.deepEqual(complaints, []);
  }],
];

await main(steps);
