// The SQL tab: a query and its rows, what is wrong with one, limits, copying, chart, track, history, address.
import assert from 'node:assert/strict';
import {writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {eventually} from './harness.mjs';
import {stage} from './stage.mjs';

const EVIL = '<img src=x onerror=alert(1)>, "quoted"';

/** 1200 times work of 2 us within 300 of outer, and one of an odd name. */
function trace() {
  const event = (ts, dur, name) => ({ph: 'X', cat: 'cpu_op', name, pid: 1, tid: 1, ts, dur});
  const traceEvents = [event(20_000, 7, EVIL)];
  for (let i = 0; i < 300; i++) {
    traceEvents.push(event(i * 20, 15, 'outer'));
    for (let j = 0; j < 4; j++) traceEvents.push(event(i * 20 + 1 + j * 3, 2, 'work'));
  }
  return JSON.stringify({traceEvents});
}
function drawn(scratch) {
  const path = join(scratch, 'queried.json');
  writeFileSync(path, trace());
  return path;
}
const {server, page, complaints, main} = await stage({files: (scratch) => [drawn(scratch)]});
await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], {origin: server.base});
const {traces} = await (await server.api('traces')).json();
const {id} = traces[0];

const field = page.getByRole('textbox', {name: 'Query in SQL'});
const answer = page.getByRole('region', {name: 'Rows', exact: true});
const summary = answer.locator('.sql-summary').first();
const cells = async () => Promise.all((await answer.locator('tbody tr').all()).map((row) => row.locator('td').allTextContents()));
const heads = () => answer.locator('thead th').allTextContents();
/** Types and runs; the rows or the sentence that come are this query's: the ones before are gone first. */
const ask = async (query) => {
  await field.fill(query);
  await field.press('Escape'); // words are offered at the cursor
  const [response] = await Promise.all([
    page.waitForResponse((one) => /\/sql\?/.test(one.url()) && one.request().method() === 'POST' && one.request().postData().includes(JSON.stringify(query).slice(1, -1))),
    page.getByRole('button', {name: 'Run', exact: true}).click(),
  ]);
  await answer.locator(response.ok() ? 'table' : '[role=alert]').waitFor();
  return response;
};

const steps = [
  ['the tab lists what can be asked, and of what', async () => {
    await page.goto(`${server.base}/#key=${server.key}`);
    await page.locator('.trace-row .row-link').first().waitFor();
    await page.goto(`${server.base}/t/${id}?view=flame`);
    await page.getByRole('link', {name: 'SQL', exact: true}).or(page.getByRole('tab', {name: 'SQL', exact: true})).first().click();
    await page.waitForURL(/view=sql/);
    const tables = page.getByRole('complementary', {name: 'Tables'});
    await tables.locator('summary', {hasText: /^by_name/}).click();
    await tables.getByText('total_ns', {exact: true}).first().waitFor();
    await field.fill('');
    await tables.locator('.sql-questions button').first().click();
    await page.waitForFunction(() => document.querySelector('.sql-query').value !== '');
    assert.match(await field.inputValue(), /SELECT|WITH/i);
  }],
  ['a query gives its rows, numbers to the right', async () => {
    await ask('SELECT name, count, total_ns FROM by_name ORDER BY total_ns DESC, name');
    assert.deepEqual(await heads(), ['name', 'count', 'total_ns']);
    assert.deepEqual(await cells(), [['outer', '300', '4500000'], ['work', '1200', '2400000'], [EVIL, '1', '7000']]);
    assert.match(await summary.innerText(), /^3 rows, /);
    assert.equal(await answer.locator('tbody tr').first().locator('td.num').count(), 2);
    assert.equal(await answer.locator('img').count(), 0, 'a name is text');
  }],
  ['Ctrl+Enter runs, and Tab takes the word that is offered', async () => {
    await field.fill('');
    await field.pressSequentially('SELECT count(*) AS n FROM by_na');
    await page.locator('#sql-offered [role=option]', {hasText: /^by_name$/}).waitFor();
    await field.press('Tab');
    await page.waitForFunction(() => document.querySelector('.sql-query').value === 'SELECT count(*) AS n FROM by_name');
    await field.press('Control+Enter');
    await page.waitForFunction(() => document.querySelector('.sql-rows th')?.textContent === 'n');
    await eventually(async () => assert.deepEqual(await cells(), [['3']]));
  }],
  ['a wrong query says what is wrong, and no row of the one before stands beside it', async () => {
    const response = await ask('SELECT absent FROM by_name');
    assert.equal(response.status(), 400);
    assert.match(await answer.getByRole('alert').innerText(), /no such column: absent/);
    assert.equal(await answer.locator('table').count(), 0);
  }],
  ['what would write, attach or load is refused with a sentence', async () => {
    for (const query of ['DELETE FROM by_name', 'CREATE TABLE mine(x)', "ATTACH '/etc/passwd' AS other", "SELECT load_extension('/tmp/x')", 'PRAGMA database_list', 'SELECT 1; SELECT 2']) {
      assert.equal((await ask(query)).status(), 400, query);
      assert.ok((await answer.getByRole('alert').innerText()).length > 10, query);
    }
    await ask('SELECT count(*) AS still FROM slices');
    assert.deepEqual(await cells(), [['1501']]);
  }],
  ['more rows than are shown are cut, and that is said', async () => {
    await ask('SELECT id, name FROM slices ORDER BY id');
    assert.match(await summary.innerText(), /^the first 1\D?000 rows/);
    assert.equal(await answer.locator('tbody tr').count(), 1000);
    await ask("SELECT name FROM slices WHERE name = 'none such'");
    assert.match(await summary.innerText(), /^0 rows/);
    assert.equal(await page.getByRole('button', {name: 'Show as track'}).isDisabled(), true);
  }],
  ['a query without an end is ended, and the next one is answered', async () => {
    await page.route(/\/sql\?/, (route) => route.continue({url: `${route.request().url()}&timeout=2`})); // of 20 s
    const response = await ask('WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n');
    assert.equal((await response.json()).error.code, 'query_limit');
    assert.match(await answer.getByRole('alert').innerText(), /took longer than \d+ s/);
    await page.unroute(/\/sql\?/);
    await ask('SELECT 6 * 7 AS six_times_seven');
    assert.deepEqual(await cells(), [['42']]);
  }],
  ['rows are copied as CSV, quoted where they must be', async () => {
    await ask('SELECT name, count, NULL AS empty FROM by_name ORDER BY count');
    await page.evaluate(() => navigator.clipboard.writeText(''));
    await answer.getByRole('button', {name: 'Copy as CSV'}).click();
    await page.waitForFunction(async () => (await navigator.clipboard.readText()) !== '');
    const csv = await page.evaluate(() => navigator.clipboard.readText());
    assert.equal(csv.replaceAll('\r\n', '\n'), `name,count,empty\n"${EVIL.replaceAll('"', '""')}",1,\nouter,300,\nwork,1200,\n`);
  }],
  ['rows become a chart of the columns that are chosen', async () => {
    await ask('SELECT name, count, total_ns FROM by_name ORDER BY count DESC');
    await answer.getByRole('button', {name: 'Chart'}).click();
    const chart = page.getByRole('region', {name: 'Chart'});
    await chart.locator('svg rect').first().waitFor();
    const shown = await chart.locator('svg rect').count();
    const box = chart.getByRole('checkbox', {checked: false}).first();
    await box.check();
    await page.waitForFunction((before) => document.querySelectorAll('.sql-chart svg rect').length > before, shown);
    assert.match((await chart.locator('svg text').allTextContents()).join('|'), /work\|1\s200/);
    await answer.getByRole('button', {name: 'Chart'}).click();
    await chart.waitFor({state: 'detached'});
  }],
  ['rows with times become a row of the timeline, until they are removed', async () => {
    await ask("SELECT id, name, start_ns, dur_ns FROM slices WHERE name = 'outer' ORDER BY start_ns");
    await page.getByRole('button', {name: 'Show as track'}).click();
    await page.waitForURL((url) => !/view=sql/.test(url.href));
    const strip = page.getByRole('region', {name: 'Rows of a query'});
    await strip.locator('rect').first().waitFor();
    await eventually(async () => assert.match(await strip.innerText(), /300 rows/));
    await strip.getByRole('button', {name: 'Remove the rows of the query'}).click();
    await strip.waitFor({state: 'detached'});
  }],
  ['the address opens the tab again, with the last query and those before it', async () => {
    await page.goBack();
    await page.waitForURL(/view=sql/);
    await page.reload();
    await eventually(async () => assert.match(await field.inputValue(), /WHERE name = 'outer'/));
    const history = page.getByLabel('Recent queries');
    let kept = [];
    await eventually(async () => {
      kept = await history.locator('option').allTextContents();
      assert.equal(kept.filter((one) => /by_name ORDER BY total_ns DESC/.test(one)).length, 1);
    });
    assert.equal(kept.some((one) => /absent FROM|DELETE|RECURSIVE/.test(one)), false, 'what failed is not kept');
    await history.selectOption(String(kept.findIndex((one) => /six_times_seven/.test(one)) - 1));
    await eventually(async () => assert.equal(await field.inputValue(), 'SELECT 6 * 7 AS six_times_seven'));
  }],
  ['nothing complained', async () => {
    assert.deepEqual(complaints.filter((one) => !/status of 400/.test(one)), []);
  }],
];

await main(steps);
