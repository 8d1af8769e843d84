// tus-js-client, in Node and in Chromium: many uploads at once over a link that breaks at random, to a server that is killed
// meanwhile. Every upload ends well, every trace is whole, none is there twice, and the server stays small.
import assert from 'node:assert/strict';
import {spawn} from 'node:child_process';
import {createHash} from 'node:crypto';
import {existsSync, mkdirSync, readFileSync, rmSync} from 'node:fs';
import {createRequire} from 'node:module';
import {connect, createServer} from 'node:net';
import {join} from 'node:path';
import {LACUNA, ROOT, main, scratchFolder, startBrowser, until} from './harness.mjs';
import {needBrowser} from './stage.mjs';

needBrowser();
const isSoak = process.env.LACUNA_SOAK === '1';
const COUNT = isSoak ? 32 : 4;
const BYTES = (isSoak ? 100 : 10) << 20;
const IN_PAGE = 2;
const KILLS = isSoak ? 10 : 4;
const MEMORY_KB_MAX = 500 << 10;
const RETRIES = Array.from({length: 2000}, (_, i) => Math.min(50 + 10 * i, 500));

const scratch = scratchFolder();
const data = join(scratch, 'data');
const portFile = join(scratch, 'port');
mkdirSync(data);

let server;
let port = 0;
let largestKb = 0;

async function start() {
  rmSync(portFile, {force: true});
  server = spawn(LACUNA, ['serve', '--data', data, '--listen', `127.0.0.1:${port}`, '--port-file', portFile], {stdio: 'ignore'});
  await until(() => server.exitCode !== null || (existsSync(portFile) && readFileSync(portFile, 'utf8').trim()));
  assert.equal(server.exitCode, null, 'the server did not start');
  port = Number(readFileSync(portFile, 'utf8'));
}

function lookAtMemory() {
  const line = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'));
  largestKb = Math.max(largestKb, line ? Number(line[1]) : 0);
}

async function kill() {
  lookAtMemory();
  const ended = new Promise((resolve) => server.once('exit', resolve));
  server.kill('SIGKILL');
  await ended;
}

/** What lies between: hands bytes on, and while it breaks ends each connection after some of them. */
let isBreaking = false;
let breaks = 0;
const relay = createServer((client) => {
  const to = connect(port, '127.0.0.1');
  let left = Infinity;
  const end = () => {
    client.destroy();
    to.destroy();
  };
  client.on('data', (piece) => {
    if (isBreaking && left === Infinity) left = 20000 + Math.random() * (BYTES / 8); // also of one that a browser kept open
    left -= piece.length;
    if (left < 0) {
      breaks += 1;
      end();
      return;
    }
    if (!to.write(piece)) {
      client.pause();
      to.once('drain', () => client.resume());
    }
  });
  to.on('data', (piece) => client.write(piece));
  for (const socket of [client, to]) {
    socket.on('error', end);
    socket.on('close', end);
  }
});
await new Promise((done) => relay.listen(0, '127.0.0.1', done));
const base = `http://127.0.0.1:${relay.address().port}`;

/** A small Kineto trace with spaces behind it, other bytes for each number. */
function traceOf(number) {
  const events = Array.from({length: 200}, (_, i) => ({
    ph: 'X', cat: 'kernel', name: `k${number}`, pid: 0, tid: 7, ts: 1000 + i * 50, dur: 20 + (i % 9), args: {device: 0, stream: 7, correlation: i},
  }));
  const text = JSON.stringify({schemaVersion: 1, traceEvents: events});
  return text + ' '.repeat(BYTES - text.length);
}

const sums = new Map();
const remember = (name, text) => sums.set(name, createHash('sha256').update(text).digest('hex'));

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Kill the server until all is uploaded: first when a connection broke, for a quick machine has done all soon after, then now and
 * then. @return how often
 */
async function killMeanwhile(isOver) {
  const before = breaks;
  let kills = 0;
  while (breaks === before && !isOver()) await sleep(2);
  while (!isOver() && kills < KILLS) {
    await kill();
    kills += 1;
    await start();
    await sleep(100 + Math.random() * 400);
  }
  return kills;
}

async function during(work) {
  const before = breaks;
  let isOver = false;
  isBreaking = true;
  const all = work().finally(() => {
    isOver = true;
  });
  all.catch(() => undefined); // looked at below
  const kills = await killMeanwhile(() => isOver);
  await all;
  isBreaking = false;
  lookAtMemory();
  assert.ok(kills >= 1 && breaks > before, `${kills} kills, ${breaks - before} breaks`);
  console.log(`  ${kills} kills, ${breaks - before} breaks, ${Math.round(largestKb / 1024)} MB`);
}

await start();
const key = readFileSync(join(data, 'local.token'), 'utf8').trim();
const require = createRequire(join(ROOT, 'web/package.json'));
const tus = require('tus-js-client');
const {browser, page} = await startBrowser();

const steps = [
  ['uploads of Node', () => during(() => Promise.all(Array.from({length: COUNT}, (_, number) => new Promise((resolve, reject) => {
    const name = `node${number}`;
    const text = traceOf(name);
    remember(name, text);
    new tus.Upload(Buffer.from(text), {
      endpoint: `${base}/api/v1/uploads`, headers: {Authorization: `Bearer ${key}`}, metadata: {name}, chunkSize: 1 << 20, retryDelays: RETRIES,
      onError: reject, onSuccess: resolve,
    }).start();
  }))))],
  ['uploads of Chromium, with the page’s own cookie', async () => {
    await page.goto(`${base}/#key=${key}`);
    await page.getByRole('link', {name: 'Settings'}).waitFor();
    await page.evaluate(readFileSync(join(ROOT, 'web/node_modules/tus-js-client/dist/tus.min.js'), 'utf8'));
    const names = Array.from({length: IN_PAGE}, (_, number) => `page${number}`);
    const texts = names.map((name) => traceOf(name));
    names.forEach((name, i) => remember(name, texts[i]));
    await during(() => page.evaluate(
      ({names: given, heads, bytes, delays}) => Promise.all(given.map((name, i) => new Promise((resolve, reject) => {
        const text = heads[i] + ' '.repeat(bytes - heads[i].length);
        new window.tus.Upload(new Blob([text]), {
          endpoint: `${location.origin}/api/v1/uploads`, metadata: {name}, chunkSize: 1 << 20, retryDelays: delays, storeFingerprintForResuming: false,
          onError: (error) => reject(new Error(String(error))), onSuccess: () => resolve(name),
        }).start();
      }))),
      {names, heads: texts.map((text) => text.trimEnd()), bytes: BYTES, delays: RETRIES},
    ));
  }, page],
  ['each is there once, ready, with its hash', async () => {
    const asked = async () => (await (await fetch(`http://127.0.0.1:${port}/api/v1/traces?limit=1000`, {headers: {Authorization: `Bearer ${key}`}})).json()).traces;
    await until(async () => (await asked()).every((row) => row.state === 'ready' || row.state === 'failed'));
    const rows = await asked();
    assert.deepEqual(rows.map((row) => [row.name, row.state, row.sha256]).sort(), [...sums].map(([name, sum]) => [name, 'ready', sum]).sort());
    lookAtMemory();
    assert.ok(largestKb <= MEMORY_KB_MAX, `${largestKb} kB`);
  }],
];

await main(steps, async () => {
  await browser.close();
  relay.close();
  await kill();
});
