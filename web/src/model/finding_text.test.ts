import assert from 'node:assert/strict';
import {test} from 'node:test';
import {looksLikeCommand} from './finding_text';

test('a command is told from a sentence', () => {
  for (const text of ['lacuna analyze x.json', 'python train.py', 'NCCL_DEBUG=INFO torchrun x'])
    assert.ok(looksLikeCommand(text), text);
  for (const text of ['Record again with seven workers.', 'python', '', 'lacuna'])
    assert.ok(!looksLikeCommand(text), text);
});
