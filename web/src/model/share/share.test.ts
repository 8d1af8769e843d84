import assert from 'node:assert/strict';
import {test} from 'node:test';
import {fileName, redactList} from './share';

test('the same choice is the same list', () => {
  assert.equal(redactList(['paths', 'hosts']), 'hosts,paths');
  assert.equal(redactList([]), '');
});

test('names of files are plain', () => {
  assert.equal(fileName('resnet50 5 workers', 'html'), 'resnet50-5-workers-report.html');
  assert.equal(fileName('../../etc/passwd', 'md'), 'etc-passwd-report.md');
  assert.equal(fileName('<img src=x>', 'html'), 'img-src-x-report.html');
  assert.equal(fileName('', 'html'), 'lacuna-report.html');
  assert.equal(fileName('\u202e', 'html'), 'lacuna-report.html');
  assert.ok(fileName('x'.repeat(500), 'html').length < 80);
});
