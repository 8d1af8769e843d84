import assert from 'node:assert/strict';
import {test} from 'node:test';
import {
  exactAmount,
  formatAmount,
  formatClock,
  formatAt,
  durationIn,
  exactNs,
  formatBytes,
  formatCount,
  formatDuration,
  formatEta,
  formatFromTo,
  formatGain,
  formatNumber,
  formatPct,
  formatPerStep,
  formatWhen,
  plural,
  sentence,
  unbroken,
} from './format';

const plain = (text: string): string => text.replaceAll('\u202f', ' ').replaceAll('\u2212', '-');

test('counts are grouped, as those of the program are', () => {
  assert.equal(plain(formatCount(1480)), '1 480');
  assert.equal(plain(formatCount(14_800)), '14 800');
  assert.equal(plain(formatCount(1_234_567)), '1 234 567');
  assert.equal(plain(formatCount(-12_345)), '-12 345');
  assert.equal(formatCount(-0.2), '0');
});

test('numbers keep their significant digits and lose empty ones', () => {
  assert.equal(formatNumber(39), '39');
  assert.equal(formatNumber(39, 3, true), '39.0');
  assert.equal(formatNumber(1.5, 2), '1.5');
  assert.equal(formatNumber(1113.4), '1\u202f110');
  assert.equal(formatNumber(0.001234, 2), '0.0012');
  assert.equal(formatNumber(9.999, 3), '10');
  assert.equal(plain(formatNumber(-2.5)), '-2.5');
  assert.equal(formatNumber(0), '0');
});

test('a duration takes the unit in which it reads as a small number', () => {
  assert.equal(plain(formatDuration(812)), '812 ns');
  assert.equal(plain(formatDuration(4310)), '4.31 µs');
  assert.equal(plain(formatDuration(301_234_567)), '301 ms');
  assert.equal(plain(formatDuration(301_234_567, 2)), '300 ms');
  assert.equal(plain(formatDuration(1_500_000_000)), '1.5 s');
  assert.equal(plain(formatDuration(119e9)), '119 s');
  assert.equal(plain(formatDuration(600e9)), '10 min');
  assert.equal(plain(formatDuration(8.2 * 3600e9, 2)), '8.2 h');
  assert.equal(plain(formatDuration(0)), '0 ms');
});

test('a duration that rounds up to the next unit is shown in it', () => {
  assert.equal(plain(formatDuration(999_700)), '1 ms');
  assert.equal(plain(formatDuration(999_999)), '1 ms');
  assert.equal(plain(formatDuration(999_400)), '999 µs');
});

test('exact values keep every digit', () => {
  assert.equal(plain(exactNs(301_234_567)), '301 234 567 ns');
  assert.equal(plain(exactNs(2 ** 53 - 1)), '9 007 199 254 740 991 ns');
});

test('columns have fixed decimals', () => {
  assert.equal(durationIn(1_234_600, 'ms', 3), '1.235');
  assert.equal(durationIn(12_345_000_000, 'ms', 1).replaceAll('\u202f', ' '), '12 345.0');
  assert.equal(plain(durationIn(-500_000, 'ms', 1)), '-0.5');
});

test('percentages never say nothing for something or all for less', () => {
  assert.equal(plain(formatPct(11.83)), '12 %');
  assert.equal(plain(formatPct(3.42)), '3.4 %');
  assert.equal(plain(formatPct(9.96)), '10 %');
  assert.equal(plain(formatPct(0)), '0 %');
  assert.equal(plain(formatPct(0.01)), '< 0.1 %');
  assert.equal(plain(formatPct(99.97)), '> 99 %');
  assert.equal(plain(formatPct(100)), '100 %');
  assert.equal(plain(formatPct(-3.5)), '-3.5 %');
});

test('a gain is a speed, with its band', () => {
  const gain = formatGain(50.5, 45, 52);
  assert.equal(plain(gain.mid), '2.0× faster');
  assert.equal(plain(gain.band), '1.8\u20132.1×');
  assert.equal(plain(formatGain(6).mid), '1.06× faster');
  assert.equal(plain(formatGain(95).mid), '20× faster');
  assert.equal(formatGain(12, 12, 12).band, '');
  assert.equal(plain(formatGain(-3).mid), '3 % slower');
  assert.equal(plain(formatGain(0.02, 0, 0.4).mid), '< 1 % faster');
  assert.equal(formatGain(undefined).mid, '');
  assert.equal(formatGain(0, 0, 0).mid, '');
});

test('a change goes from one time to another, in one unit', () => {
  assert.equal(plain(formatFromTo(750e6, 50.5)), '750 \u2192 371 ms');
  assert.equal(plain(formatFromTo(1.2e9, 60)), '1.2 \u2192 0.48 s');
  assert.equal(formatFromTo(undefined, 5), '');
  assert.equal(formatFromTo(5, undefined), '');
});

test('bytes in powers of a thousand', () => {
  assert.equal(plain(formatBytes(154_140_672)), '154 MB');
  assert.equal(plain(formatBytes(999_999)), '1 MB');
  assert.equal(plain(formatBytes(512)), '512 B');
  assert.equal(plain(formatBytes(0)), '0 B');
});

test('time left is rough', () => {
  assert.equal(plain(formatEta(3.6)), '~4 s');
  assert.equal(plain(formatEta(0.2)), '< 1 s');
  assert.equal(plain(formatEta(240)), '~4 min');
});

test('a date is as short as it can be', () => {
  const now = new Date(2026, 10, 20, 12, 0);
  assert.equal(formatWhen(new Date(2026, 10, 20, 11, 2).toISOString(), now), '11:02');
  assert.equal(formatWhen(new Date(2026, 10, 17, 9, 15).toISOString(), now), 'Tue 09:15');
  assert.equal(formatWhen(new Date(2026, 2, 3).toISOString(), now), '3 Mar');
  assert.equal(formatWhen(new Date(2025, 10, 3).toISOString(), now), '2025-11-03');
  assert.equal(formatWhen('nonsense', now), '');
});

test('plurals', () => {
  assert.equal(plural(1, 'step'), '1 step');
  assert.equal(plural(4, 'batch'), '4 batches');
  assert.equal(plural(6, 'step'), '6 steps');
  assert.equal(plural(2, 'copy', 'copies'), '2 copies');
});

test('a sentence starts with a capital', () => {
  assert.equal(sentence('the GPU waits 3 ms'), 'The GPU waits 3 ms');
  assert.equal(sentence(''), '');
});

test('how often is told in words where it is rare', () => {
  assert.equal(formatPerStep(162), '162× per step');
  assert.equal(formatPerStep(5 / 6), '0.83× per step');
  assert.equal(formatPerStep(1 / 28), 'once in 28 steps');
  assert.equal(formatPerStep(0), 'outside the steps');
});

test('a line begins with a capital letter, a name of code as it is written', () => {
  assert.equal(sentence('the GPU waits 12 ms (62 %)'), 'The GPU waits 12 ms (62 %)');
  assert.equal(sentence('aten::to stops the host'), 'aten::to stops the host');
  assert.equal(
    sentence('normalize (transformers/a.py:390) fills 47 %'),
    'normalize (transformers/a.py:390) fills 47 %',
  );
  assert.equal(sentence('num_workers=2'), 'num_workers=2');
  assert.equal(
    sentence('exposed (non-overlapped) communication'),
    'Exposed (non-overlapped) communication',
  );
  assert.equal(sentence('step 3 sums'), 'Step 3 sums');
  assert.equal(sentence(''), '');
});

test('a time has the digits that tell its start from its end', () => {
  const plain = (text: string): string => text.replace(/\s/g, ' ');
  assert.equal(plain(formatAt(473_144_948, 7_000)), '473.1449 ms');
  assert.equal(plain(formatAt(473_144_948, 300_000_000)), '473.1 ms');
  assert.equal(plain(formatAt(12_000_000_123, 1)), '12.000000123 s');
  assert.equal(plain(formatAt(0, 5)), '0 ms');
});

test('microseconds of a sentence have the sign of those beside it', () => {
  assert.equal(
    unbroken('launched by cuLaunchKernelEx (30 us), 4 use it'),
    'launched by cuLaunchKernelEx (30\u00a0µs), 4 use it',
  );
});

test('a number stays with its unit', () => {
  assert.equal(
    unbroken('The GPU waits 369 ms of 750 ms (49 %) in 28 steps, 2 hours of 3 h, 4 GB.'),
    'The GPU waits 369\u00a0ms of 750\u00a0ms (49\u00a0%) in 28 steps, 2 hours of 3\u00a0h, 4\u00a0GB.',
  );
});

test('a moment on the clock, to the nanosecond; none of a machine that counts from its start', () => {
  assert.equal(
    formatClock('1623143089861000000', 342_117),
    '2021-06-08 09:04:49.861\u2009342\u2009117 UTC',
  );
  assert.equal(formatClock('86400000000000', 5), undefined);
  assert.equal(formatClock('-5', 5), undefined);
});

test('what a profile counts: one sample, two samples; other units as they are', () => {
  const samples = {unit: 'samples', unit_ns: 1000};
  assert.equal(formatAmount(1000, samples), '1\u202fsample');
  assert.equal(formatAmount(2000, samples), '2\u202fsamples');
  assert.equal(exactAmount(1000, samples), '1\u202fsample');
  assert.equal(formatAmount(1000, {unit: 'misses', unit_ns: 1000}), '1\u202fmisses');
  assert.equal(formatAmount(1000, {unit: '', unit_ns: 1}), '1\u202fµs');
});
