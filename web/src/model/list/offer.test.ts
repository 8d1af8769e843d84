import assert from 'node:assert/strict';
import {test} from 'node:test';
import {offeredBytes, offeredName, offeredUrl} from './offer';

test('a trace is taken bare, or with its title', () => {
  const bytes = new ArrayBuffer(4);
  assert.equal(offeredBytes(bytes)?.bytes, bytes);
  assert.equal(offeredBytes({perfetto: {buffer: bytes, title: 'step 7'}})?.name, 'step 7');
  assert.equal(
    offeredBytes({perfetto: {buffer: bytes, title: 'x', fileName: 'a.json'}})?.name,
    'a.json',
  );
});

test('anything else is no trace', () => {
  for (const data of [null, 'PING', 7, {}, {perfetto: null}, {perfetto: {buffer: 'text'}}])
    assert.equal(offeredBytes(data), undefined);
  assert.equal(offeredBytes(new ArrayBuffer(0)), undefined);
});

test('a name is one line without a path', () => {
  assert.equal(offeredName('../../a\u202e\n.json'), '.. .. a .json');
  assert.equal(offeredName(undefined), 'offered trace');
  assert.equal(offeredName('x'.repeat(500)).length, 200);
});

test('only https and this machine are fetched', () => {
  for (const good of ['https://a.example/t.json', 'http://localhost:9/t', 'http://127.0.0.1/t'])
    assert.equal(offeredUrl(good)?.href, good);
  for (const bad of ['http://a.example/t', 'file:///etc/passwd', 'javascript:1', 'data:,x', '/t'])
    assert.equal(offeredUrl(bad), undefined);
  assert.equal(offeredUrl('https://me:secret@a.example/t'), undefined);
});
