// What experts look for because other viewers have it: rows of the table in README.md that have no
// better place.
import assert from 'node:assert/strict';
import {readFileSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {eventually, run, until} from './harness.mjs';
import {stage} from './stage.mjs';

const STEPS = 12;

/** Steps of 10 ms under five Python frames that are always open: forward with a range around it, backward
 *  on its own thread, a collective on a stream of its own, and what a log of the GPU says meanwhile. */
function trace() {
  const traceEvents = [];
  const event = (cat, tid, ts, dur, name, args) => traceEvents.push({ph: 'X', cat, name, pid: cat === 'kernel' ? 0 : 1, tid, ts, dur, args});
  const end = STEPS * 10000;
  for (let i = 0; i < 5; i++) event('python_function', 1, i, end - 2 * i, `outer_${i}`);
  let correlation = 0;
  const launch = (tid, ts, at, dur, name, stream) => {
    correlation += 1;
    event('cuda_runtime', tid, ts, 5, 'cudaLaunchKernel', {correlation});
    event('kernel', stream, at, dur, name, {correlation, device: 0, stream});
  };
  for (let i = 0; i < STEPS; i++) {
    const at = 10 + i * 10000;
    event('user_annotation', 1, at, 9900, `ProfilerStep#${i}`);
    event('user_annotation', 1, at + 100, 3000, 'forward pass');
    event('cpu_op', 1, at + 200, 1000, 'aten::linear', {'Sequence number': 100 + i, 'Fwd thread id': 0});
    launch(1, at + 300, at + 400, 2000, 'volta_sgemm_128x64_tn', 7);
    event('cpu_op', 2, at + 4000, 1000, 'AddmmBackward0', {'Sequence number': 100 + i, 'Fwd thread id': 1});
    launch(2, at + 4100, at + 4200, 2000 + (i % 3) * 500, 'volta_sgemm_128x64_nn', 7);
    launch(2, at + 4300, at + 4500, 1500, 'ncclDevKernel_AllReduce_Sum_f32_RING_LL', 21);
    traceEvents.push({ph: 'C', name: 'GPU 0: power (W)', pid: 1, tid: 0, ts: at, args: {value: 200 + 10 * i}});
    traceEvents.push({ph: 'C', name: 'GPU 0: SM clock (MHz)', pid: 1, tid: 0, ts: at, args: {value: 1500 - 10 * i}});
    traceEvents.push({ph: 'C', name: 'GPU 0: memory used (MB)', pid: 1, tid: 0, ts: at, args: {value: 4000 + 100 * i}});
  }
  return JSON.stringify({schemaVersion: 1, baseTimeNanoseconds: '1700000000000000000', deviceProperties: [{id: 0, name: 'Tesla V100'}], traceEvents});
}
function drawn(folder) {
  const path = join(folder, 'peers.json');
  writeFileSync(path, trace());
  return path;
}
const {scratch, server, page, complaints, answered, main} = await stage({demo: ['1-two-workers'], files: (folder) => [drawn(folder)]});
const get = async (path) => (await server.api(path)).json();
const {traces} = await get('traces');
const {id} = traces.find(({name}) => name === 'peers');
const tracks = (await get(`traces/${id}/tracks`)).tracks;
const slicesOf = async (kind) => (await Promise.all(tracks.filter((track) => track.kind === kind).map(async (track) => (await get(`traces/${id}/slices?track=${track.index}&t0=0&t1=200000000`)).slices))).flat();
const open = async (rest = '') => {
  await page.goto(`${server.base}/t/${id}?view=timeline${rest}`);
  await page.locator('.tl[data-settled=yes]').waitFor();
};
const selected = (want) => page.waitForFunction((text) => new RegExp(text).test(new URL(location.href).searchParams.get('sel') ?? ''), want);
const label = (name) => page.locator('.tl-label').filter({has: page.getByText(name, {exact: true})});
const fact = (name) => page.locator('.tl-fact', {has: page.getByText(name, {exact: true})});
const title = (text) => page.locator('.tl-details .tl-title', {hasText: text});

/** Of a part of the screen: how many pixels differ from the first. */
async function painted(clip) {
  const picture = (await page.screenshot({clip})).toString('base64');
  return page.evaluate(async (base64) => {
    const image = new Image();
    image.src = `data:image/png;base64,${base64}`;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height);
    const context = canvas.getContext('2d');
    context.drawImage(image, 0, 0);
    const {data: pixels} = context.getImageData(0, 0, image.width, image.height);
    let count = 0;
    for (let i = 0; i < pixels.length; i += 4) if ([0, 1, 2].some((c) => Math.abs(pixels[i + c] - pixels[c]) > 40)) count++;
    return count / (pixels.length / 4);
  }, picture);
}

const steps = [
  ['utilization stays a histogram when the streams are folded and the whole trace is in view', async () => {
    await page.goto(`${server.base}/#key=${server.key}`);
    await page.locator('.trace-row').first().waitFor();
    await open();
    await label('GPU busy').waitFor();
    const stage = await page.locator('.tl-stage').boundingBox();
    const busy = async () => {
      const row = await label('GPU busy').boundingBox();
      return painted({x: stage.x + 20, y: row.y + 2, width: stage.width - 40, height: row.height - 4});
    };
    let before;
    await eventually(async () => {
      before = await busy();
      assert.ok(before > 0.2 && before < 0.9, `the GPU works about half of the time: ${before}`);
    });
    await label('stream 7').getByRole('button', {expanded: true}).click();
    await label('stream 7').getByRole('button', {expanded: false}).waitFor();
    await answered();
    await page.locator('.tl[data-settled=yes]').waitFor();
    await eventually(async () => {
      const folded = await busy();
      assert.ok(Math.abs(folded - before) < 0.05, `${before}, then ${folded}`);
    });
  }],
  ['counters of another tool’s file are rows: power, clock, memory, and the launch queue', async () => {
    await open('&rows=all');
    for (const name of ['GPU 0: power (W)', 'GPU 0: SM clock (MHz)', 'GPU 0: memory used (MB)', 'launch queue']) {
      await label(name).first().waitFor();
    }
    await page.getByLabel('Filter rows by name').fill('SM clock');
    await label('GPU 0: power (W)').waitFor({state: 'detached'});
    await page.locator('.tl[data-settled=yes]').waitFor();
    const view = await page.locator('.tl-stage').boundingBox();
    const row = await label('GPU 0: SM clock (MHz)').boundingBox();
    await page.mouse.move(view.x + 5, row.y + row.height / 2);
    await page.locator('.tl-tooltip', {hasText: '1.5 k'}).waitFor();
    await page.getByLabel('Filter rows by name').fill('');
  }],
  ['ranges are projected onto the GPU, and lead to the host', async () => {
    const projected = (await slicesOf('gpu_range')).filter(({name}) => name === 'forward pass');
    assert.equal(projected.length, STEPS);
    const kernel = (await slicesOf('stream')).filter(({name}) => name === 'volta_sgemm_128x64_tn').sort((a, b) => a.start_ns - b.start_ns)[0];
    const first = projected.sort((a, b) => a.start_ns - b.start_ns)[0];
    assert.deepEqual([first.start_ns, first.dur_ns], [kernel.start_ns, kernel.dur_ns]);
    await open(`&sel=s:${first.id}`);
    await page.getByText('range on the host').first().waitFor();
    await page.keyboard.press('l');
    const host = (await slicesOf('thread')).filter(({name}) => name === 'forward pass').sort((a, b) => a.start_ns - b.start_ns)[0];
    await selected(`^s:${host.id}$`);
  }],
  ['forward leads to backward and back, by sequence number', async () => {
    const threads = await slicesOf('thread');
    const pair = ['aten::linear', 'AddmmBackward0'].map((name) => threads.filter((slice) => slice.name === name).sort((a, b) => a.start_ns - b.start_ns)[3]);
    await open(`&sel=s:${pair[0].id}`);
    await page.getByRole('button', {name: /sequence number 103/}).click();
    await page.getByRole('link', {name: 'backward: AddmmBackward0'}).click();
    await selected(`^s:${pair[1].id}$`);
    await title('AddmmBackward0').waitFor(); // its own details
    await page.getByRole('button', {name: /sequence number 103/}).click();
    await page.getByRole('link', {name: 'forward: aten::linear'}).click();
    await selected(`^s:${pair[0].id}$`);
  }],
  ['a slice has its time of day and its nanoseconds', async () => {
    const kernel = (await slicesOf('stream')).sort((a, b) => a.start_ns - b.start_ns)[0];
    await open(`&sel=s:${kernel.id}`);
    await fact('clock time').waitFor();
    // 1 700 000 000 s is 22:13:20 on 14 November 2023 in UTC: minutes and seconds are the same in whole-hour zones
    await eventually(async () => {
      assert.match(await fact('clock time').innerText(), /\d\d:13:20/);
      assert.ok((await page.locator('.tl-details').innerHTML()).replace(/[^\d]+/g, '').includes(String(kernel.start_ns).slice(0, 6)));
    });
  }],
  ['a window goes to other tools as Chrome JSON, which opens again', async () => {
    await open('&v=40000000,30000000');
    let answer;
    await page.route('**/report?format=contents', (route) => new Promise((resolve) => (answer = () => resolve(route.fallback()))));
    await page.getByRole('button', {name: 'Share'}).click();
    const button = page.getByRole('button', {name: /This window as Chrome JSON/});
    const {y} = await button.boundingBox();
    await until(() => answer);
    await answer();
    await page.getByText('Include in the report').waitFor();
    assert.equal((await button.boundingBox()).y, y, 'what arrives does not move what is about to be pressed');
    const download = page.waitForEvent('download');
    await button.click();
    const file = join(scratch, 'window.json');
    writeFileSync(file, readFileSync(await (await download).path()));
    const events = JSON.parse(readFileSync(file, 'utf8')).traceEvents.filter(({ph}) => ph === 'X');
    const inside = (await slicesOf('stream')).filter((slice) => slice.start_ns < 70e6 && slice.start_ns + slice.dur_ns > 40e6);
    assert.equal(events.filter(({cat}) => cat === 'kernel').length, inside.length);
    for (const {name, start_ns: start, dur_ns: dur} of inside) {
      assert.ok(events.some((each) => each.name === name && each.ts === start / 1000 && each.dur === dur / 1000), name);
    }
    const again = JSON.parse(run('analyze', '--json', file));
    assert.equal(again.kernels.count, inside.length);
    await page.keyboard.press('Escape');
  }],
  ['a window goes to Perfetto in a tab of its own, which says when it can take it', async () => {
    const perfetto = 'https://ui.perfetto.dev/';
    await page.context().route(`${perfetto}**`, (route) => route.fulfill({contentType: 'text/html', body: `<script>
      let asked = 0;
      addEventListener('message', ({data, source, origin}) => {
        if (data === 'PING' && ++asked > 2) source.postMessage('PONG', origin); // it loads for a while
        if (data.perfetto) document.title = JSON.stringify([data.perfetto.title, data.perfetto.buffer.byteLength]);
      });</script>`}));
    await open('&v=40000000,30000000');
    await page.getByRole('button', {name: 'Share'}).click();
    const opened = page.context().waitForEvent('page');
    await page.getByRole('button', {name: 'Open it in Perfetto'}).click();
    const tab = await opened;
    await eventually(async () => assert.match(await tab.title(), /^\["peers",\d{4,}\]$/));
    assert.equal(tab.url(), perfetto);
    assert.equal(await page.locator('.share-here > [role=status]').innerText(), '');
    await tab.close();
    await page.keyboard.press('Escape');
  }],
  ['G goes by size, Alt G to the next of its kind, each with letter and cause', async () => {
    await open();
    const gaps = (await get(`traces/${id}/gaps?sort=dur&limit=1000`)).gaps;
    await page.keyboard.press('g');
    await selected(`^g:0,${gaps[0].start_ns},`);
    await title(/GPU 0 waits/).waitFor();
    const cause = /for .*/.exec(await title(/GPU 0 waits/).innerText())[0];
    await page.keyboard.press('Alt+g');
    await page.waitForFunction((start) => !new URL(location.href).searchParams.get('sel').includes(`,${start},`), gaps[0].start_ns);
    await answered(); // the details are of this gap
    assert.equal(/for .*/.exec(await title(/GPU 0 waits/).innerText())[0], cause);
    const last = page.url();
    await page.keyboard.press('g');
    await page.waitForFunction((old) => location.href !== old, last);
    const lengths = [];
    for (let i = 0; i < 3; i++) {
      const [, t0, t1] = new URL(page.url()).searchParams.get('sel').slice(2).split(',').map(Number);
      lengths.push(t1 - t0);
      const was = page.url();
      await page.keyboard.press('g');
      await page.waitForFunction((old) => location.href !== old, was);
    }
    assert.deepEqual(lengths, [...lengths].sort((a, b) => b - a), 'from the longest');
  }],
  ['a finding opens its evidence in one press, and Back returns to it', async () => {
    await page.goto(`${server.base}/t/${traces.find(({name}) => name.startsWith('1-')).id}`);
    const link = page.getByTestId('evidence').first();
    await link.waitFor();
    await eventually(async () => assert.match(await link.evaluate((el) => el.closest('a')?.href ?? ''), /view=timeline/));
    await link.click();
    await page.locator('.tl-stage canvas').first().waitFor();
    await page.goBack();
    await link.waitFor();
  }],
  ['frames that are always open are folded, and open by a press that the address keeps', async () => {
    await open();
    const thread = page.locator('.tl-label').filter({has: page.getByText('main thread', {exact: true})});
    const fold = thread.getByRole('button', {name: '5 outer frames'});
    await fold.waitFor();
    await answered();
    const height = async () => (await thread.boundingBox()).height;
    const folded = await height();
    await fold.click();
    await thread.getByRole('button', {name: 'fold 5 outer frames'}).waitFor();
    await eventually(async () => assert.ok(await height() > folded, 'five lanes more'));
    await page.waitForFunction(() => /outer=/.test(new URL(location.href).searchParams.get('rows') ?? ''));
    await answered();
    await page.reload();
    await thread.getByRole('button', {name: 'fold 5 outer frames'}).click();
    await fold.waitFor();
    await until(async () => (await height()) === folded);
  }],
  ['a window is drawn on the map of the whole, and the wheel zooms where all rows fit', async () => {
    await open();
    const map = await page.locator('.tl-minimap').boundingBox();
    const windowOf = () => new URL(page.url()).searchParams.get('v')?.split(',').map(Number);
    await page.mouse.move(map.x + map.width * 0.25, map.y + map.height / 2);
    await page.mouse.down();
    await page.mouse.move(map.x + map.width * 0.5, map.y + map.height / 2, {steps: 5});
    await page.mouse.up();
    const {duration_ns: whole} = await get(`traces/${id}/tracks`);
    await until(() => Math.abs((windowOf()?.[1] ?? 0) / whole - 0.25) < 0.02); // the address follows
    const [t0, width] = windowOf();
    assert.ok(Math.abs(t0 / whole - 0.25) < 0.02, `${t0 / whole}`);
    await page.getByLabel('Filter rows by name').fill('busy');
    await label('stream 7').waitFor({state: 'detached'});
    await page.locator('.tl[data-settled=yes]').waitFor();
    const view = await page.locator('.tl-stage').boundingBox();
    await page.mouse.move(view.x + view.width / 2, view.y + 20);
    await page.mouse.wheel(0, -300);
    await until(() => windowOf()[1] < width * 0.9);
    await page.getByLabel('Filter rows by name').fill('');
  }],
  ['a drag on the time axis zooms, and so does one with Shift over the rows; nothing is selected by it', async () => {
    await open();
    const {duration_ns: whole} = await get(`traces/${id}/tracks`);
    const windowOf = () => new URL(page.url()).searchParams.get('v')?.split(',').map(Number);
    const drag = async ({x, y, width}) => {
      await page.mouse.move(x + width * 0.25, y);
      await page.mouse.down();
      await page.mouse.move(x + width * 0.75, y, {steps: 5});
      await page.mouse.up();
    };
    const axis = await page.locator('.tl-axis').boundingBox();
    await drag({...axis, y: axis.y + 10});
    await until(() => Math.abs((windowOf()?.[1] ?? 0) / whole - 0.5) < 0.01);
    assert.ok(Math.abs(windowOf()[0] / whole - 0.25) < 0.01, `${windowOf()}`);
    const stage = await page.locator('.tl-stage').boundingBox();
    await page.keyboard.down('Shift');
    await page.keyboard.down('Alt'); // to the pixel, not to an edge
    await drag({...stage, y: stage.y + 30});
    await page.keyboard.up('Alt');
    await page.keyboard.up('Shift');
    await until(() => Math.abs(windowOf()[1] / whole - 0.25) < 0.01);
    assert.equal(new URL(page.url()).searchParams.get('sel'), null);
  }],
  ['an arrow with nothing selected takes the first slice on screen; brackets lead along a launch', async () => {
    await open(`&v=20000000,50000000`);
    await page.locator('.tl').focus();
    await page.keyboard.press('ArrowRight');
    await selected('^s:');
    await title(/step|Profiler/).waitFor();
    const kernels = (await slicesOf('stream')).filter(({name}) => name === 'volta_sgemm_128x64_tn').sort((a, b) => a.start_ns - b.start_ns);
    await open(`&sel=s:${kernels[3].id}`);
    await page.locator('.tl-full-name', {hasText: 'sgemm'}).waitFor();
    await page.keyboard.press(']'); // a kernel launches nothing
    await page.locator('[role=status]', {hasText: 'nothing was launched by it'}).waitFor();
    await page.keyboard.press('[');
    await title('cudaLaunchKernel').waitFor();
    await page.keyboard.press(']');
    await selected(`^s:${kernels[3].id}$`);
  }],
  ['a right click opens what can be done with a slice', async () => {
    await open('&v=20000000,50000000');
    const stage = await page.locator('.tl-stage').boundingBox();
    const row = await label('stream 7').boundingBox();
    const kernels = (await slicesOf('stream')).filter(({name}) => name === 'volta_sgemm_128x64_tn').sort((a, b) => a.start_ns - b.start_ns);
    const {start_ns: start, dur_ns: length, id: kernel} = kernels[4];
    const x = stage.x + (stage.width * (start + length / 2 - 20_000_000)) / 50_000_000;
    await page.mouse.click(x, row.y + 12, {button: 'right'});
    await page.getByRole('menu').waitFor();
    await selected(`^s:${kernel}$`);
    await eventually(async () => assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'Zoom to it F'));
    await page.locator('.tl-full-name', {hasText: 'sgemm'}).waitFor();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await selected(`^a:${start},${start + length}$`);
    await page.getByRole('menu').waitFor({state: 'detached'});
    await page.mouse.click(x, row.y + 12, {button: 'right'});
    await page.getByRole('menu').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('menu').waitFor({state: 'detached'});
    await page.keyboard.press('Shift+F10');
    const menu = await page.getByRole('menu').boundingBox();
    assert.ok(Math.abs(menu.y - row.y - row.height) < 40, 'it opens below the row of the slice');
    await page.keyboard.press('Escape');
    await page.getByRole('menu').waitFor({state: 'detached'});
  }],
  ['keys for a slice whose details are still on their way wait for them', async () => {
    await open('&v=20000000,50000000');
    const stage = await page.locator('.tl-stage').boundingBox();
    const row = await label('stream 7').boundingBox();
    const kernels = (await slicesOf('stream')).filter(({name}) => name === 'volta_sgemm_128x64_tn').sort((a, b) => a.start_ns - b.start_ns);
    const click = ({start_ns: start, dur_ns: length}) => page.mouse.click(stage.x + (stage.width * (start + length / 2 - 20_000_000)) / 50_000_000, row.y + 12);
    const late = async (route) => {
      await new Promise((resolve) => setTimeout(resolve, 400));
      await route.continue().catch(() => undefined); // one that is still late when the step is over
    };
    await page.route(/\/slices\/\d+$/, late);
    const {start_ns: start, dur_ns: length} = kernels[4];
    await click(kernels[4]);
    await page.keyboard.press('m');
    await selected(`^a:${start},${start + length}$`);
    await click(kernels[3]);
    await page.keyboard.press('Shift+F10');
    const menu = await page.getByRole('menu').boundingBox();
    assert.ok(Math.abs(menu.y - row.y - row.height) < 40, 'it opens below the row of the slice');
    await selected(`^s:${kernels[3].id}$`);
    await page.keyboard.press('Escape');
    await page.getByRole('menu').waitFor({state: 'detached'});
    await page.unroute(/\/slices\/\d+$/, late);
  }],
  ['the list, and the bookmarks of a timeline, are asked for once', async () => {
    const asked = [];
    const nameOf = (of) => new URL(of.url()).pathname.split('/').at(-1);
    const note = (request) => asked.push(nameOf(request));
    const come = (response) => nameOf(response) === 'events' && asked.push('events come');
    page.on('request', note);
    page.on('response', come);
    await open();
    await answered();
    page.off('request', note);
    page.off('response', come);
    const times = (what, all) => all.filter((each) => each === what).length;
    // where events come late, as on a slow machine, the list is asked for before them as well
    assert.equal(times('traces', asked.slice(asked.indexOf('events come'))), 1, String(asked));
    assert.equal(times('bookmarks', asked), 1, String(asked));
  }],
  ['the title of a tab begins with the view, and the help has all letters', async () => {
    await open();
    await page.waitForFunction(() => document.title === 'Timeline · peers · Lacuna');
    await page.getByRole('link', {name: 'Tables', exact: true}).click();
    await page.waitForFunction(() => document.title === 'Tables · peers · Lacuna');
    await page.keyboard.press('?');
    await eventually(async () => {
      const letters = await page.locator('.causes-help dt').allInnerTexts();
      for (const letter of ['D', 'G', 'i', '~', '!']) assert.ok(letters.some((text) => text.trim().startsWith(letter)), letter);
    });
    await page.keyboard.press('Escape');
  }],
  ['nothing complained', async () => assert.deepEqual(complaints, [])],
];

await main(steps);
