import assert from 'node:assert/strict';
import test from 'node:test';
import {findingOf, insertPart, linesMissingIn} from './report_text';

test('a part gets a block of its own, with a line between', () => {
  assert.equal(insertPart('', 0, 'flame trace=a'), '```lacuna\nflame trace=a\n```\n\n');
  assert.equal(
    insertPart('One.\nTwo.', 4, 'flame trace=a'),
    'One.\n\n```lacuna\nflame trace=a\n```\n\nTwo.',
  );
});

test('a part goes into the block that the cursor is in', () => {
  const text = '```lacuna\nflame trace=a\n```\n';
  assert.equal(
    insertPart(text, 24, 'table trace=a of=idle'),
    '```lacuna\nflame trace=a\ntable trace=a of=idle\n```\n',
  );
});

test('findings are known by their line', () => {
  assert.equal(findingOf('finding trace=ab2 id=gpu-bound'), 'gpu-bound');
  assert.equal(findingOf('flame trace=ab2'), undefined);
});

test('what one text has and the other lacks', () => {
  assert.deepEqual(linesMissingIn('a\nb', 'a\n\n c\nb'), [' c']);
});
