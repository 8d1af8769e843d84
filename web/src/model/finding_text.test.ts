import assert from 'node:assert/strict';
import {test} from 'node:test';
import {looksLikeCode, looksLikeCommand} from './finding_text';

test('a command is told from a sentence', () => {
  for (const text of ['lacuna analyze x.json', 'python train.py', 'NCCL_DEBUG=INFO torchrun x'])
    assert.ok(looksLikeCommand(text), text);
  for (const text of ['Record again with seven workers.', 'python', '', 'lacuna'])
    assert.ok(!looksLikeCommand(text), text);
});

test('a change is code or a sentence', () => {
  for (const text of [
    'DataLoader(..., num_workers=7)  # now 5',
    'loader = DataLoader(..., pin_memory=True)\nimages = images.to(device, non_blocking=True)',
    'model = model.to(memory_format=torch.channels_last)',
    "with torch.autocast('cuda', dtype=torch.float16): ...",
  ])
    assert.ok(looksLikeCode(text), text);
  for (const text of [
    "More workers won't help: make a batch cheaper (smaller stored files) or allow more cores.",
    'Record the workers: what a batch spends its time on decides between more workers and more',
  ])
    assert.ok(!looksLikeCode(text), text);
});
