// Starts the real server on a fresh data folder, and headless Chromium on its page.
import {spawn, spawnSync} from 'node:child_process';
import {existsSync, mkdtempSync, readFileSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {basename, dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {fully, shortly} from './failures.mjs';
import {slowAnswers, slowPresses, slowScripts} from './slow_page.mjs';

export const ROOT = join(dirname(fileURLToPath(import.meta.url)), '../..');
export const LACUNA = join(ROOT, 'build/release/lacuna');
/** For whatever a test waits for: a machine that is busy is slow, only one that stalls reaches this. */
const WAIT_MS = 120_000;
/** After a failure, for what follows from it: all of the test ends before its time limit does, and says what failed. */
const WAIT_AFTER_FAILURE_MS = 15_000;
let waitMs = WAIT_MS;
const LOOK_MS = 50;
/** First the one without windows: the others draw the frame of each of theirs, and load pages of their own into it. */
const BROWSERS = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

/** Says why the tests cannot run here, or undefined. */
export function obstacle() {
  if (Number(process.versions.node.split('.')[0]) < 20) return `Node ${process.versions.node}: browser tests need 20`;
  if (!BROWSERS.some(existsSync)) return 'no Chromium on this machine';
  return undefined;
}

const folders = [];
const servers = new Set();
// also where a test ends before its steps do
process.on('exit', () => {
  for (const server of servers) server.kill('SIGKILL');
  folders.forEach(removeFolder);
});
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

/** Removed when the process ends. */
export function scratchFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'lacuna-browser-'));
  folders.push(folder);
  return folder;
}

function runProgram(program, args) {
  const result = spawnSync(program, args, {encoding: 'utf8'});
  if (result.status !== 0) throw new Error(`${program} ${args.join(' ')}: ${result.stderr}`);
  return result.stdout;
}

export const run = (...args) => runProgram(LACUNA, args);

/** Random training loops, for what the series of `lacuna demo` does not have: ranks. */
export const simulate = (...args) => runProgram(join(ROOT, 'build/release/simulator'), args);

/** Until `what` gives something true; it may be asynchronous. */
export async function until(what) {
  const end = Date.now() + waitMs;
  while (!(await what())) {
    if (Date.now() > end) throw new Error(`in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

/** Until `asserts` throws no more: what the page shows comes after the address, or the press, that leads to it. */
export async function eventually(asserts) {
  const end = Date.now() + waitMs;
  for (;;) {
    try {
      return await asserts();
    } catch (error) {
      if (Date.now() > end) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

export async function startServer(data, ...flags) {
  const portFile = join(data, 'port');
  rmSync(portFile, {force: true}); // of a server before this one
  const child = spawn(LACUNA, ['serve', '--data', data, '--listen', '127.0.0.1:0', '--port-file', portFile, ...flags], {stdio: 'ignore'});
  servers.add(child);
  const ended = new Promise((resolve) => child.once('exit', resolve)).then(() => servers.delete(child));
  await until(() => existsSync(portFile) && readFileSync(portFile, 'utf8').trim());
  const port = /(\d+)\s*$/.exec(readFileSync(portFile, 'utf8'))[1];
  const base = `http://127.0.0.1:${port}`;
  const key = readFileSync(join(data, 'local.token'), 'utf8').trim();
  return {
    base,
    key,
    /** What the key may ask for, past the page. */
    api: (path, init = {}) => fetch(`${base}/api/v1/${path}`, {...init, headers: {Authorization: `Bearer ${key}`, ...init.headers}}),
    stop: () => {
      child.kill('SIGTERM');
      return ended;
    },
  };
}

const contexts = [];

export async function startBrowser(options = {}, args = []) {
  const {chromium} = await import(join(ROOT, 'web/node_modules/playwright-core/index.mjs'));
  const browser = await chromium.launch({
    executablePath: BROWSERS.find(existsSync),
    headless: true,
    timeout: WAIT_MS,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync', ...args],
  });
  const newPage = async (ofContext) => {
    const context = await browser.newContext({viewport: {width: 1440, height: 900}, ...ofContext});
    contexts.push(context);
    context.setDefaultTimeout(waitMs);
    await slowAnswers(context);
    const made = await context.newPage();
    await slowScripts(made);
    slowPresses(made);
    return made;
  };
  const page = await newPage(options);
  const complaints = [];
  const listen = (to) => {
    to.on('console', (message) => {
      // what the server refuses on purpose (an expired key) shows as a failed load; scripts must not complain
      if (message.type() === 'error' || /Content Security Policy/i.test(message.text())) complaints.push(message.text());
    });
    to.on('pageerror', (error) => complaints.push(`exception: ${error.message}`));
  };
  listen(page);
  const pending = new Set();
  const isAnswered = (request) => !request.url().endsWith('/events'); // that one stays open
  page.on('request', (request) => isAnswered(request) && pending.add(request));
  page.on('requestfinished', (request) => pending.delete(request));
  page.on('requestfailed', (request) => pending.delete(request));
  // its turn comes behind all that the page has to do; requestIdleCallback waits for a frame, and none comes where nothing moves
  const turn = () => page.evaluate(() => scheduler.postTask(() => undefined, {priority: 'background'}));
  const isResting = () => turn().then(() => pending.size === 0, () => false); // it may be leaving
  /** Until all that the page asked for is answered and shown: for a while, on a slow machine a long one, it has nothing to do. */
  const answered = async () => {
    let quiet = 0;
    await until(async () => (quiet = (await isResting()) ? quiet + 1 : 0) === 6);
  };
  return {browser, page, newPage, listen, complaints, answered};
}

/** Runs named steps in order; a failure keeps a screenshot and goes on with the next. Ends the process. */
export async function main(steps, cleanup) {
  const failures = [];
  for (const [name, step, page] of steps) {
    try {
      await step();
    } catch (error) {
      failures.push(shortly(name, error));
      console.log(`FAIL ${name}: ${fully(error)}`);
      const picture = join(tmpdir(), `lacuna-${basename(process.argv[1], '.mjs')}-failure-${failures.length}.png`);
      await page?.screenshot({path: picture}).then(() => console.log(`  picture: ${picture}`)).catch(() => undefined);
      waitMs = WAIT_AFTER_FAILURE_MS;
      for (const context of contexts) context.setDefaultTimeout(waitMs);
    }
  }
  await cleanup();
  for (const failure of failures) console.log(failure);
  console.log(`${steps.length - failures.length} passed, ${failures.length} failed`);
  process.exit(failures.length ? 1 : 0);
}

export function removeFolder(path) {
  rmSync(path, {recursive: true, force: true});
}
