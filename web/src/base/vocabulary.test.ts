import assert from 'node:assert/strict';
import {test} from 'node:test';
import {setTestWords} from './testing/words';
import {word, words} from './vocabulary';

test('words are those that the program sent, in its order', () => {
  setTestWords();
  assert.equal(word('needs', 'host').label, 'needs host');
  assert.deepEqual(
    words('limits').map(({letter}) => letter),
    ['G', 'i', '~', '?'],
  );
});

test('an id of a newer program stands for itself', () => {
  setTestWords();
  assert.equal(word('kernel_families', 'quantum').label, 'quantum');
  assert.equal(word('causes', 'toString').label, 'toString');
});
