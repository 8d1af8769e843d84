// Takes the pictures of the README from the real page: node tests/browser/pictures.mjs
import {mkdirSync} from 'node:fs';
import {join} from 'node:path';
import {ROOT, removeFolder, run, scratchFolder, startBrowser, startServer} from './harness.mjs';

const scratch = scratchFolder();
const data = join(scratch, 'data');
const demo = join(scratch, 'demo');
const pictures = join(ROOT, 'web/pictures');
mkdirSync(data);
mkdirSync(pictures, {recursive: true});
run('demo', demo);
for (const name of ['1-two-workers', '2-five-workers', '3-channels-last', '4-seven-workers', '5-pinned-memory', '6-async-copies']) {
  run('import', '--data', data, join(demo, `${name}.json`));
}
const server = await startServer(data);
const {browser, page} = await startBrowser({viewport: {width: 1280, height: 800}, colorScheme: 'light'});
const take = async (name) => {
  await page.mouse.move(0, 0);
  await page.evaluate(() => document.activeElement?.blur()); // no ring of a key pressed before
  await page.waitForTimeout(700);
  await page.screenshot({path: join(pictures, `${name}.png`)});
};

await page.goto(`${server.base}/#key=${server.key}`);
await page.locator('.trace-row', {hasText: '1-two-workers'}).waitFor();
await take('list');
await page.locator('.trace-row', {hasText: '1-two-workers'}).locator('.row-link').click();
await page.locator('.finding').first().waitFor();
await take('overview');
await page.getByRole('link', {name: 'Timeline', exact: true}).click();
await page.locator('.tl[data-settled=yes]').waitFor();
for (let i = 0; i < 3; i++) await page.keyboard.press('g'); // the first two began before the recording
await page.locator('.tl-details .tl-title').waitFor();
await page.locator('.tl[data-settled=yes]').waitFor();
await take('timeline');
await page.locator('.tl-details').getByRole('link', {name: 'flame graph', exact: true}).click();
await page.getByText(/^all /).first().waitFor();
await take('flame');

await browser.close();
await server.stop();
removeFolder(scratch);
