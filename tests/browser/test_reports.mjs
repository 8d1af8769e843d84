// Two people write, comment on, share and revoke a report; a third with the link only reads it. Hostile Markdown stays text, and the
// exported file opens from disk without scripts.
import assert from 'node:assert/strict';
import {writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {pathToFileURL} from 'node:url';
import {eventually} from './harness.mjs';
import {stage} from './stage.mjs';

const {scratch, server, page: kim, newPage, complaints, main} = await stage({demo: ['1-two-workers', '2-five-workers']});
const ana = await newPage();
const guest = await newPage({javaScriptEnabled: false});
const fetched = [];
guest.on('request', (request) => fetched.push(request.url()));
const pictures = process.env.LACUNA_PICTURES;
const picture = async (page, name) => pictures && (await page.screenshot({path: join(pictures, `${name}.png`), fullPage: true}));
let address = '';
let link = '';

const HOSTILE = [
  '', '<script>document.title = "taken"</script>', '<img src=x onerror="top.document.title=\'taken\'">', '[press](javascript:top.document.title=`taken`)',
  '<svg><script>top.document.title="taken"</script></svg>', '<iframe srcdoc="<script>top.document.title=1</script>"></iframe>', '',
].join('\n\n');

const steps = [
  ['a report is drafted of a trace by one press, with its evidence', async () => {
    await kim.goto(`${server.base}/#key=${server.key}`);
    await kim.locator('.trace-row', {hasText: '1-two-workers'}).locator('.row-link').click();
    await kim.getByRole('button', {name: 'Share'}).click();
    await picture(kim, 'share-dialog');
    await kim.getByRole('button', {name: 'Write a report'}).click();
    await kim.waitForURL(/\/reports\/[a-z2-7]{26}$/);
    address = kim.url();
    const frame = kim.frameLocator('.report-frame');
    await frame.locator('.part-finding h3').first().waitFor();
    await eventually(async () => {
      assert.ok((await frame.locator('.part-window svg rect').count()) > 20);
      assert.ok((await frame.locator('.part-flame svg rect').count()) > 3);
      assert.match(await frame.locator('.part-table').first().innerText(), /waiting for data/);
      // the frame is as high as what is in it
      const inner = await kim.locator('.report-frame').evaluate((element) => [element.contentDocument.body.scrollHeight, element.clientHeight]);
      assert.ok(inner[1] >= inner[0], inner.join(' '));
    });
    await picture(kim, 'report');
  }, kim],
  ['parts are inserted by a choice, and seen before they are saved', async () => {
    await kim.getByRole('button', {name: 'Edit'}).click();
    await kim.getByLabel('Title', {exact: true}).fill('Two workers are too few');
    const text = kim.getByLabel('Text in Markdown');
    await text.fill('# What we saw\n\nThe GPU waits for data. Ran as `$ python /home/kim/train.py`, see @ana.\n');
    await kim.getByLabel('What to show').selectOption({label: 'kernels'});
    await kim.getByRole('button', {name: 'Insert'}).click();
    await eventually(async () => assert.match(await text.inputValue(), /```lacuna\ntable trace=[a-z2-7]{26} of=kernels\n```/));
    await kim.frameLocator('.report-frame').locator('.part-table th').first().waitFor();
    await picture(kim, 'editor');
    await kim.getByRole('button', {name: 'Save'}).click();
    await kim.getByRole('button', {name: 'Edit'}).waitFor();
    await kim.frameLocator('.report-frame').getByRole('heading', {name: 'Two workers are too few'}).waitFor();
  }, kim],
  ['two who save at once lose nothing', async () => {
    await ana.goto(`${server.base}/#key=${server.key}`);
    await ana.locator('.trace-row').first().waitFor(); // signed in: a page left before takes its request back
    await ana.goto(address);
    await ana.getByRole('button', {name: 'Edit'}).click();
    await kim.getByRole('button', {name: 'Edit'}).click();
    const mine = kim.getByLabel('Text in Markdown');
    const hers = ana.getByLabel('Text in Markdown');
    await mine.fill(`${await mine.inputValue()}\nKim measured it again.\n`);
    await hers.fill(`${await hers.inputValue()}\nAna asked for more cores.\n`);
    await ana.getByRole('button', {name: 'Save'}).click();
    await ana.getByRole('button', {name: 'Edit'}).waitFor();
    await kim.getByRole('button', {name: 'Save'}).click();
    await kim.getByLabel('Their text').waitFor();
    await picture(kim, 'merge');
    await eventually(async () => assert.match(await kim.getByLabel('Their text').inputValue(), /Ana asked/));
    assert.match(await mine.inputValue(), /Kim measured/);
    await kim.getByRole('button', {name: 'Append the missing lines'}).click();
    await kim.getByRole('button', {name: 'Save the merged text'}).click();
    await kim.getByRole('button', {name: 'Edit'}).waitFor();
    const document = kim.frameLocator('.report-frame').locator('body');
    await kim.frameLocator('.report-frame').getByText('Kim measured it again').waitFor();
    await eventually(async () => {
      assert.match(await document.innerText(), /Ana asked for more cores/);
      assert.equal(await kim.getByLabel('Version').locator('option').count(), 4);
    });
    complaints.length = 0; // the conflict shows as a failed load
  }, kim],
  ['the other comments, an answer comes, the thread is resolved', async () => {
    await ana.goto(address);
    await ana.getByLabel('Comment', {exact: true}).fill('Which node was it, @kim? <b>x</b>');
    await ana.getByRole('button', {name: 'Comment'}).click();
    await ana.getByText('Which node was it, @kim? <b>x</b>').waitFor();
    await kim.reload();
    await kim.getByLabel('Answer').fill('Node 3.');
    await kim.getByRole('button', {name: 'Answer'}).click();
    await kim.getByText('Node 3.').waitFor();
    await picture(kim, 'comments');
    await kim.getByRole('button', {name: 'Resolve'}).click();
    await kim.getByText(/^Resolved by/).waitFor();
  }, kim],
  ['a link shows first what leaves, each kind out', async () => {
    await ana.reload();
    await ana.getByRole('button', {name: 'Share'}).click();
    const kinds = ana.locator('.share-kind');
    await eventually(async () => {
      assert.deepEqual(await kinds.locator('input').evaluateAll((all) => all.map((one) => one.checked)), [false, false, false, false, true]);
      assert.match(await ana.locator('.share-kinds').innerText(), /\/home\/kim\/train\.py/);
    });
    await ana.getByRole('button', {name: 'Make a link'}).click();
    link = await ana.getByLabel('The link').inputValue();
    assert.match(link, /\/s\/[a-z2-7]{32}$/);
    await picture(ana, 'link');
  }, ana],
  ['whoever has the link reads the report and nothing else', async () => {
    const reply = await guest.goto(link);
    assert.equal(reply.headers()['x-robots-tag'].startsWith('noindex'), true);
    assert.equal(reply.headers()['referrer-policy'], 'no-referrer');
    const text = await guest.locator('body').innerText();
    assert.match(text, /Two workers are too few/);
    assert.match(text, /Ana asked for more cores/);
    assert.doesNotMatch(text, /\/home\/kim|@ana|Node 3|Which node/);
    assert.equal(await guest.locator('script, form, iframe, img').count(), 0);
    assert.ok(fetched.every((url) => url === link || url.endsWith('/favicon.ico')), fetched.join(' '));
    await picture(guest, 'shared');
    assert.equal((await guest.request.get(address.replace('/reports/', '/api/v1/reports/'))).status(), 401);
  }, guest],
  ['after revoking there is nothing', async () => {
    await ana.getByRole('button', {name: 'Revoke'}).click();
    await ana.getByRole('button', {name: 'Revoke'}).waitFor({state: 'detached'});
    assert.equal((await guest.goto(link)).status(), 404);
    assert.doesNotMatch(await guest.locator('body').innerText(), /workers/);
  }, guest],
  ['hostile Markdown stays text', async () => {
    await kim.reload();
    await kim.getByRole('button', {name: 'Edit'}).click();
    await kim.setViewportSize({width: 390, height: 800});
    await kim.locator('.report-bar option').last().evaluate((option) => (option.textContent = 'a long name of a trace '.repeat(9)));
    await eventually(async () => assert.ok(await kim.evaluate(() => document.documentElement.scrollWidth <= 390), 'wider than a phone'));
    await kim.setViewportSize({width: 1440, height: 900});
    await kim.getByLabel('Text in Markdown').fill(HOSTILE);
    await kim.frameLocator('.report-frame').getByText('document.title = "taken"').first().waitFor();
    const frame = kim.frameLocator('.report-frame');
    assert.equal(await frame.locator('script, img, iframe, svg').count(), 0);
    assert.equal(await frame.getByText('press').locator('xpath=ancestor-or-self::a').count(), 0);
    await kim.getByRole('button', {name: 'Save'}).click();
    await kim.getByRole('button', {name: 'Edit'}).waitFor();
    await frame.getByText('document.title = "taken"').first().waitFor();
    assert.doesNotMatch(await kim.title(), /taken/);
  }, kim],
  ['what is looked at goes into a report: a finding into a new one, a stretch of the timeline into the same', async () => {
    await ana.goto(`${server.base}/`);
    await ana.locator('.trace-row', {hasText: '1-two-workers'}).locator('.row-link').click();
    await ana.locator('.finding').first().getByRole('button', {name: 'Add to a report'}).click();
    const dialog = ana.getByRole('dialog', {name: 'Add to a report'});
    await dialog.getByLabel('Title').fill('Pieces of evidence');
    await picture(ana, 'add-dialog');
    await dialog.getByRole('button', {name: 'Add', exact: true}).click();
    await ana.waitForURL(/\/reports\/[a-z2-7]{26}$/);
    const pieces = ana.url();
    const frame = ana.frameLocator('.report-frame');
    await frame.locator('.part-finding').first().waitFor();
    await ana.goto(`${server.base}/`);
    await ana.locator('.trace-row', {hasText: '1-two-workers'}).locator('.row-link').click();
    await ana.getByRole('link', {name: 'Timeline'}).first().click();
    await ana.getByText('worker 1', {exact: true}).first().waitFor();
    await ana.keyboard.press('g'); // the longest gap
    await ana.waitForURL(/[?&]v=/);
    await ana.getByRole('button', {name: 'Share'}).click();
    await ana.getByRole('button', {name: 'Add to a report'}).click();
    const offered = dialog.getByLabel('What').locator('option').first();
    await eventually(async () => assert.equal(await offered.innerText(), 'The stretch of the timeline in view'));
    await dialog.getByLabel('Report').selectOption({label: 'Pieces of evidence'});
    await dialog.getByRole('button', {name: 'Add', exact: true}).click();
    await ana.waitForURL(pieces);
    await frame.locator('.part-window svg rect').first().waitFor();
    await eventually(async () => assert.equal(await frame.locator('.part-finding').count(), 1));
  }, ana],
  ['the exported file opens from disk, without scripts, with the evidence of deleted traces', async () => {
    const api = (path, method = 'GET') => server.api(path, {method});
    const id = address.slice(-26);
    const {markdown} = await (await api(`reports/${id}/versions/1`)).json();
    const traces = (await (await api('traces')).json()).traces;
    for (const trace of traces) assert.equal((await api(`traces/${trace.id}`, 'DELETE')).status, 204);
    const file = join(scratch, 'report.html');
    writeFileSync(file, await (await api(`reports/${id}/document?format=html&version=1`)).text());
    assert.match(markdown, /```lacuna/);
    fetched.length = 0;
    await guest.goto(pathToFileURL(file).href);
    assert.ok((await guest.locator('.part-window svg rect').count()) > 20);
    assert.ok((await guest.locator('.part-finding pre').count()) > 0);
    assert.deepEqual(fetched, [pathToFileURL(file).href]);
    await picture(guest, 'file');
    await guest.setViewportSize({width: 390, height: 800});
    assert.ok(await guest.evaluate('document.documentElement.scrollWidth <= 390').catch(() => true));
    await picture(guest, 'file-narrow');
  }, guest],
  ['the list has it, also on a narrow screen and in the dark', async () => {
    await kim.goto(`${server.base}/reports`);
    await kim.getByRole('link', {name: 'Two workers are too few'}).waitFor();
    await picture(kim, 'list');
    await kim.emulateMedia({colorScheme: 'dark'});
    await kim.getByRole('link', {name: 'Two workers are too few'}).click();
    await kim.getByLabel('Version').waitFor();
    await kim.getByLabel('Version').selectOption({index: 4});
    await kim.frameLocator('.report-frame').locator('.part-window').waitFor();
    await picture(kim, 'report-dark');
    await kim.setViewportSize({width: 390, height: 800});
    await picture(kim, 'report-narrow');
    await eventually(async () => {
      const wide = await kim.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= 390, String(wide));
    });
    assert.deepEqual(complaints, []);
  }, kim],
];

await main(steps);
