// What Perfetto's engine (WebAssembly) takes for a trace file: to load it, to answer what a page asks, and its memory.
//
//   node tests/bench/perfetto.mjs FOLDER FILE       prints one line of JSON; FOLDER as in ../support/perfetto_engine.mjs
import {readFileSync} from 'node:fs';
import {asJson, ask, load, startEngine} from '../support/perfetto_engine.mjs';

const PANS = 15;
const PIXELS = 1200;
const [folder, path] = process.argv.slice(2);
const print = console.log;
const fail = (problem) => {
  print(asJson({failed: String(problem).split('\n')[0].slice(0, 200)}));
  process.exit(0);
};
process.on('uncaughtException', fail);
process.on('unhandledRejection', fail);

const engine = await startEngine(folder);
const before = process.cpuUsage();
const began = performance.now();
await load(engine, path);
const [[t0, t1, count]] = await ask(engine, 'SELECT min(ts), max(ts + dur), count(*) FROM slice');
const loadMs = performance.now() - began;
const used = process.cpuUsage(before);
const start = Number(t0);
const span = Number(t1) - start;

const timed = async (query) => {
  const from = performance.now();
  const rows = await ask(engine, query);
  return {ms: performance.now() - from, rows};
};
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

/** A hundredth of the time on all rows, a bar a pixel: the longest of what begins in it. */
async function pan(at) {
  const from = Math.round(start + at * span);
  const to = Math.round(from + span / 100);
  const pixel = Math.max(1, Math.round((to - from) / PIXELS));
  return timed(`SELECT track_id, depth, (ts - ${from}) / ${pixel} AS x, count(*), max(dur), id FROM slice
                WHERE ts >= ${from} AND ts < ${to} GROUP BY 1, 2, 3`);
}
const pans = [];
for (let i = 0; i < PANS; i++) pans.push((await pan((i * 0.37) % 0.99)).ms);
const top = await timed("SELECT name, count(*), sum(dur) FROM slice WHERE category = 'kernel' GROUP BY name ORDER BY 3 DESC, 1 LIMIT 20");
const a = Math.round(start + span / 4);
const b = Math.round(start + (span * 3) / 4);
const area = await timed(`SELECT name, count(*), sum(min(ts + dur, ${b}) - max(ts, ${a})) FROM slice WHERE ts < ${b} AND ts + dur > ${a} GROUP BY name ORDER BY 3 DESC`);
const peakKb = Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync('/proc/self/status', 'utf8'))[1]);
print(asJson({slices: count, load_s: loadMs / 1e3, load_cpu_s: (used.user + used.system) / 1e6, pan_ms: median(pans), top_ms: top.ms, area_ms: area.ms, peak_mb: peakKb / 1024,
  top: top.rows.slice(0, 3), start, area: [a, b, area.rows.reduce((sum, row) => sum + Number(row[1]), 0)]}));
process.exit(0);
