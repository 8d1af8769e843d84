// The overview: the ladder of changes, caveats under the headline, and the charts of the recording.
import assert from 'node:assert/strict';
import {eventually, until} from './harness.mjs';
import {stage} from './stage.mjs';

const {server, page, complaints, answered, main} = await stage({demo: ['1-two-workers']});
const get = async (path) => (await server.api(path)).json();
const [{id}] = (await get('traces')).traces;
const analysis = await get(`traces/${id}/analysis`);

const steps = [
  ['the ladder has a rung for each change, from one step time to the next', async () => {
    await page.goto(`${server.base}/#key=${server.key}`);
    await page.locator('.trace-row .row-link').first().click();
    const rungs = page.getByTestId('ladder').locator('li');
    await rungs.first().waitFor();
    const headline = await page.getByTestId('verdict').evaluate((heading) => heading.textContent);
    assert.match(headline, /\d\u00a0ms/);
    assert.doesNotMatch(headline, /\d (ms|s|%)/, 'no line ends between a number and its unit');
    await eventually(async () => {
      assert.equal(await rungs.count(), analysis.plan.length);
      assert.match(await rungs.first().innerText(), /2\.0× faster \(750 → 371\sms\)/);
      assert.match(await rungs.nth(1).innerText(), /\(371 → 299\sms\)/);
      assert.equal(await page.getByTestId('ladder').locator('a[href]').count(), analysis.plan.length);
    });
    await rungs.first().locator('a').click();
    await until(() => page.evaluate(() => document.activeElement?.classList.contains('finding')));
  }],
  ['what the trace is not good for stands under the headline', async () => {
    const caveats = page.getByRole('list', {name: 'Limits of this trace'});
    await eventually(async () => assert.equal(await caveats.count(), analysis.caveats.length > 0 ? 1 : 0));
    assert.equal(await page.getByText('Limits of this trace', {exact: true}).count(), 0);
  }],
  ['step times are stacked by cause, and a press opens that step', async () => {
    const chart = page.getByTestId('step-chart');
    await chart.locator('svg path.fill-data_wait').waitFor();
    assert.match(await chart.innerText(), /28 steps/);
    await answered(); // charts above it that come later move it
    const box = await chart.locator('.chart').boundingBox();
    await page.mouse.click(box.x + box.width - 4, box.y + 60);
    await page.locator('.tl-stage canvas').first().waitFor();
    await until(() => /v=\d+/.test(page.url()));
    const start = Number(/v=(\d+)/.exec(page.url())[1]);
    const steps = await get(`traces/${id}/steps`);
    assert.equal(start, steps.start_ns.at(-1));
    await page.goBack();
  }],
  ['idle time over the recording, and what more workers do', async () => {
    await page.getByTestId('idle-chart').locator('svg path.fill-data_wait').waitFor();
    const workers = page.getByTestId('workers-chart');
    await eventually(async () => {
      assert.match(await page.getByTestId('idle-chart').locator('.panel-aside').innerText(), /^idle \d\d(\.\d)?\s% of \d/);
      assert.match(await workers.locator('svg').getAttribute('aria-label'), /today 2 workers: 750\sms; advised 5 workers: 37\d\sms/);
    });
  }],
  ['a number that is pressed leads to what it counts', async () => {
    await page.locator('.legend tr', {hasText: 'waiting for data'}).locator('.explain').click();
    const panel = page.getByRole('dialog', {name: 'Waiting for data'});
    await panel.getByRole('link', {name: 'Show what it counts'}).click();
    await panel.waitFor({state: 'detached'});
    const {total} = await get(`traces/${id}/tables/gaps?q=data_wait`);
    await page.getByText(`${total} gaps`).waitFor();
    await page.goBack();
    await page.getByTestId('idle-chart').waitFor();
  }],
  ['on a phone nothing leaves the screen sideways', async () => {
    await page.setViewportSize({width: 390, height: 844});
    await until(() => page.evaluate(() => document.documentElement.scrollWidth <= 390));
  }],
  ['a fragment that is none of ours is left alone', async () => {
    await page.goto(`${server.base}/t/${id}#50%`);
    await page.reload(); // a fragment alone loads nothing
    await page.getByTestId('ladder').waitFor();
    await answered();
    assert.deepEqual(complaints, []);
  }],
  ['nothing complained', async () => {
    assert.deepEqual(complaints, []);
  }],
];

await main(steps);
