// Rules that neither the compiler nor the formatter knows: which layer may use which, that no
// folders use each other in a circle, and what the strict content security policy and hostile
// names forbid. Run after `prettier --check`.
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
  // and gives a tab of Perfetto what the user shares
  [/https?:\/\/(?!www\.w3\.org\/|ui\.perfetto\.dev')/, 'the page talks to its own server only'],
];

/** More than this in a folder is a list to search, not a place to know. */
const FOLDER_FILES_MAX = 40;

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

/** Which folders a folder uses, each with the import that says so. Tests may use what they like. */
const uses = new Map();

function noteUse(path, target) {
  const from = relative(src, dirname(path)) || '.';
  const to = relative(src, dirname(resolve(dirname(path), target))) || '.';
  if (from === to) return;
  if (!uses.has(from)) uses.set(from, new Map());
  uses.get(from).set(to, `${relative(root, path)} uses ${target}`);
}

/** The folders on the way from `folder` back to itself, or undefined. */
function circleThrough(folder) {
  const cameFrom = new Map([[folder, undefined]]);
  for (const at of cameFrom.keys()) {
    for (const to of uses.get(at)?.keys() ?? []) {
      if (to === folder) {
        const way = [];
        for (let step = at; step !== undefined; step = cameFrom.get(step)) way.unshift(step);
        return way;
      }
      if (!cameFrom.has(to)) cameFrom.set(to, at);
    }
  }
  return undefined;
}

function checkCircles() {
  const told = new Set();
  for (const folder of uses.keys()) {
    const way = circleThrough(folder);
    if (!way || way.some(step => told.has(step))) continue;
    way.forEach(step => told.add(step));
    const whys = way.map((step, i) => uses.get(step).get(way[(i + 1) % way.length]));
    problems.push(`src: folders use each other in a circle: ${whys.join('; ')}`);
  }
}

function checkSizes(folder) {
  const entries = readdirSync(folder, {withFileTypes: true});
  const count = entries.filter(entry => entry.isFile()).length;
  if (count > FOLDER_FILES_MAX)
    problems.push(`${relative(root, folder)}: ${count} files, at most ${FOLDER_FILES_MAX}`);
  for (const entry of entries) if (entry.isDirectory()) checkSizes(join(folder, entry.name));
}

for (const path of sourcesUnder(src)) {
  const name = relative(root, path);
  const text = readFileSync(path, 'utf8');
  const layer = layerOf(path);
  const isTest = /\.test\.tsx?$/.test(path) || name.includes('/testing/');
  if (layer !== undefined && !LAYERS.includes(layer)) problems.push(`${name}: unknown layer`);
  if (!/^[a-z0-9_]+(\.test)?\.tsx?$/.test(path.split('/').at(-1)))
    problems.push(`${name}: file names are snake_case`);
  for (const [, target] of text.matchAll(/(?:\bfrom |\bimport\(|\bimport )'(\.[^']*)'/g)) {
    if (!isTest && !target.endsWith('.css')) noteUse(path, target);
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

checkCircles();
checkSizes(src);

const page = readFileSync(join(root, 'static', 'index.html'), 'utf8');
if (/<style|\sstyle=|\son[a-z]+=|<script(?![^>]*\ssrc=)/i.test(page))
  problems.push('static/index.html: inline script or style');

const lock = readFileSync(join(root, 'package-lock.json'), 'utf8');
if (/"resolved"/.test(lock)) problems.push('package-lock.json: names a registry');

for (const problem of problems) console.error(problem);
console.error(problems.length === 0 ? 'lint: no problem' : `lint: ${problems.length} problem(s)`);
process.exit(problems.length === 0 ? 0 : 1);
