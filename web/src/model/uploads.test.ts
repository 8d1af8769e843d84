import assert from 'node:assert/strict';
import {test} from 'node:test';
import {refusal} from './uploads';

test('what cannot be read today is not sent, and says so', () => {
  assert.match(refusal('report1.nsys-rep', 10) ?? '', /Nsight/);
  assert.match(refusal('profile.sqlite', 10) ?? '', /SQLite/);
  assert.match(refusal('trace.json', 0) ?? '', /empty/);
  for (const name of ['trace.json', 'a.pt.trace.json.gz', 'ranks.tar.gz', 'no-ending', 'x.zst'])
    assert.equal(refusal(name, 10), undefined, name);
});
