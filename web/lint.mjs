// Rules that neither the compiler nor the formatter knows: which layer may use which, and what
// the strict content security policy and hostile names forbid. Run after `prettier --check`.
import {readFileSync, readdirSync} from 'node:fs';
import {dirname, join, relative, resolve} from 'node:path';
import {fileURLToPath} from 'node:url';

const root = dirname(fileURLToPath(import.meta.url));
const src = join(root, 'src');

/** From the ground up; a layer uses itself and what stands before it. */
const LAYERS = ['base', 'api', 'model', 'render', 'ui', 'flame', 'timeline', 'pages'];

const BANNED = [
  [
    /\binnerHTML\b|\bouterHTML\b|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write\b/,
    'text of a trace must stay text',
  ],
  [/\beval\(|new Function\(/, 'forbidden by the content security policy'],
  [/\bas any\b|:\s*any\b(?!\w)|<any>/, 'say what it is'],
  [/^export default/m, 'exports have names'],
  [/\bstyle="/, 'forbidden by the content security policy: use a class or a style object'],
  [/\bdebugger\b|console\.log\(/, 'left from debugging'],
  [/https?:\/\/(?!www\.w3\.org\/)/, 'the page talks to its own server only'],
];

const problems = [];

function sourcesUnder(folder) {
  return readdirSync(folder, {withFileTypes: true}).flatMap(entry => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? sourcesUnder(path) : /\.tsx?$/.test(entry.name) ? [path] : [];
  });
}

function layerOf(path) {
  const [first = '', second] = relative(src, path).split('/');
  return second === undefined ? undefined : first;
}

for (const path of sourcesUnder(src)) {
  const name = relative(root, path);
  const text = readFileSync(path, 'utf8');
  const layer = layerOf(path);
  const isTest = /\.test\.tsx?$/.test(path) || name.includes('/testing/');
  if (layer !== undefined && !LAYERS.includes(layer)) problems.push(`${name}: unknown layer`);
  if (!/^[a-z0-9_]+(\.test)?\.tsx?$/.test(path.split('/').at(-1)))
    problems.push(`${name}: file names are snake_case`);
  for (const [, target] of text.matchAll(/from '(\.[^']*)'/g)) {
    const used = layerOf(resolve(dirname(path), target));
    if (layer === undefined || used === undefined) continue;
    if (LAYERS.indexOf(used) > LAYERS.indexOf(layer))
      problems.push(`${name}: ${layer} may not use ${used} (${target})`);
  }
  const lines = text.split('\n');
  if (lines.length > 900) problems.push(`${name}: ${lines.length} lines, at most 900`);
  if (isTest) continue;
  lines.forEach((line, index) => {
    if (/^\s*(\/\/|\*|\/\*)/.test(line)) return;
    for (const [pattern, why] of BANNED)
      if (pattern.test(line)) problems.push(`${name}:${index + 1}: ${why}: ${line.trim()}`);
  });
}

const page = readFileSync(join(root, 'static', 'index.html'), 'utf8');
if (/<style|\sstyle=|\son[a-z]+=|<script(?![^>]*\ssrc=)/i.test(page))
  problems.push('static/index.html: inline script or style');

const lock = readFileSync(join(root, 'package-lock.json'), 'utf8');
if (/"resolved"/.test(lock)) problems.push('package-lock.json: names a registry');

for (const problem of problems) console.error(problem);
console.error(problems.length === 0 ? 'lint: no problem' : `lint: ${problems.length} problem(s)`);
process.exit(problems.length === 0 ? 0 : 1);
