import assert from 'node:assert/strict';
import {test} from 'node:test';
import {ShapeError, any, bool, dict, list, num, obj, oneOf, opt, or, str, tuple} from './shape';

const shape = obj({
  name: str,
  at: opt(num),
  tags: or(list(str), []),
  rows: opt(list(list(obj({x: num})))),
  pairs: opt(list(tuple(str, num))),
  nested: opt(obj({on: bool})),
});

test('null and missing are undefined, other members are left out', () => {
  assert.deepEqual(shape({name: 'a', at: null, extra: 1}, ''), {
    name: 'a',
    at: undefined,
    tags: [],
    rows: undefined,
    pairs: undefined,
    nested: undefined,
  });
});

test('a wrong value is named by its path', () => {
  const wrong: [unknown, string][] = [
    [{name: 1}, 'name: expected a text'],
    [{name: 'a', at: '1'}, 'at: expected a number'],
    [{name: 'a', at: Infinity}, 'at: expected a number'],
    [{name: 'a', tags: ['x', 2]}, 'tags[1]: expected a text'],
    [{name: 'a', rows: [[], [{x: 1}, {x: 'y'}]]}, 'rows[1][1].x: expected a number'],
    [
      {
        name: 'a',
        pairs: [
          ['a', 1],
          ['b', '2'],
        ],
      },
      'pairs[1][1]: expected a number',
    ],
    [{name: 'a', nested: {on: 1}}, 'nested.on: expected true or false'],
    [[], 'the reply: expected an object'],
    [null, 'the reply: expected an object'],
  ];
  for (const [value, message] of wrong)
    assert.throws(
      () => shape(value, ''),
      (error: unknown) => error instanceof ShapeError && error.message === message,
      message,
    );
});

test('pairs and dictionaries', () => {
  assert.deepEqual(tuple(num, str)([1, 'a'], 'x'), [1, 'a']);
  assert.throws(() => tuple(num, str)([1], 'x'), /x: expected a pair/);
  assert.deepEqual(dict(opt(num))({a: 1, b: null}, ''), {a: 1, b: undefined});
  assert.throws(() => dict(num)({a: 'x'}, 'd'), /d\.a/);
  const odd = JSON.parse('{"__proto__": 1, "constructor": 2}') as unknown;
  assert.deepEqual(Object.keys(dict(any)(odd, '')).sort(), ['__proto__', 'constructor']);
});

test('a word that is not known yet is undefined, as one that is missing', () => {
  const kind = oneOf(['code', 'text']);
  assert.equal(kind('code', ''), 'code');
  for (const value of ['diagram', undefined, null, 3, 'toString'])
    assert.equal(kind(value, ''), undefined);
});

test('characters that are not seen are made visible in every text', () => {
  assert.equal(str('a\u202egnp.exe', ''), 'a\ufffdgnp.exe');
  assert.equal(str('\u0000\u001b[31m', ''), '\u2400\u241b[31m');
  assert.equal(str('line\n\tline', ''), 'line\n\tline');
  assert.equal(str('\u05d0\u05d1 µs 😀', ''), '\u05d0\u05d1 µs 😀');
});
