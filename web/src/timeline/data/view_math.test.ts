import assert from 'node:assert/strict';
import test from 'node:test';
import {
  WINDOW_MIN_NS,
  centerWindow,
  clampWindow,
  fitWindow,
  measure,
  panWindow,
  revealWindow,
  nearestEdge,
  zoomWindow,
} from './view_math';

const DURATION = 1e9;

test('a window stays inside the trace and keeps its length', () => {
  assert.deepEqual(clampWindow({t0: -50, t1: 50}, DURATION), {t0: 0, t1: 100});
  assert.deepEqual(clampWindow({t0: DURATION - 10, t1: DURATION + 90}, DURATION), {
    t0: DURATION - 100,
    t1: DURATION,
  });
  assert.deepEqual(clampWindow({t0: -1e12, t1: 1e12}, DURATION), {t0: 0, t1: DURATION});
  assert.deepEqual(clampWindow({t0: 5, t1: 5}, DURATION), {t0: 5, t1: 5 + WINDOW_MIN_NS});
  assert.deepEqual(clampWindow({t0: NaN, t1: NaN}, DURATION), {t0: 0, t1: DURATION});
  assert.deepEqual(clampWindow({t0: 0, t1: 5}, 1), {t0: 0, t1: WINDOW_MIN_NS});
});

test('zooming keeps the time under the pointer', () => {
  const window = {t0: 4e8, t1: 5e8};
  for (const anchor of [0, 0.25, 0.5, 1]) {
    const at = window.t0 + anchor * 1e8;
    const next = zoomWindow(window, 0.5, anchor, DURATION);
    assert.ok(Math.abs(next.t1 - next.t0 - 5e7) < 1e-3);
    assert.ok(Math.abs(next.t0 + anchor * 5e7 - at) < 1e-3);
  }
});

test('zooming stops at both ends, wherever it is held', () => {
  let window = {t0: 0, t1: DURATION};
  for (let i = 0; i < 500; i++) window = zoomWindow(window, 0.8, 0.9, DURATION);
  assert.ok(Math.abs(window.t1 - window.t0 - WINDOW_MIN_NS) < 1e-6);
  for (let i = 0; i < 500; i++) window = zoomWindow(window, 1.3, 0.1, DURATION);
  assert.deepEqual(window, {t0: 0, t1: DURATION});
});

test('panning moves by a share and stops at the ends without changing the zoom', () => {
  assert.deepEqual(panWindow({t0: 0, t1: 100}, 0.5, DURATION), {t0: 50, t1: 150});
  assert.deepEqual(panWindow({t0: 10, t1: 110}, -0.5, DURATION), {t0: 0, t1: 100});
});

test('fit and center', () => {
  assert.deepEqual(fitWindow({t0: 1000, t1: 2000}, DURATION), {t0: 900, t1: 2100});
  assert.deepEqual(centerWindow({t0: 0, t1: 1000}, {t0: 5000, t1: 5200}, DURATION), {
    t0: 4600,
    t1: 5600,
  });
});

test('revealing moves no more than it must', () => {
  const window = {t0: 0, t1: 10_000};
  assert.equal(revealWindow(window, {t0: 100, t1: 300}, DURATION), window);
  // Off screen: the same zoom, in the middle.
  assert.deepEqual(revealWindow(window, {t0: 50_000, t1: 51_000}, DURATION), {
    t0: 45_500,
    t1: 55_500,
  });
  // Longer than the window: fitted.
  assert.deepEqual(revealWindow(window, {t0: 5_000, t1: 105_000}, DURATION), {
    t0: 0,
    t1: 120_000,
  });
  // Too thin to be seen: closer, with what is around it.
  const close = revealWindow({t0: 0, t1: 1e8}, {t0: 5e7, t1: 5e7 + 1000}, DURATION);
  assert.equal(close.t1 - close.t0, 40_000);
  const dot = revealWindow({t0: 0, t1: 1e8}, {t0: 5e7, t1: 5e7}, DURATION);
  assert.equal(dot.t1 - dot.t0, 2000);
});

/** Numbers that look random, the same every time. */
function draws(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

test('at both ends of a day-long trace a nanosecond is where it is, however it was zoomed to', () => {
  const day = 86_400_000_000_000;
  const width = 1600;
  const isLeast = (window: {t0: number; t1: number}): boolean =>
    window.t1 - window.t0 === WINDOW_MIN_NS;
  const draw = draws(7);
  for (let round = 0; round < 400; round++) {
    const slice = Math.floor(draw() * 1000);
    const start = round % 2 === 0 ? slice : day - 1 - slice;
    let window: {t0: number; t1: number} = {t0: 0, t1: day};
    let steps = 0;
    while (!isLeast(window)) {
      assert.ok(++steps < 1000);
      const anchor = (start - window.t0) / (window.t1 - window.t0);
      window = zoomWindow(window, 0.4 + 0.5 * draw(), anchor, day);
    }
    assert.ok(window.t0 >= 0 && window.t1 <= day);
    const perNs = width / (window.t1 - window.t0);
    const left = (start - window.t0) * perNs;
    const right = (start + 1 - window.t0) * perNs;
    assert.ok(Math.abs(right - left - perNs) < 1e-9); // a slice of 1 ns is 25 px
    assert.equal(perNs, width / WINDOW_MIN_NS);
    for (let pan = 0; pan < 20; pan++) window = panWindow(window, draw() - 0.5, day);
    assert.ok(isLeast(window));
    const next = [Math.ceil(window.t0), Math.ceil(window.t0) + 1].map(t => (t - window.t0) * perNs);
    assert.ok(Math.abs(next[1]! - next[0]! - perNs) < 1e-9);
  }
});

test('at the end of a day-long trace the time under the pointer stays, and the length', () => {
  const day = 86_400_000_000_000;
  const draw = draws(11);
  for (let round = 0; round < 400; round++) {
    const anchor = draw();
    const at = day - 1000 - Math.floor(draw() * 1000);
    let window: {t0: number; t1: number} = {t0: at - 512, t1: at + 512};
    const held = window.t0 + 1024 * anchor;
    // in and out under a pointer that rests
    for (let i = 0; i < 8; i++)
      window = zoomWindow(window, i % 2 === 0 ? 0.7 : 1 / 0.7, anchor, day);
    const now = window.t0 + (window.t1 - window.t0) * anchor;
    assert.ok(Math.abs(now - held) < 0.25, `${now - held} ns`);
    assert.equal(window.t1 - window.t0, 1024);
  }
});

test('an edge is taken when it is in reach, the nearer one of two', () => {
  assert.equal(nearestEdge(103, [100, 200], 5), 100);
  assert.equal(nearestEdge(106, [100, 200], 5), 106);
  assert.equal(nearestEdge(103, [100, 104], 5), 104);
  assert.equal(nearestEdge(103, [], 5), 103);
});

test('a measure goes from the earlier to the later, whichever was pressed first', () => {
  const a = {t0: 100, t1: 150};
  const b = {t0: 180, t1: 400};
  const told = {area: {t0: 100, t1: 400}, beginToBegin: 80, endToBegin: 30};
  assert.deepEqual(measure(a, b), told);
  assert.deepEqual(measure(b, a), told);
  assert.deepEqual(measure({t0: 0, t1: 500}, a), {
    area: {t0: 0, t1: 500},
    beginToBegin: 100,
    endToBegin: -400,
  });
});
