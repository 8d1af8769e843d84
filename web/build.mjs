// Bundles the page into dist/: index.html, app.js, app.css. `--watch` rebuilds on change;
// LACUNA_LANG=de builds it in the language of text/de.json, `--out FOLDER` elsewhere, and `--quick`
// leaves out what takes most of the time and only makes it smaller.
import {copyFileSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync} from 'node:fs';
import {basename, dirname, join, relative, resolve} from 'node:path';
import {fileURLToPath} from 'node:url';
import zopfli from '@gfx/zopfli';
import * as esbuild from 'esbuild';
import {minify} from 'terser';
import ts from 'typescript';

const root = dirname(fileURLToPath(import.meta.url));
const out = process.argv.indexOf('--out');
const dist = out < 0 ? join(root, 'dist') : resolve(process.argv[out + 1]);
const watch = process.argv.includes('--watch');
const quick = process.argv.includes('--quick');
const language = process.env.LACUNA_LANG || 'en';

rmSync(dist, {recursive: true, force: true});
mkdirSync(dist, {recursive: true});
for (const name of readdirSync(join(root, 'static')))
  copyFileSync(join(root, 'static', name), join(dist, name));

/** English is what the sources say; nothing is done for it. */
async function inLanguage() {
  if (language === 'en') return [];
  const {openLanguage, textsPlugin} = await import('./tools/texts/plugin.mjs');
  const {translatePage} = await import('./tools/texts/catalog.mjs');
  const texts = openLanguage(language);
  const index = join(dist, 'index.html');
  writeFileSync(index, translatePage(readFileSync(index, 'utf8'), language, texts.translate));
  return [textsPlugin(language, texts)];
}

/** Members that may be as short as a variable: those that are private and said nowhere but there and as
 *  `this.NAME`, and those that nobody but the page can say: no string or export of it, no reply or request of
 *  the server (src/api), no file that it writes (model/share), nothing of the browser, no package. */
function ownNames() {
  const files = readdirSync(join(root, 'src'), {recursive: true});
  const sources = files.filter(name => /(?<!\.test)\.tsx?$/.test(name));
  const text = new Map(sources.map(name => [name, readFileSync(join(root, 'src', name), 'utf8')]));
  const said = /(private (?:readonly |async |get )*|this\.)?\b([A-Za-z]+)\b/g;
  const names = new Set();
  const others = new Set();
  const whole = [...text.values()].join('\n').replace(/^\s*(\/\/|\/\*\*|\* ).*/gm, '');
  for (const [, own, name] of whole.matchAll(said)) {
    if (own?.startsWith('private')) names.add(name);
    if (!own) others.add(name);
  }
  const members = new Set();
  const sayable = foreignSources().map(path => readFileSync(path, 'utf8'));
  for (const [name, code] of text) {
    if (/^(api|model\/share)\//.test(name)) sayable.push(code);
    sayable.push(...(code.match(/^export .*/gm) ?? [])); // a part that comes later is asked for them
    const visit = node => {
      if (ts.isPropertyAccessExpression(node) || ts.isPropertySignature(node))
        members.add(node.name.text);
      else if (ts.isLiteralExpression(node) || ts.isTemplateHead(node)) sayable.push(node.text);
      else if (ts.isTemplateMiddleOrTemplateTail(node)) sayable.push(node.text);
      else if (ts.isExportSpecifier(node)) sayable.push(node.name.text);
      ts.forEachChild(node, visit);
    };
    visit(ts.createSourceFile(name, code, ts.ScriptTarget.Latest));
  }
  const foreign = new Set(sayable.join('\n').match(/[A-Za-z_$][\w$]*/g));
  const short = [
    ...[...names].filter(name => !others.has(name)),
    ...[...members].filter(name => /^[A-Za-z]{4,}$/.test(name) && !foreign.has(name)),
  ];
  return new RegExp(`^(${short.join('|')})$`);
}

/** What says the names of the browser and of the packages. */
function foreignSources() {
  const modules = join(root, 'node_modules');
  const within = (folder, pattern) =>
    readdirSync(join(modules, folder), {recursive: true})
      .filter(name => pattern.test(name))
      .map(name => join(modules, folder, name));
  return [
    ...within('typescript/lib', /^lib\..*\.d\.ts$/),
    ...within('preact', /^(src|hooks\/src|dist|hooks\/dist)\/.*\.(m?js|d\.ts)$/),
    ...within('@preact', /\.(mjs|d\.ts)$/),
  ];
}

/** @type {esbuild.BuildOptions} */
const options = {
  absWorkingDir: root,
  entryPoints: {app: 'src/main.tsx'},
  outdir: dist,
  plugins: await inLanguage(),
  bundle: true,
  splitting: true,
  chunkNames: '[name]-[hash]',
  metafile: true,
  format: 'esm',
  target: ['es2022', 'chrome111', 'firefox113', 'safari16.4'],
  // h(type, props, ...children): 1.5 kB less than the calls of the automatic form; tsconfig.json
  // checks that one, which means the same
  tsconfigRaw: {
    compilerOptions: {jsx: 'react', jsxFactory: 'h', jsxFragmentFactory: 'Fragment'},
  },
  inject: ['every_file.mjs'],
  minify: !watch,
  ...(watch ? {} : {mangleProps: ownNames()}),
  sourcemap: watch ? 'inline' : false,
  legalComments: 'inline',
  charset: 'utf8',
  logLevel: 'info',
};

if (watch) {
  const context = await esbuild.context(options);
  await context.watch();
} else {
  const {outputs} = (await esbuild.build(options)).metafile;
  preload(outputs);
  fetchTogether(outputs);
  dropCopiedStyles();
  if (!quick) {
    await shorten();
    await compress();
  }
}

/** Every part comes with a copy of the styles; the page links app.css alone. */
function dropCopiedStyles() {
  for (const name of readdirSync(dist))
    if (name.endsWith('.css') && name !== 'app.css') rmSync(join(dist, name));
}

/** Once more by a minifier that looks across statements: 3 % less when compressed. */
async function shorten() {
  for (const name of readdirSync(dist).filter(name => name.endsWith('.js'))) {
    const path = join(dist, name);
    // no function of the page is called with `new` or with another `this`: what could be an arrow may be one
    // and `a === 1` as it is written compresses better than `1 === a`
    const compress = {passes: 3, unsafe_arrows: true, lhs_constants: false};
    const options = {module: true, ecma: 2022, compress};
    writeFileSync(path, (await minify(readFileSync(path, 'utf8'), options)).code);
  }
}

/** The server carries FILE.gz for FILE. Zopfli's gzip is 4 % smaller than that of zlib. */
async function compress() {
  for (const name of readdirSync(dist).filter(name => /\.(js|css)$/.test(name))) {
    const packed = await zopfli.gzipAsync(readFileSync(join(dist, name)), {
      numiterations: 40,
    });
    writeFileSync(join(dist, `${name}.gz`), packed);
  }
}

/** What a part begins with, by import. */
function importedBy(outputs, name, found = new Set()) {
  for (const {path, kind} of outputs[name].imports) {
    if (kind !== 'import-statement' || found.has(path)) continue;
    found.add(path);
    importedBy(outputs, path, found);
  }
  return found;
}

/** What app.js begins with is fetched beside it, not after it. */
function preload(outputs) {
  const links = [...importedBy(outputs, relative(root, join(dist, 'app.js')))].map(
    path => `    <link rel="modulepreload" href="/${basename(path)}" />\n`,
  );
  const index = join(dist, 'index.html');
  const mark = '    <script type="module"';
  writeFileSync(index, readFileSync(index, 'utf8').replace(mark, links.join('') + mark));
}

/** And what a part that is fetched later begins with, beside that part. */
function fetchTogether(outputs) {
  for (const name of Object.keys(outputs).filter(name => name.endsWith('.js'))) {
    const here = importedBy(outputs, name).add(name);
    const path = join(root, name);
    const text = readFileSync(path, 'utf8').replace(/\bimport\("\.\/([^"]+)"\)/g, (found, part) => {
      const later = [...importedBy(outputs, join(dirname(name), part))].filter(of => !here.has(of));
      const all = [found, ...later.map(of => `import("./${basename(of)}")`)];
      return later.length === 0 ? found : `Promise.all([${all.join()}]).then(all=>all[0])`;
    });
    writeFileSync(path, text);
  }
}
