// What the tests here say when a step fails, without a browser.
import assert from 'node:assert/strict';
import {spawnSync} from 'node:child_process';
import {writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {pathToFileURL} from 'node:url';
import {ROOT, eventually, main, removeFolder, scratchFolder} from './harness.mjs';

const scratch = scratchFolder();
const failing = join(scratch, 'test_failing.mjs');

const steps = [
  ['the last lines name each step that failed, its place and what it said', () => {
    writeFileSync(failing, `import assert from 'node:assert/strict';
import {main} from '${pathToFileURL(join(ROOT, 'tests/browser/harness.mjs'))}';
const same = async (a, b) => {
  await undefined;
  assert.equal(a, b);
};
await main([
  ['this holds', () => undefined],
  ['these differ', async () => {
    await same(1, 2);
  }],
  ['this one is long', async () => {
    throw new Error('first line\\n' + 'x'.repeat(5000));
  }],
], () => console.log('cleaned up'));
`);
    const {stdout, status} = spawnSync('node', [failing], {encoding: 'utf8'});
    const lines = stdout.trimEnd().split('\n');
    assert.equal(status, 1);
    assert.deepEqual(lines.slice(-6, -2), [
      'cleaned up',
      'FAIL these differ (test_failing.mjs:10 > 5)',
      '  Expected values to be strictly equal: 1 !== 2',
      'FAIL this one is long (test_failing.mjs:13)',
    ]);
    assert.match(lines.at(-2), /^ {2}first line x{200,}\.\.\.$/);
    assert.equal(lines.at(-1), '1 passed, 2 failed');
  }],
  ['what holds a moment later is waited for', async () => {
    let tries = 0;
    await eventually(() => assert.ok(++tries === 3));
    assert.equal(tries, 3);
  }],
];

await main(steps, () => removeFolder(scratch));
