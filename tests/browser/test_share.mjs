// Compare two traces, and share one: the page's own way, and the exported file opened from disk without scripts.
import assert from 'node:assert/strict';
import {readFileSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {pathToFileURL} from 'node:url';
import {eventually, run} from './harness.mjs';
import {demoTrace, stage} from './stage.mjs';

const {scratch, server, page, newPage, listen, complaints, main} = await stage({demo: ['1-two-workers', '2-five-workers']});
const paper = await newPage({javaScriptEnabled: false});
listen(paper);
const report = join(scratch, 'report.html');
const fetched = [];
paper.on('request', (request) => fetched.push(request.url()));

/** Contrast of two colors as CSS gives them. */
function contrast(a, b) {
  const light = (color) => {
    const [r, g, blue] = color.match(/\d+(\.\d+)?/g).map(Number).map((v) => v / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * blue;
  };
  const [high, low] = [light(a), light(b)].sort((x, y) => y - x);
  return (high + 0.05) / (low + 0.05);
}

const steps = [
  ['two picked rows make a comparison, the older one before', async () => {
    await page.goto(`${server.base}/#key=${server.key}`);
    await page.getByLabel('Select 2-five-workers').check();
    await page.getByText('select another trace').waitFor();
    await page.getByLabel('Select 1-two-workers').check();
    await page.getByRole('link', {name: 'Compare', exact: true}).click();
    await page.locator('.compare-head').waitFor();
    await eventually(async () => {
      assert.match(await page.locator('h1').innerText(), /^B takes 51.% less time per step .*more than noise/);
      assert.match(await page.locator('.compare-side').first().innerText(), /1-two-workers/);
    });
    assert.match(page.url(), /\/compare\?a=[a-z2-7]{26}&b=[a-z2-7]{26}$/);
  }, page],
  ['it says what changed, what was predicted, and where the time went', async () => {
    await eventually(async () => {
      const text = await page.locator('main').innerText();
      assert.match(text, /num_workers\s+2 → 5/);
      assert.match(text, /one change/);
      assert.match(text, /predicted 37[01].ms.*achieved 371.ms/s);
      assert.match(text, /within the band/);
      const first = page.locator('.went-row').nth(1); // after A's own bar
      assert.match(await first.innerText(), /waiting for data/);
      assert.match(await first.innerText(), /−379\.\d/);
      assert.equal(await first.locator('.went-less').count(), 1);
      assert.equal(await page.locator('.went-row', {hasText: 'no operator'}).count(), 0, 'what no operator launched is no operator');
    });
  }, page],
  ['its address shows the same again, and back returns to the list', async () => {
    const address = page.url();
    await page.reload();
    await page.locator('.compare-head').waitFor();
    assert.equal(page.url(), address);
    await page.goBack();
    await page.getByRole('heading', {name: 'Traces'}).waitFor();
  }, page],
  ['an address that names no trace of here says so', async () => {
    await page.goto(`${server.base}/compare?a=${'a'.repeat(26)}&b=${'b'.repeat(26)}`);
    await page.getByText('One of these was not found').waitFor();
    await page.goto(`${server.base}/compare`);
    await page.getByText('Select two traces to compare').waitFor();
    complaints.length = 0; // the 404 shows as a failed load
  }, page],
  ['share tells what leaves, and leaves out what is switched off', async () => {
    await page.goto(server.base);
    await page.locator('.trace-row', {hasText: '1-two-workers'}).locator('.row-link').click();
    await page.getByRole('button', {name: 'Share'}).click();
    await page.locator('.share-kinds', {hasText: /python train\.py/}).waitFor();
    await page.getByLabel(/Command lines/).uncheck();
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', {name: 'Download HTML'}).click()]);
    assert.equal(download.suggestedFilename(), '1-two-workers-report.html');
    await download.saveAs(report);
    const text = readFileSync(report, 'utf8');
    assert.ok(!text.includes('train.py</dd>') && text.includes('1-two-workers'));
  }, page],
  ['the whole trace goes to other tools in every form, and as it was uploaded', async () => {
    const fetch = async (name) => {
      const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', {name, exact: true}).click()]);
      const path = join(scratch, download.suggestedFilename());
      await download.saveAs(path);
      return [download.suggestedFilename(), readFileSync(path)];
    };
    const [, original] = await fetch('as uploaded');
    assert.ok(original.equals(readFileSync(demoTrace('1-two-workers'))));
    for (const [name, file, begins] of [
      ['Perfetto', '1-two-workers-trace.pftrace', '\n'],
      ['Chrome JSON', '1-two-workers-trace.json', '{"schemaVersion"'],
      ['SQLite', '1-two-workers-trace.db', 'SQLite format 3'],
      ['speedscope', '1-two-workers-trace.speedscope.json', '{"$schema"'],
      ['folded stacks', '1-two-workers-trace.folded', ''],
    ]) {
      const [suggested, bytes] = await fetch(name);
      assert.equal(suggested, file);
      assert.ok(bytes.length > 1000 && bytes.toString('latin1', 0, 40).startsWith(begins), `${name}: ${bytes.toString('latin1', 0, 40)}`);
    }
  }, page],
  ['the file opens from disk without scripts and asks for nothing', async () => {
    await paper.goto(pathToFileURL(report).href);
    assert.match(await paper.locator('h1').innerText(), /The GPU waits 380 ms of every 750 ms step for data/);
    assert.match(await paper.locator('.finding').first().innerText(), /num_workers=5/);
    assert.ok((await paper.locator('svg').count()) >= 3);
    assert.deepEqual(fetched.filter((url) => !url.startsWith('file:')), []);
    assert.equal(fetched.length, 1);
  }, paper],
  ['it reads well in light, dark and on a narrow screen', async () => {
    for (const colorScheme of ['light', 'dark']) {
      await paper.emulateMedia({colorScheme});
      const colors = await paper.locator('body').evaluate((body) => [getComputedStyle(body).color, getComputedStyle(body).backgroundColor]);
      assert.ok(contrast(...colors) > 12, `${colorScheme} ${colors}`);
    }
    await paper.setViewportSize({width: 380, height: 800});
    const width = await paper.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 380, `${width} px wide`);
  }, paper],
  ['it prints on light paper; pictures, rows and headings stay whole', async () => {
    await paper.emulateMedia({colorScheme: 'dark', media: 'print'});
    const ground = await paper.locator('body').evaluate((body) => getComputedStyle(body).backgroundColor);
    assert.equal(ground, 'rgb(255, 255, 255)');
    const bytes = await paper.pdf({format: 'A4', printBackground: true});
    assert.ok(bytes.length > 10000);
    for (const part of ['figure', 'tr', '.finding .head', 'pre']) {
      assert.equal(await paper.locator(part).first().evaluate((node) => getComputedStyle(node).breakInside), 'avoid', part);
    }
    assert.equal(await paper.locator('h2').first().evaluate((node) => getComputedStyle(node).breakAfter), 'avoid');
  }, paper],
  ['every view copies a link that shows it again, and no key', async () => {
    const {traces} = await (await server.api('traces')).json();
    const [a, b] = traces.map(({id}) => id);
    const views = [
      ['?q=two', '.trace-row'], [`t/${a}`, '[data-testid=workers-chart]'], [`t/${a}?view=kernels&table=kernels`, '.grid-row, [role=row]'],
      [`t/${a}?view=flame`, '.flame-table, [role=row], canvas'], [`t/${a}?view=sql`, 'textarea, [role=textbox]'], [`compare?a=${a}&b=${b}`, '.compare-head'],
      ['findings/input-starvation', 'main h2'], ['reports', '.reports-head'], ['p/-?tab=trends', 'main h1'], ['settings/tokens', 'main form'],
      [`t/${a}?view=timeline`, '.tl[data-settled=yes]'],
    ];
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], {origin: server.base});
    const other = await page.context().newPage();
    const copied = async () => {
      const before = await page.evaluate(() => navigator.clipboard.writeText(''));
      assert.equal(before, undefined);
      // it says so for 1.6 s: a look that begins after the click may come too late
      await Promise.all([page.getByText('Link copied').first().waitFor(), page.getByRole('button', {name: 'Copy link'}).first().click()]);
      await page.waitForFunction(async () => (await navigator.clipboard.readText()) !== '');
      return page.evaluate(() => navigator.clipboard.readText());
    };
    for (const [address, whole] of views) {
      await page.goto(`${server.base}/${address}`);
      await page.locator(whole).first().waitFor();
      const link = await copied();
      assert.ok(link.startsWith(`${server.base}/`) && !link.includes(server.key), link);
      await page.waitForFunction((to) => location.href === to, link);
      await other.goto(link);
      await other.locator(whole).first().waitFor();
      await eventually(async () => assert.equal(await other.locator('h1').first().innerText(), await page.locator('h1').first().innerText(), address));
      assert.equal(other.url(), link);
    }
    // a zoom that the address bar has not heard of yet is in the link
    const whole = page.url();
    await page.locator('canvas').first().hover();
    await page.keyboard.press('w');
    await page.keyboard.press('w');
    const zoomed = await copied();
    assert.notEqual(zoomed, whole);
    await page.waitForFunction((to) => location.href === to, zoomed);
    await page.getByRole('button', {name: 'Share'}).click();
    const dialog = page.getByRole('dialog');
    await Promise.all([dialog.getByText('Link copied').waitFor(), dialog.getByRole('button', {name: 'Copy link'}).click()]);
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), zoomed);
    if (process.env.LACUNA_PICTURES) await page.screenshot({path: join(process.env.LACUNA_PICTURES, 'copy-link.png')});
    await page.keyboard.press('Escape');
    await other.close();
  }, page],
  ['names that are markup stay letters', async () => {
    const hostile = JSON.parse(readFileSync(demoTrace('1-two-workers'), 'utf8'));
    const name = '<img src=x onerror="document.title=1"><script>document.title=2</script>';
    hostile.lacuna.settings[name] = name;
    for (const event of hostile.traceEvents) if (event.name === 'layer1') event.name = name;
    const path = join(scratch, 'hostile.json');
    writeFileSync(path, JSON.stringify(hostile));
    run('export', path, '--to', 'html', '-o', join(scratch, 'hostile.html'));
    await page.goto(pathToFileURL(join(scratch, 'hostile.html')).href);
    assert.equal(await page.locator('img, script, iframe').count(), 0);
    assert.match(await page.title(), /Lacuna report/);
    assert.match(await page.locator('.facts').first().innerText(), /<img src=x/);
  }, page],
  ['nothing complained', async () => {
    assert.deepEqual(complaints, []);
  }, page],
];

await main(steps);
