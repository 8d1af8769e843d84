// English as a language that nobody speaks: every text in brackets, with accents and about a third
// longer. What stands without brackets on the screen never went through a translation, and what
// breaks is too narrow for one.
import {parse} from './find.mjs';

/** The tag that is usual for it. */
export const PSEUDO = 'en-XA';

const PLAIN = 'aceinosuyzACEINOSUYZ';
const ACCENTED = 'àçéîñöšüýžÀÇÉÎÑÖŠÜÝŽ';

/** Vowels stand twice, so that it wraps where words do. */
function accented(words) {
  return words.replace(/[a-z]/gi, letter => {
    const at = PLAIN.indexOf(letter);
    const changed = at < 0 ? letter : ACCENTED[at];
    return /[aeiou]/.test(letter) ? changed + changed : changed;
  });
}

function say(tokens) {
  return tokens
    .map(token => {
      if (typeof token !== 'string')
        return token.inner === undefined
          ? token.written
          : `<${token.at}>${say(token.inner)}</${token.at}>`;
      if (!/\p{L}/u.test(token)) return token;
      const [, lead, words, tail] = /^(\s*)(.*?)(\s*)$/su.exec(token);
      return `${lead}⟦${accented(words)}⟧${tail}`;
    })
    .join('');
}

/** A text, or the forms of one, in the language. What is filled in stands outside the brackets. */
export function pseudo(text) {
  if (typeof text !== 'string')
    return Object.fromEntries(Object.entries(text).map(([form, words]) => [form, pseudo(words)]));
  return say(parse(text));
}
