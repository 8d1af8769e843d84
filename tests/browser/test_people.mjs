// The settings: an administrator adds a user, gives a role and makes a token; the user signs in, sees what is theirs, changes the
// password. A token works until it is revoked, and the audit has all of it.
import assert from 'node:assert/strict';
import {createHmac} from 'node:crypto';
import {createServer} from 'node:http';
import {join} from 'node:path';
import {eventually, until} from './harness.mjs';
import {stage} from './stage.mjs';

const {server, page, newPage, complaints, main} = await stage({flags: ['--webhook-allow', '127.0.0.0/8']});
const other = await newPage({viewport: {width: 390, height: 844}});
const pictures = process.env.LACUNA_PICTURES;
const picture = async (of, name) => pictures && (await of.screenshot({path: join(pictures, `${name}.png`), fullPage: true}));
const HOSTILE = '<img src=x onerror="document.title=1">';
let secret = '';

const fits = (of) => until(() => of.evaluate(() => document.documentElement.scrollWidth <= 390));
const asked = (path, token) => fetch(`${server.base}/api/v1/${path}`, {headers: {Authorization: `Bearer ${token}`}});

const steps = [
  ['an administrator adds a user', async () => {
    await page.goto(`${server.base}/#key=${server.key}`);
    await page.getByRole('link', {name: 'Settings'}).click();
    await page.waitForURL(/\/settings$/);
    await page.getByText('You hold this server’s key').waitFor();
    await picture(page, 'settings');
    await page.getByRole('link', {name: 'Users', exact: true}).click();
    const form = page.getByRole('form', {name: 'Add a user'});
    await form.getByLabel('Name').fill('ada');
    await form.getByLabel('Password').fill('a long password');
    await form.getByRole('button', {name: 'Add'}).click();
    await page.getByTestId('users').getByText('ada', {exact: true}).waitFor();
    await picture(page, 'users');
  }, page],
  ['a project has settings and members', async () => {
    const made = await server.api('projects', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify({name: 'vision'})});
    assert.equal(made.status, 201);
    await page.goto(`${server.base}/p/vision?tab=settings`);
    await page.getByLabel('What it is about').fill(HOSTILE);
    await page.getByRole('button', {name: 'Save'}).click();
    await page.getByText('Saved.').waitFor();
    const form = page.getByRole('form', {name: 'Add a member'});
    await form.getByLabel('User').fill('nobody-there');
    await form.getByRole('button', {name: 'Add'}).click();
    await form.getByRole('alert').waitFor();
    await form.getByLabel('User').fill('ada');
    await form.getByRole('button', {name: 'Add'}).click();
    await page.getByTestId('members').getByText('ada').waitFor();
    const kept = page.waitForResponse((response) => /\/members\/ada$/.test(response.url()) && response.ok());
    await page.getByLabel('Role of ada').selectOption('read');
    await kept;
    await page.reload();
    await eventually(async () => {
      assert.equal(await page.getByLabel('Role of ada').inputValue(), 'read');
      assert.equal(await page.getByLabel('What it is about').inputValue(), HOSTILE);
    });
    await picture(page, 'members');
  }, page],
  ['a project has a limit of what it may hold', async () => {
    const panel = page.getByTestId('quota');
    const form = panel.getByRole('form', {name: 'Storage'});
    await panel.getByText('0 B of uploads, without a limit').waitFor();
    await form.getByLabel('Limit').fill('a lot');
    await form.getByRole('button', {name: 'Set'}).click();
    await form.getByRole('alert').waitFor();
    await form.getByLabel('Limit').fill('200M');
    await form.getByRole('button', {name: 'Set'}).click();
    await panel.getByText(/0.B of 2\d\d.MB/).waitFor();
    await page.reload();
    await panel.getByRole('progressbar', {name: 'Storage in use'}).waitFor();
    await picture(page, 'quota');
    await form.getByRole('button', {name: 'No limit'}).click();
    await panel.getByText('without a limit of its own').waitFor();
    await form.getByRole('button', {name: 'As every project'}).click();
    await panel.getByText(/without a limit\.$/).waitFor();
  }, page],
  ['a webhook is added, tested and removed; its secret is shown once', async () => {
    const heard = [];
    const receiver = createServer((request, response) => {
      let body = '';
      request.on('data', (piece) => { body += piece; });
      request.on('end', () => {
        heard.push({body, signature: request.headers['lacuna-signature']});
        response.end();
      });
    });
    await new Promise((done) => receiver.listen(0, '127.0.0.1', done));
    const hooks = page.getByTestId('webhooks');
    const form = hooks.getByRole('form', {name: 'Add a webhook'});
    await page.goto(`${server.base}/p/vision?tab=settings`);
    await hooks.getByText('No webhooks').waitFor();
    await form.getByLabel('Address').fill('http://10.0.0.1/news');
    await form.getByRole('button', {name: 'Add'}).click();
    await form.getByRole('alert').waitFor();
    await form.getByLabel('Address').fill(`http://127.0.0.1:${receiver.address().port}/<b>`);
    await form.getByLabel('a comment').uncheck();
    await form.getByRole('button', {name: 'Add'}).click();
    const key = await hooks.getByLabel('The secret', {exact: true}).inputValue();
    const row = hooks.locator('tbody tr');
    await eventually(async () => assert.match(await row.innerText(), /127\.0\.0\.1[^]*a trace is ready, a trace cannot be read[^]*0 delivered/));
    await row.getByRole('button', {name: 'Send a test'}).click();
    await row.getByText('1 delivered').waitFor();
    await picture(page, 'webhooks');
    const [{body, signature}] = heard;
    const [, seconds, hex] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(signature);
    assert.equal(hex, createHmac('sha256', key).update(`${seconds}.${body}`).digest('hex'));
    assert.equal(JSON.parse(body).schema, 'lacuna.event/1');
    await page.reload();
    await row.getByText('1 delivered').waitFor();
    assert.equal(await hooks.getByLabel('The secret', {exact: true}).count(), 0);
    assert.ok(!(await page.content()).includes(key));
    await page.setViewportSize({width: 390, height: 844});
    await fits(page);
    await picture(page, 'webhooks-narrow');
    await page.setViewportSize({width: 1440, height: 900});
    await row.getByRole('button', {name: 'Remove'}).click();
    await row.getByRole('button', {name: 'Remove permanently'}).click();
    await hooks.getByText('No webhooks').waitFor();
    await page.goto(`${server.base}/p/-?tab=settings`);
    await form.getByLabel('Address').waitFor();
    assert.equal(await page.getByRole('form', {name: 'Add a member'}).count(), 0);
    receiver.close();
  }, page],
  ['a token is shown once, works, and ends when it is revoked', async () => {
    await page.goto(`${server.base}/settings/tokens`);
    const form = page.getByRole('form', {name: 'New token'});
    await form.getByLabel('Name').fill(HOSTILE);
    await form.getByLabel('Scope').selectOption('read');
    await form.getByLabel('Project').selectOption('vision');
    await form.getByRole('button', {name: 'Make a token'}).click();
    secret = await page.getByLabel('The token', {exact: true}).inputValue();
    assert.match(secret, /^[a-z2-7]{52}$/);
    const row = page.getByTestId('tokens').locator('tbody tr');
    await eventually(async () => assert.match(await row.innerText(), /<img src=x[^]*read[^]*vision[^]*local[^]*never/));
    await picture(page, 'tokens');
    assert.equal((await asked('traces', secret)).status, 200);
    await page.reload();
    await row.waitFor();
    assert.equal(await page.getByLabel('The token', {exact: true}).count(), 0);
    assert.ok(!(await page.content()).includes(secret));
    await row.getByRole('button', {name: 'Revoke'}).click();
    await row.getByRole('button', {name: 'Revoke for good'}).click();
    await page.getByText('No tokens').waitFor();
    assert.equal((await asked('traces', secret)).status, 401);
  }, page],
  ['the user signs in and sees what is theirs', async () => {
    await other.goto(`${server.base}/settings/users`);
    await other.getByLabel('name', {exact: true}).fill('ada');
    await other.getByLabel('password', {exact: true}).fill('a long password');
    await other.getByRole('button', {name: 'Sign in'}).click();
    const tabs = other.getByRole('navigation', {name: 'Settings'});
    await eventually(async () => assert.deepEqual(await tabs.getByRole('link').allInnerTexts(), ['You', 'Tokens']));
    await other.goto(`${server.base}/settings`);
    await other.getByText('You are signed in as ada').waitFor();
    await eventually(async () => assert.match(await other.locator('table').innerText(), /vision\s+read/));
    await other.getByLabel('Password now').fill('a long password');
    await other.getByLabel('New password').fill('another password');
    await other.getByRole('button', {name: 'Change'}).click();
    await other.getByText('The password was changed.').waitFor();
    await fits(other);
    await picture(other, 'settings-narrow');
    await other.goto(`${server.base}/settings/tokens`);
    await other.getByRole('form', {name: 'New token'}).waitFor();
    await fits(other);
    await picture(other, 'tokens-narrow');
    await other.goto(`${server.base}/p/vision?tab=settings`);
    await other.getByRole('button', {name: 'Save'}).click();
    await other.getByText('You may not administer').waitFor();
    await fits(other);
  }, other],
  ['signing out ends the session', async () => {
    await other.goto(`${server.base}/settings`);
    await other.getByRole('button', {name: 'Sign out'}).click();
    await other.getByRole('heading', {name: 'Or sign in'}).waitFor();
  }, other],
  ['the audit has it all, and no secret', async () => {
    await page.emulateMedia({colorScheme: 'dark'});
    await page.goto(`${server.base}/settings/audit`);
    let text;
    await eventually(async () => {
      text = await page.getByTestId('audit').innerText();
      for (const words of [/local\s+add user\s+ada/, /settings\s+vision/, /set member\s+vision: ada read/, /make token/, /end token/, /ada\s+sign in/, /ada\s+change password/])
        assert.match(text, words);
    });
    assert.ok(!text.includes(secret) && !text.includes('password)'));
    await picture(page, 'audit-dark');
  }, page],
  ['nothing complained', async () => assert.deepEqual(complaints.filter((line) => !/40[04]/.test(line)), []), page],
];

await main(steps);
