// Bundles the page into dist/: index.html, app.js, app.css. `--watch` rebuilds on change.
import {copyFileSync, mkdirSync, readdirSync, rmSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import * as esbuild from 'esbuild';

const root = dirname(fileURLToPath(import.meta.url));
const dist = join(root, 'dist');
const watch = process.argv.includes('--watch');

rmSync(dist, {recursive: true, force: true});
mkdirSync(dist, {recursive: true});
for (const name of readdirSync(join(root, 'static')))
  copyFileSync(join(root, 'static', name), join(dist, name));

/** @type {esbuild.BuildOptions} */
const options = {
  absWorkingDir: root,
  entryPoints: {app: 'src/main.tsx'},
  outdir: dist,
  bundle: true,
  format: 'esm',
  target: ['es2022', 'chrome111', 'firefox113', 'safari16.4'],
  jsx: 'automatic',
  jsxImportSource: 'preact',
  minify: !watch,
  sourcemap: watch ? 'inline' : false,
  legalComments: 'inline',
  charset: 'utf8',
  logLevel: 'info',
};

if (watch) {
  const context = await esbuild.context(options);
  await context.watch();
} else {
  await esbuild.build(options);
}
