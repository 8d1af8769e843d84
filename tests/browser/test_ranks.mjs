// Many ranks in one picture: on one clock, aligned at a collective, as links; who came last.
import assert from 'node:assert/strict';
import {spawnSync} from 'node:child_process';
import {join} from 'node:path';
import {ROOT, eventually} from './harness.mjs';
import {stage} from './stage.mjs';

const RANKS = 16;
/** An archive with the traces of a sharded run. */
function sharded(scratch, count = RANKS) {
  const ranks = join(scratch, `ranks ${count}`);
  const made = spawnSync('python3', [join(ROOT, 'tests/support/sharded_run.py'), ranks, String(count), '--late', '5'], {encoding: 'utf8'});
  assert.equal(made.status, 0, made.stderr);
  const archive = join(scratch, `sharded ${count}.tar`);
  assert.equal(spawnSync('tar', ['cf', archive, '-C', ranks, '.']).status, 0);
  return archive;
}
const {scratch, server, page, complaints, answered, main} = await stage({demo: ['1-two-workers', '2-five-workers'], files: (scratch) => [sharded(scratch)]});
const picture = page.getByTestId('run-timeline');
const area = picture.getByRole('application');
const param = (key) => new URL(page.url()).searchParams.get(key);
const span = () => param('v')?.split(',').map(Number);
const holds = (condition, value) => page.waitForFunction(condition, value);
let runUrl = '';

const steps = [
  ['all ranks stand on one axis, without the tiles of any', async () => {
    const tiles = [];
    page.on('request', (request) => request.url().includes('/tiles/') && tiles.push(request.url()));
    await page.goto(`${server.base}/#key=${server.key}`);
    await page.getByTestId('run').locator('.row-link').click();
    await area.waitFor();
    await answered();
    runUrl = page.url();
    await eventually(async () => {
      assert.equal(await picture.locator('.strips-labels li').count(), RANKS);
      assert.match(await picture.locator('.strips-labels li', {hasText: 'late'}).textContent(), /^5 late/);
      assert.equal(await picture.locator('.share-bar').count(), RANKS);
      assert.match(await picture.locator('.share-bar').first().getAttribute('aria-label'), /^Rank 0: computing \d+.*communication alone \d+/);
      const drawn = await area.locator('canvas').evaluate((canvas) => {
        const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
        const colors = new Set();
        for (let i = 0; i < pixels.length; i += 4) colors.add(`${pixels[i]},${pixels[i + 1]},${pixels[i + 2]}`);
        return colors.size;
      });
      assert.ok(drawn > 3, `${drawn} colors on the canvas`);
    });
    assert.deepEqual(tiles, []);
    // what most ranks say of themselves is said once
    const says = page.locator('.rank-verdict');
    const repeated = (await says.allInnerTexts()).filter((text, i, all) => text.length > 30 && all.indexOf(text) !== i);
    assert.deepEqual(repeated, []);
    assert.equal(await page.getByText(/^\d+ of 16 ranks: /).count(), 1);
  }],
  ['a collective says who came last and how late; it is in the address, and Back undoes it', async () => {
    const said = picture.getByRole('status');
    await eventually(async () => assert.match(await said.textContent(), /entered last: rank 5/i));
    await picture.locator('.met-table a').first().click();
    await holds(() => new URL(location.href).searchParams.has('met'));
    await eventually(async () => assert.match(await said.textContent(), /rank 5 entered last, \d/));
    const arrivals = picture.locator('.met-arrivals svg');
    await eventually(async () => assert.equal(await arrivals.locator('circle').count(), RANKS));
    assert.match(await arrivals.locator('.arrival-last').textContent(), /^rank 5/);
    const chosen = page.url();
    await page.reload();
    await arrivals.waitFor();
    assert.equal(page.url(), chosen);
    await page.goBack();
    await arrivals.waitFor({state: 'detached'});
    assert.equal(param('met'), null);
  }],
  ['zooming by a drag and by keys; Back undoes a leap, then each zoom', async () => {
    await area.scrollIntoViewIfNeeded();
    const box = await area.boundingBox();
    await page.mouse.move(box.x + box.width * 0.25, box.y + box.height - 60);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.5, box.y + box.height - 40, {steps: 4});
    await page.mouse.up();
    await holds(() => new URL(location.href).searchParams.has('v'));
    const dragged = param('v');
    const [t0, length] = span();
    await eventually(async () => assert.match(await picture.locator('.share-bar').nth(5).getAttribute('aria-label'), /computing/));
    await page.waitForTimeout(1000); // a pause ends a gesture: what comes is another one
    await area.focus();
    await page.keyboard.press('w');
    await holds((before) => Number(new URL(location.href).searchParams.get('v').split(',')[1]) < before * 0.8, length);
    await page.keyboard.press('d');
    await holds((before) => Number(new URL(location.href).searchParams.get('v').split(',')[0]) > before, t0);
    await picture.getByRole('button', {name: 'All'}).click();
    await holds(() => new URL(location.href).searchParams.get('v').startsWith('0,'));
    await page.goBack();
    await holds(() => !new URL(location.href).searchParams.get('v').startsWith('0,'));
    assert.ok(span()[1] < length, 'back at the window before "All", as the keys had left it');
    await page.goBack();
    await holds((dragged) => new URL(location.href).searchParams.get('v') === dragged, dragged);
    await page.goBack();
    await holds(() => !new URL(location.href).searchParams.has('v'));
  }],
  ['arrow keys go through the collectives; a press on the picture picks one', async () => {
    await page.goto(runUrl);
    await area.waitFor();
    await answered();
    await area.focus();
    await page.keyboard.press('ArrowRight');
    await holds(() => new URL(location.href).searchParams.get('met') === '0');
    await page.keyboard.press('ArrowRight');
    await holds(() => new URL(location.href).searchParams.get('met') === '1');
    await page.keyboard.press('Escape');
    await holds(() => !new URL(location.href).searchParams.has('met'));
    await area.scrollIntoViewIfNeeded();
    const box = await area.boundingBox();
    await page.mouse.click(box.x + box.width / 2, box.y + box.height - 30);
    await holds(() => new URL(location.href).searchParams.has('met'));
  }],
  ['a rank leads to its own timeline at this time', async () => {
    await page.goto(`${runUrl}?v=100000000,50000000`);
    await area.waitFor();
    // its address has the window in the time of the rank, which comes with the rows
    await picture.locator('.strips-labels a[href*="v="]').first().click();
    await holds(() => new URL(location.href).searchParams.get('view') === 'timeline');
    assert.ok(Math.abs(span()[0] - 100000000) < 3e6 && Math.abs(span()[1] - 50000000) < 3e6, param('v'));
    await page.goBack();
    await area.waitFor();
  }],
  ['it fits a phone, in light and dark', async () => {
    for (const width of [390, 1024]) {
      await page.setViewportSize({width, height: 800});
      for (const colorScheme of ['light', 'dark']) {
        await page.emulateMedia({colorScheme});
        await page.goto(runUrl);
        await area.waitFor();
        await answered();
        const isWide = () => page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
        await eventually(async () => assert.equal(await isWide(), false, `${width} ${colorScheme}`));
        const table = page.locator('.ranks-scroll');
        if (width === 390) await eventually(async () => assert.ok(await table.evaluate((box) => box.scrollWidth <= box.clientWidth), 'all numbers of a rank are seen'));
        if (process.env.LACUNA_PICTURES) await page.screenshot({path: join(process.env.LACUNA_PICTURES, `ranks-${colorScheme}-${width}.png`), fullPage: true});
      }
    }
    await page.setViewportSize({width: 1440, height: 900});
    await page.emulateMedia({colorScheme: 'light'});
  }],
  ['two traces of any size stand one above the other, aligned at a step, with one zoom', async () => {
    await page.goto(server.base);
    await page.getByText('2-five-workers').first().waitFor();
    const ids = await page.evaluate(async () => {
      const {traces} = await (await fetch('/api/v1/traces')).json();
      return ['1-two', '2-five'].map((name) => traces.find((trace) => trace.name.startsWith(name)).id);
    });
    await page.goto(`${server.base}/compare?a=${ids[0]}&b=${ids[1]}`);
    const both = page.getByTestId('both-timelines');
    await both.waitFor();
    await answered();
    const waits = async (row) => /waiting for data (\d+)/.exec(await both.locator('.share-bar').nth(row).getAttribute('aria-label'))?.[1];
    await eventually(async () => assert.ok(Number(await waits(0)) > 40, 'A waits for data for half of its time'));
    assert.equal(await waits(1), undefined, 'B does not');
    await both.getByRole('button', {name: 'Next step'}).click();
    await holds(() => new URL(location.href).searchParams.get('met') === '1');
    await answered();
    const [t0, length] = span();
    assert.ok(Math.abs(t0 - 750e6) < 1e6 && Math.abs(length - 750e6) < 5e6, param('v'));
    const url = page.url();
    await page.reload();
    await both.locator('.share-bar').first().waitFor();
    assert.equal(page.url(), url);
    await eventually(async () => assert.equal(await both.getByRole('spinbutton').inputValue(), '1'));
    // a row leads to the trace's own timeline: B's step 1 begins at its own time
    await eventually(async () => {
      const hrefs = await both.locator('.strips-labels a').evaluateAll((links) => links.map((link) => Number(/v=(-?\d+)/.exec(link.href)?.[1])));
      assert.ok(Math.abs(hrefs[0] - 750e6) < 1e6 && Math.abs(hrefs[1] - 371e6) < 2e6, String(hrefs));
      assert.equal(await page.getByTestId('step-histograms').getByRole('img').count(), 1);
      const falls = page.getByRole('table', {name: 'From the step of A to the step of B'});
      assert.match(await falls.innerText(), /^A\s+750[\s\S]*waiting for data[\s\S]*379[\s\S]*B\s+371/);
    });
    const flame = await page.getByRole('link', {name: 'Difference flame graph'}).getAttribute('href');
    assert.match(flame, new RegExp(`/t/${ids[1]}.*with=${ids[0]}`));
    await page.getByRole('link', {name: 'Swap A and B'}).click();
    await holds((id) => new URL(location.href).searchParams.get('a') === id, ids[1]);
    await page.getByRole('heading', {level: 1}).filter({hasText: 'more time'}).waitFor();
  }],
  ['the palette has every view, trace, run and key, and goes to a time or a step; Back undoes it', async () => {
    const id = await page.evaluate(async () => (await (await fetch('/api/v1/traces')).json()).traces.find((trace) => trace.name.startsWith('2-five')).id);
    await page.goto(`${server.base}/t/${id}`);
    await page.getByTestId('verdict').waitFor();
    await answered();
    const field = page.getByRole('dialog').getByRole('combobox');
    const options = page.getByRole('dialog').getByRole('option');
    const ask = async (text) => {
      await page.keyboard.press('Control+k');
      await field.fill(text);
    };
    await ask('flame');
    await options.first().filter({hasText: 'Flame graph'}).waitFor();
    await page.keyboard.press('Enter');
    await holds(() => new URL(location.href).searchParams.get('view') === 'flame');
    await ask('2.5 s');
    await options.first().filter({hasText: /Go to 2.5.s/}).waitFor();
    await page.keyboard.press('Enter');
    await holds(() => new URL(location.href).searchParams.get('view') === 'timeline');
    const [t0, length] = span();
    assert.ok(Math.abs(t0 + length / 2 - 2.5e9) < 2, param('v'));
    await page.locator('.tl-base').waitFor();
    await ask('step 4');
    await options.first().filter({hasText: /step 4/i}).waitFor();
    await page.keyboard.press('Enter');
    await holds(() => Math.abs(Number(new URL(location.href).searchParams.get('v').split(',')[1]) - 371e6) < 3e6);
    await page.goBack();
    await holds((before) => new URL(location.href).searchParams.get('v').startsWith(before), String(t0));
    await ask('next gap size');
    await options.first().filter({hasText: /gap/}).waitFor();
    await page.keyboard.press('Enter');
    await holds(() => new URL(location.href).searchParams.get('sel')?.startsWith('g:'));
    await ask('');
    const isChosen = (at) => eventually(async () => assert.equal(await options.nth(at).getAttribute('aria-selected'), 'true'));
    await page.keyboard.press('ArrowDown');
    await isChosen(1);
    await page.keyboard.press('ArrowUp');
    await isChosen(0);
    await field.fill('sharded run');
    await eventually(async () => assert.match(await options.first().innerText(), /sharded[\s\S]*run of 16 traces/));
    await page.keyboard.press('Enter');
    await area.waitFor();
    await ask('no such thing at all');
    await eventually(async () => assert.equal(await options.count(), 0));
    await page.keyboard.press('Escape');
    await field.waitFor({state: 'detached'});
  }],
  ['a run of 64 ranks has a row for each, drawn', async () => {
    await page.goto(server.base);
    await page.getByRole('button', {name: 'Add traces'}).waitFor();
    await page.setInputFiles('#upload-input', sharded(scratch, 64));
    await page.getByRole('link', {name: /^rank \d+ of 64$/}).click({timeout: 120000}); // the page of the trace that was read first
    await picture.locator('.strips-labels li').nth(63).waitFor({timeout: 120000}); // once all are imported
    await eventually(async () => {
      assert.equal(await picture.locator('.strips-labels li').count(), 64);
      assert.equal(await picture.locator('.share-bar').count(), 64);
      assert.equal(await page.locator('.ranks tbody tr').count(), 64);
    });
    await answered();
    await eventually(async () => {
      const empty = await area.locator('canvas').evaluate((canvas) => {
        const room = canvas.height / 64;
        return Array.from({length: 64}, (_, rank) => rank).filter((rank) => {
          const pixels = canvas.getContext('2d').getImageData(0, Math.round(rank * room), canvas.width, Math.round(room)).data;
          const colors = new Set();
          for (let i = 0; i < pixels.length; i += 4) colors.add(`${pixels[i]},${pixels[i + 1]},${pixels[i + 2]}`);
          return colors.size < 3;
        });
      });
      assert.deepEqual(empty, [], 'ranks without a picture');
    });
  }],
  ['nothing complained', async () => {
    assert.deepEqual(complaints, []);
  }],
];

await main(steps);
