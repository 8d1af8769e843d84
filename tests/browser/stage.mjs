// What each test begins and ends with: a scratch folder, a server on what was imported into it, Chromium on its page.
import {spawnSync} from 'node:child_process';
import {existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, statSync} from 'node:fs';
import {join} from 'node:path';
import {LACUNA, ROOT, main, obstacle, removeFolder, run, scratchFolder, simulate, startBrowser, startServer} from './harness.mjs';

const DEMO = 'demo-traces-';

/** The series of `lacuna demo`, which is the same each time: made once for all tests of this program. */
function demoFolder() {
  const build = join(ROOT, 'build/release');
  const folder = join(build, DEMO + Math.round(statSync(LACUNA).mtimeMs));
  if (existsSync(folder)) return folder;
  const made = mkdtempSync(join(build, 'making-demo-'));
  run('demo', made);
  const old = readdirSync(build).filter((name) => name.startsWith(DEMO));
  try {
    renameSync(made, folder);
    for (const name of old) removeFolder(join(build, name));
  } catch {
    removeFolder(made); // a test beside this one was first
  }
  return folder;
}

/** Where the trace of this name of the demo series lies. */
export const demoTrace = (name) => join(demoFolder(), `${name}.json`);

/** A run of two ranks, as one file in the folder. */
export function archiveOfRanks(folder, seed) {
  const ranks = join(folder, `ranks of ${seed}`);
  simulate(ranks, '--seed', String(seed), '--ranks');
  const archive = `${ranks}.tar.gz`;
  const files = readdirSync(ranks).filter((name) => !name.includes('truth')).sort(); // rank 0 first
  const {status, stderr} = spawnSync('tar', ['czf', archive, '-C', ranks, ...files], {encoding: 'utf8'});
  if (status !== 0) throw new Error(stderr);
  return archive;
}

/** Ends the process, as skipped, where the tests cannot run. */
export function needBrowser() {
  const why = obstacle();
  if (!why) return;
  console.log(`skip: ${why}`);
  console.log('0 passed, 0 failed');
  process.exit(0);
}

/**
 * @param demo names of traces of the demo series that are imported
 * @param files given the scratch folder, the paths of what is imported before them
 * @param flags of `lacuna serve`
 * @param args of Chromium
 * @returns what startBrowser() and startServer() give, the folders, and `main(steps, before)`: it runs the steps, each [name, function,
 * whose picture is kept when it fails: else `page`], and `before` server and browser end what it is given
 */
export async function stage({demo = [], files = () => [], importFlags = [], flags = [], args = []} = {}) {
  needBrowser();
  const scratch = scratchFolder();
  const data = join(scratch, 'data');
  mkdirSync(data);
  const paths = [...files(scratch), ...demo.map(demoTrace)];
  if (paths.length > 0) run('import', '--data', data, ...importFlags, ...paths);
  const server = await startServer(data, ...flags);
  const started = await startBrowser({}, args);
  return {
    ...started,
    scratch,
    data,
    server,
    main: (steps, before = () => undefined) => main(steps.map(([name, step, page = started.page]) => [name, step, page]), async () => {
      await before();
      await started.browser.close();
      await server.stop();
    }),
  };
}
