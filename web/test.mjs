// Bundles every src/**/*.test.ts and runs it with node's own test runner, and tools/**/*.test.mjs.
// `node test.mjs NAME` runs only the files whose path contains NAME.
import {spawnSync} from 'node:child_process';
import {mkdirSync, readdirSync, rmSync, writeFileSync} from 'node:fs';
import {dirname, join, relative} from 'node:path';
import {fileURLToPath} from 'node:url';
import * as esbuild from 'esbuild';

const root = dirname(fileURLToPath(import.meta.url));
const out = join(root, 'node_modules', '.cache', 'lacuna-tests');
const filter = process.argv[2] ?? '';

function testsUnder(folder) {
  return readdirSync(folder, {withFileTypes: true}).flatMap(entry => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return testsUnder(path);
    return /\.test\.(tsx?|mjs)$/.test(entry.name) && path.includes(filter) ? [path] : [];
  });
}

const tests = testsUnder(join(root, 'src'));
const toolTests = testsUnder(join(root, 'tools'));
if (tests.length + toolTests.length === 0) {
  console.error(`no test file matches '${filter}'`);
  process.exit(1);
}
rmSync(out, {recursive: true, force: true});
mkdirSync(out, {recursive: true});
await esbuild.build({
  absWorkingDir: root,
  entryPoints: tests.map(path => ({
    in: path,
    out: relative(join(root, 'src'), path)
      .replaceAll('/', '-')
      .replace(/\.tsx?$/, ''),
  })),
  outdir: out,
  outExtension: {'.js': '.mjs'},
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node18',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  sourcemap: 'inline',
  logLevel: 'warning',
});
// one process for all: a Node for each of them took six times as long; each bundle has modules of its own
const all = join(out, 'all.mjs');
const bundles = readdirSync(out).filter(name => name.endsWith('.mjs'));
writeFileSync(
  all,
  [...bundles.map(name => `./${name}`), ...toolTests].map(path => `import '${path}';\n`).join(''),
);
const run = spawnSync(process.execPath, ['--enable-source-maps', '--test', all], {
  cwd: root,
  stdio: 'inherit',
});
process.exit(run.status ?? 1);
