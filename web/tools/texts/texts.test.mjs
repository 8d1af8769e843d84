import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {test} from 'node:test';
import {collect, englishFile, englishPath} from './catalog.mjs';
import {findTexts, parse, placesOf, replaceTexts} from './find.mjs';
import {pseudo} from './pseudo.mjs';

const keys = source => findTexts('src/a.tsx', source).map(text => text.key);
const inGerman = (source, words) =>
  replaceTexts('src/a.tsx', source, ({key, forms}) => words[key] ?? forms ?? key);

test('text/en.json is what the sources say', () => {
  const same = readFileSync(englishPath, 'utf8') === englishFile(collect());
  assert.ok(same, 'text/en.json is not: run (cd web && npm run texts) and commit it');
});

test('what stands between tags and in titles is a text, classes and code are none', () => {
  assert.deepEqual(keys('<p class="a b" title="Help" id="x">Two words <code>rm -r</code></p>'), [
    'Two words <0/>',
    'Help',
  ]);
  assert.deepEqual(keys('<p>{isOpen ? "open" : kind === "other" ? "shut" : page("list")}</p>'), [
    'open',
    'shut',
  ]);
  assert.deepEqual(keys('<circle d={`M${x} ${y}L0 0`} />'), []);
});

test('where the position does not tell, two words are a text, and a comment decides', () => {
  assert.deepEqual(keys('const a = f("no such row"); const b = f("row");'), ['no such row']);
  assert.deepEqual(keys('const a = /* text */ ["Sun", "Mon"];'), ['Sun', 'Mon']);
  assert.deepEqual(keys('const a = f(/* no text */ "no such row");'), []);
  assert.deepEqual(keys('const q = `SELECT name FROM ${table} LIMIT 5`, c = `${a}px`;'), [
    'SELECT name FROM {0} LIMIT 5',
  ]);
  assert.deepEqual(keys('const d = `${a}V${b}Z`, e = `rgb(${a}, ${b})`, f = "a_b c_d";'), []);
});

test('a sentence with elements is one text, and a translation moves its places', () => {
  const source = '<p>{count} of <b>all rows</b> in {place}</p>';
  assert.deepEqual(keys(source), ['{0} of <1>all rows</1> in {2}']);
  assert.equal(
    inGerman(source, {'{0} of <1>all rows</1> in {2}': 'in {2} {0} von <1>allen</1>'}),
    '<p>{"in "}{place}{" "}{count}{" von "}<b>{"allen"}</b></p>',
  );
});

test('what is filled into a text is translated in its place', () => {
  assert.equal(
    inGerman('const title = `${isNew ? "new" : name} of ${n}`;', {
      '{0} of {1}': '{1}: {0}',
      new: 'neu',
    }),
    'const title = `${n}: ${isNew ? `neu` : name}`;',
  );
});

test('backticks and dollars in a translation stay characters', () => {
  const made = inGerman('const title = "a";\nconst text = "Two words";', {
    'Two words': '`${x}` \\',
  });
  assert.match(made, /const text = `\\`\\\$\{x\}\\` \\\\`;/);
});

test('forms of a number', () => {
  assert.deepEqual(keys('plural(n, "batch")'), ['{0} batch | {0} batches']);
  const forms = {one: '{0} krok', few: '{0} kroki', other: '{0} kroków'};
  assert.match(
    inGerman('plural(n, "step")', {'{0} step | {0} steps': forms}),
    /pluralForm\(n, \{"one":"\{0\} krok","few":"\{0\} kroki","other":"\{0\} kroków"\}\)$/,
  );
  assert.match(inGerman('plural(n, unit)', {}), /pluralOf\(n, unit\)$/);
});

test('places that do not pair are refused', () => {
  assert.throws(() => parse('<0>a'), /not closed/);
  assert.throws(() => parse('a</0>'), /closes nothing/);
  assert.notEqual(placesOf('{0} of {1}'), placesOf('{0} of {0}'));
});

test('the pseudo-language brackets words, and no places', () => {
  assert.equal(pseudo('{0} of <1>all</1>'), '{0} ⟦ööf⟧ <1>⟦ààll⟧</1>');
});
