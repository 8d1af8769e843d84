import assert from 'node:assert/strict';
import {test} from 'node:test';
import {parseMarkdown, parseSpans} from './markdown';

test('headings, paragraphs over several lines, lists, tables and code are blocks', () => {
  const blocks = parseMarkdown(
    '# a: b\n\none\ntwo\n\n- x\n  more\n- y\n\n| h | i |\n|---|---|\n| `a\\|b` | **c** |\n\n```python\nx = 1\n\n```\n',
  );
  assert.deepEqual(
    blocks.map(block => block.kind),
    ['heading', 'paragraph', 'list', 'table', 'code'],
  );
  assert.deepEqual(blocks[1], {kind: 'paragraph', spans: [{kind: 'text', text: 'one two'}]});
  assert.deepEqual(blocks[2], {
    kind: 'list',
    isOrdered: false,
    start: 1,
    items: [[{kind: 'text', text: 'x more'}], [{kind: 'text', text: 'y'}]],
  });
  assert.deepEqual(blocks[3], {
    kind: 'table',
    rows: [
      [[{kind: 'text', text: 'h'}], [{kind: 'text', text: 'i'}]],
      [[{kind: 'code', text: 'a|b'}], [{kind: 'strong', text: 'c'}]],
    ],
  });
  assert.deepEqual(blocks[4], {kind: 'code', text: 'x = 1\n'});
});

test('code between two items of a list is code, and the list counts on', () => {
  const blocks = parseMarkdown('1. one\n   more\n   ```python\n   x = 1\n     y\n   ```\n2. two\n');
  assert.deepEqual(
    blocks.map(block => (block.kind === 'list' ? block.start : block)),
    [1, {kind: 'code', text: 'x = 1\n  y'}, 2],
  );
});

test('only https and our own documents are links', () => {
  assert.deepEqual(parseSpans('[a](https://b.c/d) [e](javascript:x) [f](gpu-bound.md)'), [
    {kind: 'link', text: 'a', href: 'https://b.c/d'},
    {kind: 'text', text: ' [e](javascript:x) '},
    {kind: 'link', text: 'f', href: 'gpu-bound.md'},
  ]);
});

test('any text ends, and none of it is lost', () => {
  for (const text of [
    '#',
    '|',
    '```',
    '- ',
    '####### x',
    '| a',
    '1.',
    '`',
    '**',
    '[x](',
    '\n\n  y',
  ])
    assert.ok(parseMarkdown(text).length <= 2, text);
  assert.deepEqual(parseMarkdown('####### x'), [
    {kind: 'paragraph', spans: [{kind: 'text', text: '####### x'}]},
  ]);
});
