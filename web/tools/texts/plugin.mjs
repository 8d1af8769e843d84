// The page in another language: esbuild reads each source file with its texts replaced.
import {readFileSync} from 'node:fs';
import {join, relative} from 'node:path';
import {collect, readLanguage, root} from './catalog.mjs';
import {replaceTexts} from './find.mjs';

/** What `plural()` becomes: the form that the language has for the number. */
const pluralForms = (language, counted) => `
  import {formatCount} from './src/base/format';
  const rules = new Intl.PluralRules(${JSON.stringify(language)});
  const counted = ${JSON.stringify(counted)};
  export const pluralForm = (count, forms) =>
    (forms[rules.select(count)] ?? forms.other).replace('{0}', formatCount(count));
  // a word that is chosen while the page runs
  export const pluralOf = (count, word) => pluralForm(count, counted[word] ?? {other: '{0} ' + word});
`;

/** Texts in `language`; throws with one line each for what is wrong with its file. */
export function openLanguage(language) {
  const texts = collect();
  const opened = readLanguage(language, texts);
  if (opened.problems.length > 0) throw new Error(opened.problems.join('\n'));
  return {...opened, counted: countedWords(texts, opened.translate)};
}

/** The forms of each word that a text of its own is, too, by what it is translated to. */
function countedWords(texts, translate) {
  const counted = {};
  for (const key of texts.keys()) {
    const [, one, other] = /^\{0\} (.*) \| \{0\} (.*)$/.exec(key) ?? [];
    if (one === undefined || !texts.has(one)) continue;
    const forms = {one: `{0} ${one}`, other: `{0} ${other}`};
    counted[translate({key: one, place: '*'})] = translate({key, forms, place: '*'});
  }
  return counted;
}

export const textsPlugin = (language, {translate, counted}) => ({
  name: 'texts',
  setup(build) {
    build.onLoad({filter: /[\\/]src[\\/].*\.tsx?$/}, ({path}) => ({
      contents: replaceTexts(relative(root, path), readFileSync(path, 'utf8'), translate),
      loader: path.endsWith('x') ? 'tsx' : 'ts',
    }));
    build.onResolve({filter: /^lacuna:plural$/}, () => ({path: 'plural', namespace: 'lacuna'}));
    build.onLoad({filter: /.*/, namespace: 'lacuna'}, () => ({
      contents: pluralForms(language, counted),
      resolveDir: join(root),
      loader: 'js',
    }));
  },
});
