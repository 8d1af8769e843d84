import assert from 'node:assert/strict';
import {test} from 'node:test';
import {refusal} from './uploads';

test('what cannot be read today is not sent, and says so', () => {
  assert.match(
    refusal('report1.nsys-rep', 10) ?? '',
    /nsys export --type=sqlite 'report1.nsys-rep'$/,
  );
  assert.match(refusal("a'b.nsys-rep", 10) ?? '', /'a'\\''b.nsys-rep'$/);
  assert.match(refusal('old.qdrep', 10) ?? '', /older/);
  assert.match(refusal('trace.json', 0) ?? '', /empty/);
  for (const name of [
    'trace.json',
    'a.pt.trace.json.gz',
    'ranks.tar.gz',
    'no-ending',
    'x.zst',
    'x.sqlite',
  ])
    assert.equal(refusal(name, 10), undefined, name);
});
