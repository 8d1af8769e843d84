// Keeps text/en.json as the source has it. `--check` changes nothing and fails where it is not;
// with the name of a language its file is made, or gets what is new, with "" for what nobody has
// translated yet.
import {existsSync, readFileSync, writeFileSync} from 'node:fs';
import {
  collect,
  englishFile,
  englishPath,
  languagePath,
  languages,
  readLanguage,
} from './catalog.mjs';

const [argument] = process.argv.slice(2);
const texts = collect();
const file = englishFile(texts);
const old = existsSync(englishPath) ? readFileSync(englishPath, 'utf8') : '';

if (argument === '--check') {
  if (file !== old) {
    const before = new Set(Object.keys(old === '' ? {} : JSON.parse(old)));
    const added = [...texts.keys()].find(key => !before.has(key));
    const gone = [...before].find(key => !texts.has(key));
    const what = added ?? gone;
    const why =
      what === undefined
        ? 'a place has changed'
        : `${added ? 'lacks' : 'still has'} ${JSON.stringify(what)}`;
    console.error(`text/en.json ${why}: run (cd web && npm run texts) and commit it`);
    process.exit(1);
  }
} else {
  writeFileSync(englishPath, file);
  console.log(`text/en.json: ${texts.size} texts`);
  if (argument !== undefined) {
    const path = languagePath(argument);
    const known = existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : {};
    const all = [...texts.keys()].map(key => [key, known[key] ?? '']);
    writeFileSync(path, `${JSON.stringify(Object.fromEntries(all), undefined, 1)}\n`);
  }
}
let failed = false;
for (const language of languages()) {
  const {missing, stale, problems} = readLanguage(language, texts);
  for (const problem of problems) console.error(problem);
  failed ||= problems.length > 0;
  if (argument !== '--check' || problems.length > 0)
    console.log(
      `text/${language}.json: ${missing.length} to translate, ${stale.length} no longer used`,
    );
}
process.exit(failed ? 1 : 0);
