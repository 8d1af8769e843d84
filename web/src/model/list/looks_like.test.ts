import assert from 'node:assert/strict';
import {test} from 'node:test';
import {likenessOf} from './looks_like';

test('a file is known by its name, with the command that makes it readable', () => {
  assert.equal(
    likenessOf('run 1.nsys-rep', '')?.command,
    "nsys export --type=sqlite 'run 1.nsys-rep'",
  );
  assert.equal(likenessOf("it's.qdrep", '')?.command, "nsys export --type=sqlite 'it'\\''s.qdrep'");
  assert.match(likenessOf('host.xplane.pb', '')?.what ?? '', /XPlane/);
  assert.equal(likenessOf('x.pftrace', ''), undefined);
  assert.match(likenessOf('model.pt', '')?.advice ?? '', /trace\.json/);
  assert.match(likenessOf('a.pt.trace.json', 'corrupt')?.advice ?? '', /traceEvents/);
  assert.match(likenessOf('a.json.gz', 'limit')?.advice ?? '', /limits/);
  assert.equal(likenessOf('a.bin', 'corrupt'), undefined);
});
