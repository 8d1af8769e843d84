// The list: its order, groups, labels, selection, and what a file that cannot be read is told.
import assert from 'node:assert/strict';
import {writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {eventually, until} from './harness.mjs';
import {stage} from './stage.mjs';

const series = ['1-two-workers', '2-five-workers', '3-channels-last'];
const {scratch, server, page, complaints, answered, main} = await stage({demo: series, importFlags: ['--project', 'series']});

const names = () => page.locator('.trace-row .row-link').allInnerTexts();
const row = (name) => page.locator('.trace-row', {hasText: name});

const steps = [
  ['each trace is one row with its whole verdict and its step times', async () => {
    await page.goto(`${server.base}/#key=${server.key}`);
    await row(series[0]).waitFor();
    assert.ok((await row(series[0]).boundingBox()).height <= 42);
    const verdict = row(series[0]).locator('.cell-verdict');
    assert.ok(await verdict.evaluate((cell) => cell.scrollHeight <= cell.clientHeight + 1 && cell.scrollWidth <= cell.clientWidth), 'cut off');
    await row(series[0]).locator('.spark svg').waitFor();
    await eventually(async () => {
      assert.match(await row(series[0]).locator('.gain').innerText(), /2\.0× faster/);
      assert.match(await row(series[0]).locator('.gain').getAttribute('title'), /750 → 37\d/);
    });
  }],
  ['a head sorts, the address keeps it, and groups have heads', async () => {
    const areNamed = (want) => eventually(async () => assert.deepEqual(await names(), want));
    await page.getByRole('button', {name: 'step', exact: true}).click();
    await areNamed(series);
    await page.getByRole('button', {name: /^step/}).click();
    await areNamed([...series].reverse());
    await until(() => /sort=-step/.test(page.url()));
    await page.reload();
    await row(series[0]).waitFor();
    await areNamed([...series].reverse());
    await page.getByLabel('Groups').selectOption('project');
    await page.locator('.group-head', {hasText: /series\s+3/}).waitFor();
  }],
  ['a job that hangs stands above the list until it goes on', async () => {
    const ask = async (method, path, body, headers) => {
      const reply = await server.api(path, {method, body, headers: {'Tus-Resumable': '1.0.0', ...headers}});
      assert.ok(reply.ok, `${method} ${path}: ${reply.status}`);
      return reply;
    };
    const metadata = `name ${Buffer.from('nightly').toString('base64')}`;
    const {id} = await (await ask('POST', 'uploads', undefined, {'Upload-Defer-Length': '1', 'Upload-Metadata': metadata})).json();
    const hang = {after_s: 9, doing: 'rank 1 waits in barrier at <b>train.py</b>:31', others: 'rank 0 waits in all_reduce'};
    await ask('PUT', `uploads/${id}/hang`, JSON.stringify(hang), {'Content-Type': 'application/json'});
    await page.reload();
    const line = page.getByRole('alert');
    await line.waitFor();
    assert.match(await line.innerText(), /^nightly: no progress since \d\d:\d\d: rank 1 waits in barrier at <b>train\.py<\/b>:31; rank 0 waits in all_reduce$/);
    await ask('DELETE', `uploads/${id}/hang`);
    await line.waitFor({state: 'detached', timeout: 60_000});
    await ask('DELETE', `uploads/${id}`);
  }],
  ['a trace is renamed, tagged and noted where it stands', async () => {
    await row(series[2]).hover();
    await page.getByRole('button', {name: `Edit ${series[2]}`}).click();
    const form = page.getByRole('form', {name: `Labels of ${series[2]}`});
    await form.getByLabel('Name').fill('channels last, best so far');
    await form.getByLabel('Tags').fill('bf16, V100');
    await form.getByLabel('Notes').fill('compare with the next one');
    await form.getByRole('button', {name: 'Save'}).click();
    await row('channels last, best so far').locator('.tag-own', {hasText: 'bf16'}).waitFor();
    await page.reload();
    await row('channels last, best so far').getByRole('img', {name: /compare with the next one/}).waitFor();
    await page.getByLabel('Groups').selectOption('tag');
    await page.locator('.group-head', {hasText: /V100\s+1/}).waitFor();
    await page.getByLabel('Groups').selectOption('');
  }],
  ['what closes gives the focus back to what opened it', async () => {
    assert.equal(await page.title(), 'Traces · Lacuna');
    const isBack = (opener) => eventually(async () => assert.ok(await opener.evaluate((button) => button === document.activeElement)));
    const press = async (name) => {
      const opener = page.getByRole('button', {name});
      await opener.focus();
      await page.keyboard.press('Enter');
      return opener;
    };
    for (const close of [() => page.keyboard.press('Escape'), () => page.getByRole('dialog').getByRole('button', {name: 'Close'}).click()]) {
      const opener = await press('Shortcuts and legend');
      await page.getByRole('dialog').waitFor();
      await close();
      await page.getByRole('dialog').waitFor({state: 'detached'});
      await isBack(opener);
    }
    const opener = await press('Edit channels last, best so far');
    await page.getByRole('form', {name: /^Labels of/}).getByLabel('Name').press('Escape');
    await isBack(opener);
    // also for whoever goes on before the next frame
    await opener.evaluate(async (button) => {
      button.focus();
      button.click();
      const field = () => document.querySelector('.label-editor input');
      for (let turn = 0; turn < 1000 && field() === null; turn++) await undefined;
      field().focus();
      field().dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape', bubbles: true}));
    });
    await page.locator('.label-editor').waitFor({state: 'detached'});
    await isBack(opener);
  }],
  ['the bar at the bottom labels what is selected, and compares two either way', async () => {
    await page.getByLabel('Select all').check();
    await page.getByLabel('Tag, project or run for 3 traces').fill('week 12');
    await page.getByRole('button', {name: 'Set project'}).click();
    await until(async () => (await page.locator('.cell-name .tag', {hasText: 'week 12'}).count()) === 3);
    await page.getByLabel('Tag, project or run for 3 traces').fill('three of one job');
    await page.getByRole('button', {name: 'Join into a run'}).click();
    await row('three of one job').getByText('3 traces').waitFor();
    await page.getByRole('button', {name: 'Take the run apart'}).click();
    await until(async () => (await names()).length === 3 && (await row('three of one job').count()) === 0);
    await page.getByLabel('Select channels last, best so far').uncheck();
    const href = () => page.getByRole('link', {name: 'Compare', exact: true}).getAttribute('href');
    const before = await href();
    await page.getByRole('button', {name: 'Swap A and B'}).click();
    const [, a, b] = /a=(\w+)&b=(\w+)/.exec(before);
    await eventually(async () => assert.match(await href(), new RegExp(`a=${b}&b=${a}`)));
    await page.keyboard.press('Escape');
    await page.locator('.selection-bar').waitFor({state: 'detached'});
  }],
  ['no match says so and shows all again', async () => {
    await page.keyboard.press('/');
    await page.keyboard.type('week nothing');
    await page.getByText('No match').waitFor();
    assert.equal(await page.getByText('Record a job with').count(), 0);
    await page.getByRole('button', {name: 'Show all 3'}).click();
    await until(async () => (await names()).length === 3);
  }],
  ['a file that cannot be read says what it looks like and what to do', async () => {
    const path = join(scratch, 'my run.ncu-rep');
    writeFileSync(path, 'no trace at all');
    await page.setInputFiles('#upload-input', path);
    await page.getByRole('heading', {name: 'It looks like a report of Nsight Compute'}).waitFor();
    await page.locator('.broken', {hasText: /lacuna run -- python train\.py/}).waitFor();
    // its address alone, of each view: what the server does not have of it is not asked for
    const refused = [];
    page.on('response', (reply) => reply.status() >= 400 && refused.push(`${reply.status()} ${reply.url()}`));
    for (const view of ['', '?view=timeline', '?view=flame']) {
      await page.goto(page.url().replace(/\?.*/, '') + view);
      await page.getByRole('heading', {name: 'It looks like a report of Nsight Compute'}).waitFor();
      await answered();
    }
    assert.deepEqual(refused, []);
    await page.getByRole('button', {name: 'Delete it'}).click();
    await page.getByRole('button', {name: 'Delete', exact: true}).click();
    await page.getByText('There is no such trace here').waitFor();
    await page.getByRole('link', {name: 'All traces'}).first().click();
    await until(async () => (await names()).length === 3);
  }],
  ['a file on its way is one row, with what is left to send', async () => {
    const network = await page.context().newCDPSession(page);
    const limit = (uploadThroughput) => network.send('Network.emulateNetworkConditions', {offline: false, latency: 0, downloadThroughput: -1, uploadThroughput});
    const big = join(scratch, 'on its way.json');
    writeFileSync(big, JSON.stringify({traceEvents: [{name: 'x'.repeat(400_000), ph: 'X', ts: 0, dur: 1, pid: 1, tid: 1}]}));
    const next = join(scratch, 'report.nvvp'); // a database, which is read
    writeFileSync(next, 'SQLite format 3');
    await limit(40_000);
    await page.setInputFiles('#upload-input', [big, next]);
    await row('on its way').getByText('kB/s').waitFor();
    await row('report').getByText('queued, 15 B').waitFor();
    assert.equal(await row('on its way').count(), 1);
    await page.getByRole('button', {name: 'Cancel report.nvvp'}).click();
    await page.getByRole('button', {name: 'Cancel on its way.json'}).click();
    // the limit stays until the server let go of it: what is left would be sent faster than the abort arrives
    await until(async () => !(await page.evaluate(() => fetch('/api/v1/traces').then((r) => r.text()))).includes('on its way'));
    await limit(-1);
    await until(async () => (await row('on its way').count()) === 0);
  }],
  ['on a phone nothing leaves the screen sideways', async () => {
    await page.setViewportSize({width: 390, height: 844});
    await page.getByLabel('Select 1-two-workers').check();
    await page.locator('.selection-bar').waitFor();
    await until(() => page.evaluate(() => document.documentElement.scrollWidth <= 390));
  }],
  ['nothing complained', async () => {
    assert.deepEqual(complaints, []);
  }],
];

await main(steps);
