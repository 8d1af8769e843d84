import assert from 'node:assert/strict';
import {test} from 'node:test';
import {refusal, traceName} from './uploads';

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
    'x.nvvp',
  ])
    assert.equal(refusal(name, 10), undefined, name);
});

test('a trace is called as its file, without the endings that all have', () => {
  assert.equal(traceName('resnet.worker0.162.pt.trace.json.gz'), 'resnet.worker0.162');
  assert.equal(traceName('1-two-workers.json'), '1-two-workers');
  assert.equal(traceName('ranks.tar.gz'), 'ranks');
  assert.equal(traceName('.json'), '.json');
  assert.equal(traceName('my.run.v2'), 'my.run.v2');
});
