import assert from 'node:assert/strict';
import test from 'node:test';
import {nextInLane, previousInLane, type LaneSlice, type WindowFetch} from './neighbors';

const DURATION = 10_000_000;

function trace(): LaneSlice[] {
  const slices: Omit<LaneSlice, 'id'>[] = [];
  for (let i = 0; i < 50; i++) {
    const start_ns = i * i * 3000; // ever further apart
    slices.push({lane: 0, start_ns, dur_ns: 1000});
    for (let k = 0; k < 20; k++) slices.push({lane: 1, start_ns: start_ns + k * 40, dur_ns: 20});
  }
  slices.sort((a, b) => a.start_ns - b.start_ns || b.dur_ns - a.dur_ns);
  return slices.map((s, id) => ({...s, id}));
}

const ALL = trace();

function fetcher(limit: number): {fetch: WindowFetch; asked: () => number} {
  let asked = 0;
  return {
    asked: () => asked,
    fetch: (t0, t1) => {
      asked++;
      const hits = ALL.filter(s => s.start_ns < t1 && s.start_ns + s.dur_ns > t0);
      return Promise.resolve({slices: hits.slice(0, limit), isCut: hits.length > limit});
    },
  };
}

test('forwards and back through a lane meets every slice of it once, whatever the limit', async () => {
  for (const lane of [0, 1]) {
    const own = ALL.filter(s => s.lane === lane);
    for (const limit of [12, 1000]) {
      for (let i = 0; i < own.length; i += lane === 0 ? 1 : 37) {
        const slice = own[i];
        assert.ok(slice);
        const {fetch, asked} = fetcher(limit);
        assert.equal((await nextInLane(slice, DURATION, fetch))?.id, own[i + 1]?.id, `next ${i}`);
        assert.equal((await previousInLane(slice, fetch))?.id, own[i - 1]?.id, `previous ${i}`);
        assert.ok(asked() <= 60, `${asked()} questions`);
      }
    }
  }
});

test('the ends of a lane are ends', async () => {
  const {fetch} = fetcher(1000);
  const own = ALL.filter(s => s.lane === 0);
  assert.equal(await previousInLane(own[0] as LaneSlice, fetch), undefined);
  assert.equal(await nextInLane(own[own.length - 1] as LaneSlice, DURATION, fetch), undefined);
});

test('a crowd that hides the neighbor is an error, not an end', async () => {
  const crowd: WindowFetch = (t0, t1) =>
    Promise.resolve({slices: [{id: 1, lane: 9, start_ns: t0, dur_ns: t1 - t0}], isCut: true});
  const slice = {id: 500, lane: 0, start_ns: 5000, dur_ns: 10};
  await assert.rejects(nextInLane({...slice, id: 0}, DURATION, crowd));
  await assert.rejects(previousInLane(slice, crowd));
});
