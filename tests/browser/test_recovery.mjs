// What goes wrong around the page, and that it says so and recovers: the link is cut, the server restarts, a trace is
// deleted meanwhile, the browser takes the graphics context back.
import assert from 'node:assert/strict';
import {connect, createServer} from 'node:net';
import {run, startServer, until} from './harness.mjs';
import {demoTrace, stage} from './stage.mjs';

const {data, page, newPage, main, server: first} = await stage({
  demo: ['1-two-workers', '2-five-workers'], args: ['--use-angle=swiftshader', '--enable-unsafe-swiftshader'],
});
let server = first;

/** Between browser and server: a wire that can be cut, whose other end may be another server later. */
const wire = {isCut: false, sockets: new Set()};
const relay = createServer((from) => {
  if (wire.isCut) {
    from.destroy();
    return;
  }
  const to = connect(Number(new URL(server.base).port), '127.0.0.1');
  for (const [one, other] of [[from, to], [to, from]]) {
    wire.sockets.add(one);
    one.on('error', () => undefined);
    one.on('close', () => {
      wire.sockets.delete(one);
      other.destroy();
    });
    one.pipe(other);
  }
});
await new Promise((resolve) => relay.listen(0, '127.0.0.1', resolve));
const base = `http://127.0.0.1:${relay.address().port}`;
const cut = () => {
  wire.isCut = true;
  for (const socket of wire.sockets) socket.destroy();
};
const mend = () => (wire.isCut = false);

const away = page.locator('.banner', {hasText: 'The server is not responding'});
const settled = () => page.locator('.tl[data-settled=yes]').waitFor();
const api = async (path, method = 'GET') => {
  const reply = await server.api(path, {method});
  return reply.status === 204 ? undefined : reply.json();
};
const idOf = async (name) => (await api('traces')).traces.find((trace) => trace.name.startsWith(name)).id;
const openTimeline = async (name, query = '') => {
  await page.goto(`${base}/t/${await idOf(name)}?view=timeline${query}`);
  await settled();
};
/** How many colors are on the rows: 1 when nothing is drawn. */
const colorsDrawn = async () => {
  const clip = await page.locator('.tl-base').boundingBox();
  const picture = (await page.screenshot({clip: {...clip, height: Math.min(clip.height, 500)}})).toString('base64');
  return page.evaluate(async (base64) => {
    const image = new Image();
    image.src = `data:image/png;base64,${base64}`;
    await image.decode();
    const context = Object.assign(document.createElement('canvas'), {width: image.width, height: image.height}).getContext('2d');
    context.drawImage(image, 0, 0);
    const {data: pixels} = context.getImageData(0, 0, image.width, image.height);
    const colors = new Set();
    for (let i = 0; i < pixels.length; i += 4) colors.add((pixels[i] << 16) | (pixels[i + 1] << 8) | pixels[i + 2]);
    return colors.size;
  }, picture);
};
/** The WebGL context of the rows goes, as when a driver resets; the browser gives it back when asked to. */
const loseContext = () => page.evaluate(() => {
  const gl = document.querySelector('.tl-base').getContext('webgl2');
  globalThis.taken = gl.getExtension('WEBGL_lose_context');
  globalThis.taken.loseContext();
});

const steps = [
  ['the link is cut: the page says so, keeps what it has, and goes on by itself', async () => {
    await page.goto(`${base}/#key=${server.key}`);
    await page.locator('.trace-row').first().waitFor();
    await openTimeline('1-two');
    cut();
    await away.waitFor();
    assert.ok((await colorsDrawn()) > 3, 'the rows stay');
    // somewhere else in the trace, at a level that is not here yet
    await page.locator('.tl').focus();
    for (let i = 0; i < 12; i++) await page.keyboard.press('w');
    await page.locator('.tl-status-error', {hasText: 'Retrying'}).waitFor();
    mend();
    await page.locator('.tl-status-error').waitFor({state: 'detached'});
    await away.waitFor({state: 'detached'});
    await settled();
    await until(async () => (await colorsDrawn()) > 1);
  }],
  ['the server restarts: the page is signed in still, and hears of what came meanwhile', async () => {
    await page.goto(base);
    await page.locator('.trace-row', {hasText: '1-two-workers'}).waitFor();
    await server.stop();
    await away.waitFor();
    assert.ok(await page.locator('.trace-row', {hasText: '1-two-workers'}).isVisible());
    run('import', '--data', data, demoTrace('3-channels-last'));
    server = await startServer(data);
    await page.locator('.trace-row', {hasText: '3-channels-last'}).waitFor();
    await away.waitFor({state: 'detached'});
    await page.locator('.trace-row', {hasText: '3-channels-last'}).locator('.row-link').click();
    await page.getByTestId('verdict').waitFor();
  }],
  ['a view that was asked for while the server was away comes when it is back', async () => {
    await page.goto(`${base}/t/${await idOf('1-two')}`);
    await page.getByTestId('verdict').waitFor();
    await page.waitForFunction(() => performance.getEntriesByType('resource').some((entry) => /\/lazy_pages-/.test(entry.name)));
    await server.stop();
    await away.waitFor();
    await page.getByRole('link', {name: 'Flame graph', exact: true}).click();
    await page.getByText('The flame graph cannot be shown').waitFor();
    server = await startServer(data);
    await page.getByText('The flame graph cannot be shown').waitFor({state: 'detached'});
    await page.locator('.flame canvas, .flame-wrap').first().waitFor();
  }],
  ['a trace deleted while the link was cut says so when it is back', async () => {
    await openTimeline('3-channels-last');
    const id = await idOf('3-channels-last');
    cut();
    await away.waitFor();
    await api(`traces/${id}`, 'DELETE');
    mend();
    await page.getByText('There is no such trace here').waitFor();
    await page.getByRole('link', {name: 'All traces'}).first().click();
    await page.locator('.trace-row', {hasText: '1-two-workers'}).waitFor();
    await page.locator('.trace-row', {hasText: '3-channels-last'}).waitFor({state: 'detached'});
  }],
  ['a lost graphics context says so, and its rows are drawn again when it is back', async () => {
    await openTimeline('1-two', '&renderer=webgl');
    assert.equal(await page.locator('.tl').getAttribute('data-renderer'), 'webgl');
    let before = 0;
    await until(async () => (before = await colorsDrawn()) > 3);
    // a picture takes a while: the browser's answer is made sure to come before the page stops waiting for it
    await page.evaluate(() => {
      const canvas = document.querySelector('.tl-base');
      const gl = canvas.getContext('webgl2');
      const taken = gl.getExtension('WEBGL_lose_context');
      globalThis.said = '';
      new MutationObserver(() => {
        globalThis.said ||= document.querySelector('.tl-status-error')?.textContent ?? '';
        if (globalThis.said && gl.isContextLost()) taken.restoreContext();
      }).observe(document.body, {subtree: true, childList: true, characterData: true});
      taken.loseContext();
    });
    await page.waitForFunction(() => globalThis.said !== '' && !document.querySelector('.tl-status-error'));
    assert.match(await page.evaluate(() => globalThis.said), /took back the drawing context/);
    await until(async () => (await colorsDrawn()) >= before);
    assert.equal(await page.locator('.tl').getAttribute('data-renderer'), 'webgl');
  }],
  ['one that does not come back is done without', async () => {
    await openTimeline('1-two', '&renderer=webgl');
    await loseContext();
    await page.locator('.tl[data-renderer=cpu]').waitFor();
    await page.locator('.tl-status-error').waitFor({state: 'detached'});
    await until(async () => (await colorsDrawn()) > 3);
    await page.keyboard.press('w'); // and it goes on moving
    await settled();
    await page.getByRole('link', {name: 'Overview', exact: true}).click(); // and leaves as any other
    await page.getByTestId('verdict').waitFor();
  }],
  ['a browser without WebGL, or whose WebGL builds no program, draws without', async () => {
    for (const lack of ['no context', 'no program']) {
      const other = await newPage();
      await other.addInitScript((what) => {
        const {getContext} = HTMLCanvasElement.prototype;
        if (what === 'no program') WebGL2RenderingContext.prototype.getProgramParameter = () => false;
        else
          HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
            return kind === 'webgl2' ? null : getContext.call(this, kind, ...rest);
          };
      }, lack);
      const wrong = [];
      other.on('pageerror', (error) => wrong.push(error.message));
      await other.goto(`${base}/#key=${server.key}`);
      await other.locator('.trace-row').first().waitFor();
      await other.goto(`${base}/t/${await idOf('1-two')}?view=timeline&renderer=webgl`);
      await other.locator('.tl[data-settled=yes][data-renderer=cpu]').waitFor();
      const colors = () => other.evaluate(() => {
        const canvas = document.querySelector('.tl-base');
        const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        return new Set(new Uint32Array(data.buffer)).size;
      });
      await until(async () => (await colors()) > 3);
      assert.deepEqual(wrong, [], lack);
      await other.context().close();
    }
  }],
  ['the renderer of the last time draws first, and gives way when a try says otherwise', async () => {
    await openTimeline('1-two');
    assert.equal(await page.locator('.tl').getAttribute('data-renderer'), 'cpu');
    await page.addInitScript(() => {
      // another screen's, say; in the new page, for the old one may still be about to note its own
      if (!sessionStorage.getItem('test.renderer')) localStorage.setItem('lacuna.renderer', 'webgl');
      sessionStorage.setItem('test.renderer', 'set');
      globalThis.renderers = [];
      new MutationObserver(() => {
        const name = document.querySelector('.tl')?.dataset.renderer;
        if (name && globalThis.renderers.at(-1) !== name) globalThis.renderers.push(name);
      }).observe(document, {subtree: true, childList: true, attributes: true, attributeFilter: ['data-renderer']});
    });
    await openTimeline('1-two', '&v=0,1000000');
    // software GL, as here, is slower than none
    await page.waitForFunction(() => localStorage.getItem('lacuna.renderer') === 'cpu');
    await page.waitForFunction(() => globalThis.renderers.join() === 'webgl,cpu');
    await until(async () => (await colorsDrawn()) > 3);
    await page.keyboard.press('s');
    await settled();
  }],
  ['a part that arrives between the first picture and what follows it is shown', async () => {
    let release;
    const released = new Promise((resolve) => (release = resolve));
    await page.route('**/timeline_panel-*.js', async (route) => {
      await released;
      await route.continue();
    });
    const asked = page.waitForRequest('**/timeline_panel-*.js'); // by the page, before anybody opens it
    await page.goto(`${base}/t/${await idOf('1-two')}`);
    await page.getByTestId('verdict').waitFor();
    await asked;
    await page.evaluate(() => {
      const {requestAnimationFrame: frame, setTimeout: later} = globalThis;
      const held = [];
      const hold = (then) => held.push(then);
      Object.assign(globalThis, {requestAnimationFrame: hold, setTimeout: hold});
      globalThis.goOn = () => {
        Object.assign(globalThis, {requestAnimationFrame: frame, setTimeout: later});
        for (const then of held) then(performance.now());
      };
    });
    await page.getByRole('link', {name: 'Timeline', exact: true}).click();
    await page.getByText('Loading the timeline').waitFor();
    const arrived = page.waitForEvent('requestfinished', (request) => request.url().includes('/timeline_panel-'));
    release();
    await arrived;
    // the page's own request came first, so that what waits for it has been told
    await page.evaluate(() => import([...performance.getEntriesByType('resource')].find(({name}) => name.includes('/timeline_panel-')).name));
    await page.evaluate(() => globalThis.goOn());
    await settled();
    await page.unroute('**/timeline_panel-*.js');
  }],
];

await main(steps, async () => {
  await server.stop();
  for (const socket of wire.sockets) socket.destroy();
  relay.close();
});
