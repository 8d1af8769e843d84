// Flame graphs: graph and table, callers and callees, inverted, folded, searched, two traces' difference.
import assert from 'node:assert/strict';
import {readFileSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {eventually, until} from './harness.mjs';
import {stage} from './stage.mjs';

/** Steps of 1 ms in which main > train calls work and, twice, small; and 400 leaves of 1 us. */
function hostTrace(workUs) {
  const event = (ts, dur, name, cat = 'cpu_op') => ({ph: 'X', cat, name, pid: 1, tid: 1, ts, dur});
  const traceEvents = [event(0, 4000, 'main'), event(0, 4000, 'outer'), event(0, 4000, 'train')];
  for (let i = 0; i < 4; i++) {
    const at = i * 1000;
    traceEvents.push(event(at + 5, 950, `ProfilerStep#${i}`, 'user_annotation'), event(at + 10, workUs, 'work'), event(at + 20, 50, 'small'));
    traceEvents.push(event(at + 700, 100, 'other'), event(at + 710, 60, 'small'));
  }
  for (let i = 0; i < 400; i++) traceEvents.push(event(3810 + i * 0.3, 0.1, `leaf ${i}`));
  return JSON.stringify({traceEvents});
}

/** Three steps with a module around what is launched, on two streams; `longer` times as long, and with
 *  a row more before the streams where it is not 1. */
function modelTrace(longer = 1) {
  const traceEvents = [];
  const event = (cat, ts, dur, name, args) => traceEvents.push({ph: 'X', cat, name, pid: cat === 'kernel' ? 0 : 1, tid: args?.stream ?? 1, ts, dur, args});
  let correlation = 0;
  for (let i = 0; i < 3; i++) {
    const at = i * 10000;
    event('user_annotation', at, 9990, `ProfilerStep#${i}`);
    event('python_function', at + 100, 6000, 'nn.Module: Net_0');
    traceEvents.push({ph: 'i', cat: 'cpu_instant_event', name: '[memory]', pid: 1, tid: 1, ts: at + 150, s: 't', args: {Bytes: 2_000_000, 'Device Type': 1, 'Device Id': 0, 'Total Allocated': 4_000_000}});
    if (longer !== 1) traceEvents.push({ph: 'X', cat: 'cpu_op', name: 'other', pid: 1, tid: 0, ts: at + 50, dur: 10});
    for (const [stream, dur, name] of [[7, 1000 * (i + 1) * longer, 'gemm'], [8, 500 * longer, 'copy_in']]) {
      correlation += 1;
      event('cuda_runtime', at + 200 + stream, 10, 'cudaLaunchKernel', {correlation});
      event('kernel', at + 400, dur, name, {correlation, device: 0, stream});
    }
  }
  return JSON.stringify({schemaVersion: 1, deviceProperties: [{id: 0, name: 'GPU'}], traceEvents});
}
const log = `timestamp,gpu,index,memory.used,power.draw\n${[0, 1, 2].map((s) => `2025-09-08T17:26:5${s}+08:00,0, 0, 4, 74.01`).join('\n')}\n`;
const drawn = {'before.json': hostTrace(600), 'after.json': hostTrace(300), 'model.json': modelTrace(), 'longer.json': modelTrace(3), 'log.csv': log};
const {server, page, complaints, answered, main} = await stage({demo: ['1-two-workers'], files: (scratch) => Object.entries(drawn).map(([name, text]) => {
  const path = join(scratch, name);
  writeFileSync(path, text);
  return path;
})});
const {traces} = await (await server.api('traces')).json();
const idOf = (name) => traces.find((trace) => trace.name.startsWith(name)).id;
const open = (rest = '') => page.goto(`${server.base}/t/${idOf('after')}?view=flame&m=cpu${rest}`);
const rows = page.locator('.flame-table tbody tr');
const row = (name) => rows.filter({has: page.getByRole('button', {name, exact: true})});

const steps = [
  ['memory stands under what allocated it, in MB; where nothing was copied it says so', async () => {
    await page.goto(`${server.base}/#key=${server.key}`);
    await page.locator('.trace-row').first().waitFor(); // the key is taken
    await page.goto(`${server.base}/t/${idOf('model')}?view=flame&m=memory&by=module&steps=all`);
    await row('Net_0').waitFor();
    await eventually(async () => assert.match(await row('Net_0').innerText(), /2\sMB\s+2\sMB\s+100\s%\s+3/));
    await page.getByText('Copies', {exact: true}).click();
    await page.getByText('No copies here').waitFor();
    // what counts bytes or samples is not called time
    await page.getByTitle(/^Only these steps, as in 2,5-9: /).waitFor();
    await page.route(/\/flame\?/, async (route) => {
      const reply = await route.fetch();
      await route.fulfill({response: reply, json: {...(await reply.json()), metric: 'profile'}});
    });
    await page.waitForURL(/m=copies/); // the address follows
    await page.reload();
    await page.getByText('No stacks here').waitFor();
    await page.unroute(/\/flame\?/);
  }],
  ['graph and table stand side by side, and the table sorts', async () => {
    await page.goto(`${server.base}/#key=${server.key}`);
    await page.locator('.trace-row .row-link').first().waitFor();
    await open();
    await page.getByTestId('flame').waitFor();
    await row('work').waitFor();
    const total = page.getByRole('button', {name: /^total/});
    await total.click();
    await eventually(async () => assert.equal(await page.locator('th[aria-sort="descending"]').innerText(), (await total.innerText()).trim()));
    const first = (await rows.first().innerText()).split('\n')[0].trim();
    await total.click();
    await until(async () => (await rows.first().innerText()).split('\n')[0].trim() !== first);
  }],
  ['a name has its callers and callees, from all places together', async () => {
    await row('small').getByRole('button', {name: 'Callers and callees of small'}).click();
    const sandwich = page.getByTestId('sandwich');
    // twice in each of four steps: 50 and 60 us
    await eventually(async () => assert.match(await sandwich.innerText(), /small\s+110\sµs per step/));
    await page.getByRole('application', {name: /^Callers of small/}).press('ArrowDown');
    await until(() => /of=small/.test(page.url()));
    await page.reload();
    await page.getByRole('button', {name: 'back to the graph'}).click();
    await page.getByTestId('sandwich').waitFor({state: 'detached'});
  }],
  ['a search tells the share of all matches', async () => {
    await page.keyboard.press('/');
    await page.keyboard.type('small');
    const match = page.getByTestId('flame-match');
    await eventually(async () => assert.match(await match.innerText(), /2 frames: 110\sµs per step, \d+\s%/));
    await page.getByLabel('Find frames by name').fill('');
  }],
  ['an inverted graph begins with what ran, a folded one leaves out who only passes on', async () => {
    const flame = page.getByTestId('flame');
    const spoken = () => page.locator('.flame .off-screen').innerText();
    await page.getByRole('button', {name: 'Invert'}).click();
    await until(() => /shape=inverted/.test(page.url()));
    await answered(); // another graph: what was chosen in the one before is not in it
    await flame.press('ArrowDown');
    await flame.press('ArrowDown');
    await until(async () => /^train: /.test(await spoken()) || /^work: /.test(await spoken()));
    await page.getByRole('button', {name: 'Invert'}).click();
    await page.getByRole('button', {name: 'Fold'}).click();
    await until(async () => (await rows.filter({hasText: 'train (+1)'}).count()) === 1);
    await until(() => /fold=1/.test(page.url()));
    await page.getByRole('button', {name: 'Fold'}).click();
  }],
  ['what the server summed opens', async () => {
    assert.equal(await row('leaf 7').count(), 0);
    await rows.filter({hasText: /^small frames/}).first().locator('.plain-link').click();
    await until(() => /detail=full/.test(page.url()));
    await row('leaf 7').waitFor();
  }],
  ['two traces over each other show what each frame gained, by the step', async () => {
    await open();
    const offered = page.getByLabel('Difference with another trace');
    await offered.selectOption(idOf('before'));
    assert.doesNotMatch(await offered.innerText(), /log/, 'counters have no flame graph');
    const work = row('work');
    await until(async () => /300\sµs/.test(await work.innerText()) && /600\sµs/.test(await work.innerText()));
    const legend = page.getByTestId('flame-legend');
    await eventually(async () => assert.match((await legend.innerText()).replace(/\s+/g, ' '), /^A before B after \(this trace\) Swap A and B more in B less in B$/));
    const tones = await legend.locator('i').evaluateAll((list) => list.map((each) => getComputedStyle(each).backgroundColor));
    assert.equal(new Set(tones).size, 2, 'a color each');
    await eventually(async () => {
      assert.match((await work.innerText()).replaceAll('\u2212', '-'), /-300\sµs/);
      assert.equal((await rows.first().innerText()).split(/\s/)[0], 'work', 'the largest difference is first, but for what holds it');
    });
    const isBlue = async () => {
      const color = await work.locator('td').last().evaluate((cell) => getComputedStyle(cell).color);
      const [red, , blue] = color.match(/[\d.]+/g).map(Number);
      return blue > red;
    };
    assert.ok(await isBlue(), 'faster, as in the graph');
    await legend.getByRole('link', {name: 'Swap A and B'}).click();
    await eventually(async () => assert.match((await legend.innerText()).replace(/\s+/g, ' '), /^A after B before \(this trace\)/));
    await until(async () => /\+300\sµs/.test(await work.innerText()));
    assert.ok(!(await isBlue()), 'slower');
  }],
  ['a difference is of the same steps and rows of both', async () => {
    await page.goto(`${server.base}/t/${idOf('model')}?view=flame&m=gpu&by=kernel`);
    await page.getByLabel('Difference with another trace').selectOption(idOf('longer'));
    const shows = (name, a, b) => until(async () => {
      const text = (await row(name).count()) === 1 ? await row(name).innerText() : '';
      return new RegExp(`\\b${a}\\sms[^]*\\b${b}\\sms`).test(text) || new RegExp(`\\b${b}\\sms[^]*\\b${a}\\sms`).test(text);
    });
    await shows('gemm', 6, 2);
    await page.getByLabel('Steps').fill('0');
    await page.keyboard.press('Enter');
    await shows('gemm', 3, 1);
    await page.getByLabel('Row', {exact: true}).selectOption({label: 'stream 7'});
    await until(async () => (await row('copy_in').count()) === 0);
    await shows('gemm', 3, 1);
  }],
  ['of chosen steps and of one stream, by module and in the order of time', async () => {
    await page.goto(`${server.base}/t/${idOf('model')}?view=flame&m=gpu&by=module`);
    await row('Net_0').waitFor();
    await eventually(async () => assert.match(await row('gemm').innerText(), /2\sms/, 'of 1, 2 and 3 ms a step'));
    await page.getByLabel('Steps').fill('0, 1');
    await page.keyboard.press('Enter');
    await until(async () => /1.5\sms/.test(await row('gemm').innerText()));
    await until(() => /steps=0%2C1|steps=0,1/.test(page.url()));
    await page.getByLabel('Row', {exact: true}).selectOption({label: 'stream 8'});
    await until(async () => (await row('gemm').count()) === 0 && (await row('copy_in').count()) === 1);
    await until(() => /tracks=\d/.test(page.url()));
    await page.reload();
    await row('copy_in').waitFor();
    await eventually(async () => assert.equal(await row('gemm').count(), 0));
    const folded = page.waitForEvent('download');
    await page.getByRole('link', {name: 'Download'}).click();
    assert.equal(readFileSync(await (await folded).path(), 'utf8'), 'nn.Module: Net_0;copy_in 1000000\n');
    await page.goto(`${server.base}/t/${idOf('model')}?view=flame&m=gpu&by=kernel`);
    await row('gemm').waitFor();
    await page.keyboard.press('1');
    await until(() => /order=time/.test(page.url()));
    const flame = page.getByTestId('flame');
    const spoken = () => page.locator('.flame .off-screen').innerText();
    await until(async () => {
      await flame.press('ArrowDown');
      return /^gemm/.test(await spoken());
    });
    const seen = [];
    for (let i = 0; i < 6; i++) {
      seen.push((await spoken()).split(':')[0]);
      await flame.press('ArrowRight');
    }
    assert.deepEqual(seen, ['gemm', 'copy_in', 'gemm', 'copy_in', 'gemm', 'copy_in']);
    await page.keyboard.press('2');
    await until(() => !/order=time/.test(page.url()));
    await page.getByLabel('Steps').fill('77');
    await page.keyboard.press('Enter');
    await page.getByText('steps: the trace has 3, the first is 0').waitFor();
    assert.ok(complaints.splice(0).every((text) => /400/.test(text)), 'what was refused, and nothing else');
  }],
  ['a step takes here what the verdict says of it, and the whole trace is one press away', async () => {
    const id = idOf('1-two-workers');
    const {partition} = await (await server.api(`traces/${id}/analysis`)).json();
    const working = Object.entries(partition.parts_ns).reduce((sum, [part, ns]) => (/^(compute|exposed_)/.test(part) ? sum + ns : sum), 0);
    await page.goto(`${server.base}/t/${id}?view=flame&m=gpu`);
    const all = page.locator('.crumb').first();
    await until(async () => (await all.innerText()).replace(/\s/g, ' ') === `all ${Math.round(working / 1e6)} ms per step`);
    await page.getByRole('button', {name: 'whole trace', exact: true}).click();
    await until(() => /steps=all/.test(page.url()));
    await until(async () => parseInt((await all.innerText()).slice(4)) > Math.round(working / 1e6) + 5, 'with what runs after the last step');
    await page.getByText(/^whole trace, 28 steps/).waitFor();
    assert.equal(await page.getByLabel('Steps').inputValue(), '');
    await page.getByRole('button', {name: 'measured steps', exact: true}).click();
    await until(() => !/steps=/.test(page.url()));
  }],
  ['so it does in the tables, whose choice of steps is the same', async () => {
    const id = idOf('1-two-workers');
    const {partition} = await (await server.api(`traces/${id}/analysis`)).json();
    await page.goto(`${server.base}/t/${id}?view=kernels`);
    const perStep = page.locator('.grid-sum .col-per_step_ns');
    const ms = async () => parseInt(await perStep.innerText());
    await until(async () => (await ms()) === Math.round(partition.parts_ns.compute / 1e6));
    await page.getByRole('button', {name: 'whole trace', exact: true}).click();
    await until(async () => (await ms()) > Math.round(partition.parts_ns.compute / 1e6) + 5, 'with what runs after the last step');
    await page.getByText(/^whole trace, 28 steps/).waitFor();
    await page.getByRole('link', {name: 'Flame graph'}).click();
    await page.getByText(/^whole trace, 28 steps/).waitFor();
    await page.goto(`${server.base}/t/${id}?view=kernels&table=gaps`);
    await page.getByTestId('table-row').first().waitFor();
    assert.equal(await page.getByRole('button', {name: 'whole trace', exact: true}).count(), 0, 'a list is of all gaps');
  }],
  ['a narrow window has the table below the graph, both in sight', async () => {
    const size = page.viewportSize();
    await page.setViewportSize({width: 768, height: 1024});
    await page.goto(`${server.base}/t/${idOf('1-two-workers')}?view=flame&m=gpu`);
    await rows.first().waitFor();
    const [graph, table] = [await page.locator('.flame').boundingBox(), await page.locator('.flame-table-box').boundingBox()];
    assert.ok(graph.height >= 240 && graph.height < 700, `graph ${graph.height}`);
    assert.ok(table.y >= graph.y + graph.height && table.y < 900, `table at ${table.y}`);
    await page.setViewportSize(size);
  }],
  ['at 1280 px the tools are one row, and all columns of the table are in sight', async () => {
    const size = page.viewportSize();
    await page.setViewportSize({width: 1280, height: 800});
    await page.goto(`${server.base}/t/${idOf('1-two-workers')}?view=flame&m=gpu`);
    await rows.first().waitFor();
    assert.ok((await page.locator('.tools').boundingBox()).height < 60, 'one row');
    const [inside, shown] = await page.locator('.flame-table-box').evaluate((box) => [box.scrollWidth, box.clientWidth]);
    assert.ok(inside <= shown, `${inside} px in ${shown}`);
    await page.setViewportSize(size);
  }],
  ['the tools take one row of a wide window, and no tool is cut in a narrow one', async () => {
    const size = page.viewportSize();
    const tools = page.locator('.tools');
    await page.goto(`${server.base}/t/${idOf('model')}?view=flame&m=gpu&by=kernel`);
    await page.getByLabel('Row', {exact: true}).waitFor(); // the most that there can be: steps, and several rows
    assert.ok((await tools.boundingBox()).height < 60, 'one row');
    for (const width of [1024, 768, 390]) {
      await page.setViewportSize({width, height: 900});
      await eventually(async () => assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= width, `${width}`));
      // on a phone they are a line that scrolls
      const what = width < 620 ? ':is(button, select, input, a)' : '> *';
      for (const each of await page.locator(`.tools ${what}, .flame-shapes ${what}`).all()) {
        await eventually(async () => {
          if (width < 620) await each.evaluate((tool) => tool.scrollIntoView({inline: 'center', block: 'nearest'}));
          const box = await each.boundingBox();
          assert.ok(box === null || box.x + box.width <= width, `${width}: ${await each.innerText()}`);
        });
      }
    }
    await page.setViewportSize(size);
  }],
  ['what was not recorded cannot be chosen, and says how it would be', async () => {
    await open();
    const python = page.getByRole('button', {name: 'Python', exact: true});
    await until(() => python.isDisabled());
    assert.match(await python.getAttribute('title'), /with_stack=True/);
    assert.ok(await page.getByRole('button', {name: 'module', exact: true}).isDisabled());
    assert.ok(await page.getByRole('button', {name: 'operator', exact: true}).isEnabled());
  }],
  ['nothing complained', async () => {
    assert.deepEqual(complaints, []);
  }],
];

await main(steps);
