// Traces that another page offers: by the messages that ui.perfetto.dev takes, and by `?url=`.
import assert from 'node:assert/strict';
import {mkdirSync, readFileSync} from 'node:fs';
import {createServer} from 'node:http';
import {join} from 'node:path';
import {main, obstacle, removeFolder, run, scratchFolder, startBrowser, startServer} from './harness.mjs';

const why = obstacle();
if (why) {
  console.log(`skip: ${why}`);
  console.log('0 passed, 0 failed');
  process.exit(0);
}

const scratch = scratchFolder();
const data = join(scratch, 'data');
mkdirSync(data);
run('demo', join(scratch, 'demo'));
const trace = readFileSync(join(scratch, 'demo', '1-two-workers.json'));
const server = await startServer(data);
const {browser, page, complaints} = await startBrowser();
const asked = [];
const other = createServer((request, response) => {
  asked.push({path: request.url, cookie: request.headers.cookie});
  if (request.url.startsWith('/open.json')) response.writeHead(200, {'Access-Control-Allow-Origin': '*'}).end(trace);
  else if (request.url.startsWith('/closed.json')) response.writeHead(200).end(trace);
  else response.writeHead(200, {'Content-Type': 'text/html'}).end('<title>another tool</title>');
});
await new Promise((done) => other.listen(0, '127.0.0.1', done));
const origin = `http://127.0.0.1:${other.address().port}`;
const names = async () => {
  const reply = await fetch(`${server.base}/api/v1/traces`, {headers: {Authorization: `Bearer ${server.key}`}});
  return (await reply.json()).traces.map(({name}) => name);
};
const dialog = (at) => at.getByRole('dialog', {name: 'Add this trace?'});

const steps = [
  ['the button of another tool opens the page, and its trace comes when the user says so', async () => {
    await page.goto(`${server.base}/#key=${server.key}`);
    await page.getByRole('heading').first().waitFor();
    const tool = await page.context().newPage();
    await tool.goto(origin);
    const [opened] = await Promise.all([
      tool.waitForEvent('popup'),
      tool.evaluate(async ([to, text]) => {
        const target = new URL(to).origin;
        const handle = open(to);
        const pong = new Promise((done) => addEventListener('message', (event) => event.origin === target && event.data === 'PONG' && done()));
        const timer = setInterval(() => handle.postMessage('PING', target), 50);
        await pong;
        clearInterval(timer);
        handle.postMessage({perfetto: {buffer: new TextEncoder().encode(text).buffer, title: 'from <b>another tool'}}, target);
      }, [`${server.base}/`, trace.toString()]),
    ]);
    await dialog(opened).getByText(origin).waitFor();
    await dialog(opened).getByText('from <b>another tool').waitFor();
    assert.deepEqual(await names(), []);
    await dialog(opened).getByRole('button', {name: 'Add it'}).click();
    await opened.getByTestId('verdict').waitFor();
    assert.deepEqual(await names(), ['from <b>another tool']);
    await opened.close();
    await tool.close();
  }, page],
  ['?url= fetches in the browser, without cookies, after a question; one that is not allowed says so', async () => {
    await page.goto(`${server.base}/?url=${encodeURIComponent(`${origin}/closed.json`)}`);
    await dialog(page).getByRole('button', {name: 'Add it'}).click();
    await dialog(page).getByText('does not allow this page to read the file').waitFor();
    await page.goto(`${server.base}/?embed=1&url=${encodeURIComponent(`${origin}/open.json`)}`);
    await dialog(page).getByText(`${origin}/open.json`).waitFor();
    assert.equal(asked.filter(({path}) => path === '/open.json').length, 0);
    assert.ok(!(await page.locator('.brand').isVisible()));
    await dialog(page).getByRole('button', {name: 'Add it'}).click();
    await page.getByTestId('verdict').waitFor();
    assert.deepEqual(asked.find(({path}) => path === '/open.json'), {path: '/open.json', cookie: undefined});
    assert.deepEqual((await names()).sort(), ['from <b>another tool', 'open']);
    assert.ok(complaints.every((text) => /CORS|ERR_FAILED/.test(text)), String(complaints));
  }, page],
];

await main(steps, async () => {
  await browser.close();
  other.close();
  await server.stop();
  removeFolder(scratch);
});
