// Traces that another page offers: by the messages that ui.perfetto.dev takes, and by `?url=`.
import assert from 'node:assert/strict';
import {createServer} from 'node:http';
import {stage} from './stage.mjs';

/** Four steps of a loader and a kernel: how large a trace is does not matter here. */
function small() {
  const event = (cat, pid, tid, ts, dur, name, args) => ({ph: 'X', cat, name, pid, tid, ts, dur, args});
  const traceEvents = [0, 1, 2, 3].flatMap((i) => [
    event('user_annotation', 1, 1, i * 1000, 999, `ProfilerStep#${i}`),
    event('user_annotation', 1, 1, i * 1000 + 10, 700, 'enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__'),
    event('cuda_runtime', 1, 1, i * 1000 + 720, 10, 'cudaLaunchKernel', {correlation: i + 1}),
    event('kernel', 0, 7, i * 1000 + 740, 200, 'gemm', {device: 0, stream: 7, correlation: i + 1}),
  ]);
  return JSON.stringify({schemaVersion: 1, deviceProperties: [{id: 0, name: 'Tesla V100'}], traceEvents});
}
const trace = small();
const {server, page, complaints, main} = await stage();
const asked = [];
const other = createServer((request, response) => {
  asked.push({path: request.url, cookie: request.headers.cookie});
  if (request.url.startsWith('/open.json')) response.writeHead(200, {'Access-Control-Allow-Origin': '*'}).end(trace);
  else if (request.url.startsWith('/closed.json')) response.writeHead(200).end(trace);
  else response.writeHead(200, {'Content-Type': 'text/html'}).end('<title>another tool</title>');
});
await new Promise((done) => other.listen(0, '127.0.0.1', done));
const origin = `http://127.0.0.1:${other.address().port}`;
const names = async () => (await (await server.api('traces')).json()).traces.map(({name}) => name);
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
      }, [`${server.base}/`, trace]),
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

await main(steps, () => other.close());
