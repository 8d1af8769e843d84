// text/en.json, every text of the page, and the files of other languages beside it.
import {existsSync, readFileSync, readdirSync} from 'node:fs';
import {dirname, join, relative} from 'node:path';
import {fileURLToPath} from 'node:url';
import {findTexts, placesOf} from './find.mjs';
import {PSEUDO, pseudo} from './pseudo.mjs';

export const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const folder = join(root, 'text');
const PAGE = 'static/index.html';
/** What `index.html` says: its description, the link past the header, and what stands where scripts are off. */
const PAGE_TEXTS = /(?<=\scontent=")[^"]* [^"]* [^"]*(?="\s*\/>)|(?<=<noscript>|<a [^>]*>)[^<]+/g;
/** Names of files that say which texts are taken by a language's plural forms. */
const CATEGORIES = new Set(['zero', 'one', 'two', 'few', 'many', 'other']);

function sourcesUnder(path) {
  return readdirSync(path, {withFileTypes: true}).flatMap(entry => {
    const inner = join(path, entry.name);
    if (entry.isDirectory()) return entry.name === 'testing' ? [] : sourcesUnder(inner);
    return /(?<!\.test)\.tsx?$/.test(entry.name) ? [inner] : [];
  });
}

/** Every text with where it stands, sorted by its words. */
export function collect() {
  const texts = new Map();
  const add = (key, place) => texts.set(key, (texts.get(key) ?? new Set()).add(place));
  for (const path of sourcesUnder(join(root, 'src')))
    for (const {key, place, notes} of findTexts(relative(root, path), readFileSync(path, 'utf8')))
      add(key, [place, ...notes].join('; '));
  for (const [key] of readFileSync(join(root, PAGE), 'utf8').matchAll(PAGE_TEXTS)) add(key, PAGE);
  return new Map(
    [...texts]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, places]) => [key, [...places].sort()]),
  );
}

/** One line a text, so that two changes meet in a merge only where they change the same one. */
export function englishFile(texts) {
  const lines = [...texts].map(
    ([key, places]) => `${JSON.stringify(key)}: ${JSON.stringify(places)}`,
  );
  return `{\n${lines.join(',\n')}\n}\n`;
}

export const englishPath = join(folder, 'en.json');
export const languagePath = language => join(folder, `${language}.json`);

/** The languages there are, beside English. */
export const languages = () =>
  readdirSync(folder)
    .filter(name => /^[a-z]{2,3}(-[A-Za-z0-9]+)*\.json$/.test(name) && name !== 'en.json')
    .map(name => name.replace('.json', ''));

/** What is wrong with a translation of `key`, or undefined. */
function problemOf(key, value) {
  if (typeof value === 'string')
    return value === '' || placesOf(value) === placesOf(key) ? undefined : 'other places in braces';
  const entries = Object.entries(value ?? {});
  if (entries.some(([name]) => CATEGORIES.has(name))) {
    if (!key.includes(' | ')) return 'forms of a number, but the text has none';
    return typeof value.other === 'string' ? undefined : 'no form "other"';
  }
  if (entries.length === 0 || value['*'] === undefined) return 'no "*", what holds elsewhere';
  return entries.map(([, inner]) => problemOf(key, inner)).find(problem => problem !== undefined);
}

/** A translation of the texts: {translate, missing, stale, problems}. */
export function readLanguage(language, texts) {
  if (language === PSEUDO)
    return {
      translate: text => pseudo(text.forms ?? text.key),
      missing: [],
      stale: [],
      problems: [],
    };
  const path = languagePath(language);
  if (!existsSync(path)) throw new Error(`no ${path}: make it with npm run texts -- ${language}`);
  const file = JSON.parse(readFileSync(path, 'utf8'));
  const problems = Object.entries(file).flatMap(([key, value]) => {
    const problem = problemOf(key, value);
    return problem && texts.has(key)
      ? [`${language}.json: ${problem}: ${JSON.stringify(key)}`]
      : [];
  });
  return {
    translate: ({key, place, forms}) => {
      let value = file[key] || undefined;
      if (typeof value === 'object' && value['*'] !== undefined)
        value = value[place.split(':')[0]] || value['*'] || undefined;
      return value ?? forms ?? key;
    },
    missing: [...texts.keys()].filter(key => !file[key]),
    stale: Object.keys(file).filter(key => !texts.has(key)),
    problems,
  };
}

/** `index.html` in a language. */
export function translatePage(html, language, translate) {
  return html
    .replace('<html lang="en">', `<html lang="${language}">`)
    .replace(PAGE_TEXTS, key => translate({key, place: PAGE}));
}
