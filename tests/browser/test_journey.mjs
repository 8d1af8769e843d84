// One person's way through the page: upload, verdict, evidence, kernel, launch, search, flame graph, reload.
import assert from 'node:assert/strict';
import {join} from 'node:path';
import {eventually} from './harness.mjs';
import {demoTrace, stage} from './stage.mjs';

const {scratch, server, page, complaints, answered, main} = await stage();
const selection = () => new URL(page.url()).searchParams.get('sel');
/** The address follows a moment later. */
const selected = (pattern) => page.waitForFunction((source) => new RegExp(source).test(new URL(location.href).searchParams.get('sel') ?? ''), pattern.source);
const details = () => page.locator('.tl-details .tl-title').innerText();

const steps = [
  ['the address with the key opens the page and loses the key', async () => {
    await page.goto(`${server.base}/#key=${server.key}`);
    await page.getByText('I have a trace of PyTorch').first().waitFor();
    assert.equal(new URL(page.url()).hash, '');
  }],
  ['an uploaded trace opens by itself when it is ready, with its verdict and the first change', async () => {
    await page.setInputFiles('#upload-input', demoTrace('1-two-workers'));
    await page.locator('h1', {hasText: /The GPU waits .* for data/}).waitFor();
    assert.match(await page.locator('.finding').first().innerText(), /num_workers=5/);
  }],
  ['the list has it as a row with its verdict', async () => {
    await page.getByRole('link', {name: 'All traces'}).click();
    const row = page.locator('.trace-row', {hasText: '1-two-workers'});
    await row.waitFor();
    await eventually(async () => assert.match(await row.innerText(), /The GPU waits .* of every 750/));
    await row.locator('.row-link').click();
    await page.locator('h1', {hasText: /The GPU waits/}).waitFor();
  }],
  ['the first evidence opens the gap in the timeline', async () => {
    await page.locator('.evidence-link').first().click();
    await page.locator('.tl-stage canvas').first().waitFor();
    await selected(/./);
    await page.locator('.tl-details').waitFor();
  }],
  ['G goes to the longest gap and says what it waited for', async () => {
    await page.keyboard.press('Escape');
    await page.keyboard.press('g');
    await page.locator('.tl-details .tl-title', {hasText: /GPU 0 waits .* for data/}).waitFor();
    await selected(/^g:0,/);
  }],
  ['the gap is drawn: its row carries the color of waiting for data', async () => {
    await page.locator('.tl[data-settled=yes]').waitFor();
    const clip = await page.locator('.tl-stage').boundingBox();
    await eventually(async () => {
      const picture = (await page.screenshot({clip})).toString('base64');
      const colored = await page.evaluate(async (base64) => {
        const image = new Image();
        image.src = `data:image/png;base64,${base64}`;
        await image.decode();
        const canvas = document.createElement('canvas');
        canvas.width = image.width;
        canvas.height = image.height;
        const context = canvas.getContext('2d');
        context.drawImage(image, 0, 0);
        const pixels = context.getImageData(0, 0, canvas.width, canvas.height).data;
        let count = 0;
        for (let i = 0; i < pixels.length; i += 4) {
          if (pixels[i] > 160 && pixels[i + 1] < 110 && pixels[i + 2] < 90) count++;
        }
        return count;
      }, picture);
      assert.ok(colored > 500, `${colored} pixels in the color of a wait for data`);
    });
  }],
  ['a kernel chosen in the table is selected in the timeline', async () => {
    await page.getByRole('link', {name: 'Tables', exact: true}).click();
    // the recording begins with a full queue: kernels of the optimizer are the first whose launch it has
    await page.getByPlaceholder('Filter by any text').fill('optimizer');
    // the filter follows a moment later, and a row that goes between press and release is not clicked
    await page.locator('[role=grid][aria-busy=false]').waitFor();
    await page.getByTestId('table-row').filter({hasText: 'optimizer'}).first().click();
    await page.locator('.tl-details .tl-title').waitFor();
    await selected(/^s:/);
    await page.locator('.tl-details', {hasText: /grid/i}).waitFor();
  }],
  ['L follows the kernel to its launch', async () => {
    // the first step's kernels were launched before the recording began: on to one of the next step
    for (let i = 0; i < 12; i++) {
      const before = selection();
      await page.getByRole('button', {name: 'same name ›'}).click();
      await page.waitForFunction((old) => new URL(location.href).searchParams.get('sel') !== old, before);
    }
    const kernel = selection();
    await page.keyboard.press('l');
    await page.locator('.tl-details .tl-title', {hasText: /Launch/}).waitFor();
    // the address follows selections in quick succession a moment later
    await page.waitForFunction((before) => new URL(location.href).searchParams.get('sel') !== before, kernel);
    await page.keyboard.press('l');
    await page.waitForFunction((before) => new URL(location.href).searchParams.get('sel') === before, kernel);
  }],
  ['L pressed before the details of the slice are here follows it when they are', async () => {
    const late = /\/slices\/\d+$/;
    await page.route(late, async (route) => {
      await new Promise((resolve) => setTimeout(resolve, 400));
      await route.continue().catch(() => undefined);
    });
    const before = selection();
    await page.getByRole('button', {name: 'same name ›'}).click();
    await page.keyboard.press('l');
    await page.locator('.tl-details .tl-title', {hasText: /Launch/}).waitFor();
    await page.unroute(late);
    await page.keyboard.press('l');
    await page.waitForFunction((old) => new URL(location.href).searchParams.get('sel') !== old, before);
    await page.locator('.tl-details', {hasText: /grid/i}).waitFor();
  }],
  ['search finds, and Enter goes to the next hit', async () => {
    await page.keyboard.press('/');
    await page.keyboard.type('loader.fetch');
    await page.locator('.tl-count', {hasText: /\d/}).waitFor();
    await page.keyboard.press('Enter');
    await page.locator('.tl-details .tl-title', {hasText: 'loader.fetch'}).waitFor();
    const first = selection();
    await page.keyboard.press('Enter');
    await page.waitForFunction((before) => new URL(location.href).searchParams.get('sel') !== before, first);
    await page.keyboard.press('Escape');
  }],
  ['the flame graph of a selected area opens', async () => {
    await page.getByRole('button', {name: 'Whole trace'}).click();
    const stage = await page.locator('.tl-stage').boundingBox();
    await page.mouse.move(stage.x + stage.width * 0.3, stage.y + stage.height * 0.8);
    await page.mouse.down();
    await page.mouse.move(stage.x + stage.width * 0.5, stage.y + stage.height * 0.8, {steps: 5});
    await page.mouse.up();
    await page.waitForFunction(() => /^a:/.test(new URL(location.href).searchParams.get('sel') ?? ''));
    await page.locator('.tl-details').getByRole('link', {name: 'flame graph', exact: true}).click();
    await page.getByText(/^all /).first().waitFor();
    await page.locator('main', {hasText: /selected/}).waitFor();
  }],
  ['a reload gives the same view', async () => {
    await answered();
    const before = page.url();
    const text = await page.locator('main').innerText();
    await page.reload();
    await page.waitForFunction((want) => document.querySelector('main')?.innerText === want, text);
    await answered();
    assert.equal(page.url(), before);
    await eventually(async () => assert.equal(await page.locator('main').innerText(), text));
  }],
  ['names from a trace are shown as text, never run', async () => {
    const evil = join(scratch, 'evil.json');
    const name = '<img src=x onerror=document.title=1>';
    const event = (n, ts) => ({ph: 'X', cat: 'kernel', name: n, pid: 0, tid: 7, ts, dur: 50, args: {device: 0, stream: 7, correlation: ts}});
    await (await import('node:fs/promises')).writeFile(evil, JSON.stringify({traceEvents: [event(name, 10), event(name, 100), event('</script>', 200)]}));
    await page.goto(server.base + '/');
    await page.setInputFiles('#upload-input', evil);
    await page.locator('.trace-name', {hasText: 'evil'}).waitFor();
    await page.locator('h1').waitFor();
    await page.getByRole('link', {name: 'Tables', exact: true}).click();
    await page.getByText('<img', {exact: false}).first().waitFor();
    assert.notEqual(await page.title(), '1');
  }],
  ['a damaged file is refused with a reason', async () => {
    const broken = join(scratch, 'broken.json');
    await (await import('node:fs/promises')).writeFile(broken, 'this is no trace at all');
    await page.goto(server.base + '/');
    await page.setInputFiles('#upload-input', broken);
    await page.locator('main').getByText(/unknown format/i).first().waitFor();
  }],
  ['nothing complained: no console error, no policy report', async () => {
    assert.deepEqual(complaints, []);
  }],
];

await main(steps);
