import { expect, test } from 'vitest';
import { startReceiver } from '../../notify/fixture.ts';
import { joinByPasskey } from '../../people/desk.ts';
import { openConsole } from '../open-console.ts';
import { cookieOf, formOf, send, sendWithPasskey } from './ask-again.ts';

const PAGE = '/settings/notifications';
const SIX_MINUTES_MS = 360_000;

/** An owner with a passkey, and a function that loads the page. */
async function openChannels() {
  const desk = await openConsole();
  const ann = await joinByPasskey(desk, 'ann');
  const browser = { ask: desk.ask, cookie: cookieOf(ann.token) };
  const look = async (path = PAGE) => (await desk.ask(path, { cookie: browser.cookie })).text;
  const rows = () => desk.sql('select kind, name, shown from notify_channels where removed_at is null order by id');
  const add = (kind: string, filled: Record<string, string>) =>
    sendWithPasskey(browser, `${PAGE}/new/${kind}`, ann.key, filled);
  const audited = async () =>
    (await desk.sql(`select action from operator_actions where action like 'channel.%' order by seq`)).map(
      ({ action }) => action,
    );
  return { ...desk, ann, browser, look, rows, add, audited };
}

test('an owner adds a channel with a second proof, sends a test by it, and removes it', async () => {
  const { received, url } = await startReceiver();
  const { ann, browser, look, rows, add, audited, ask, pass } = await openChannels();
  expect(await look()).toContain('No channels yet');
  const target = `${url}/services/B0wl`;
  const asked = await send(browser, `${PAGE}/new/slack`, { url: target, isOwnNetwork: 'yes', quiet: '22:00-07:00' });
  for (const shown of ['Confirm this change', target, '22:00-07:00']) expect(asked.text).toContain(shown);
  expect(await rows()).toEqual([]);
  const added = await add('slack', { url: target, isOwnNetwork: 'yes', quiet: '22:00-07:00' });
  expect([added.status, added.location]).toEqual([303, `${PAGE}?added=1`]);
  expect(await rows()).toEqual([{ kind: 'slack', name: 'slack', shown: new URL(url).host }]);
  const list = await look();
  for (const shown of ['Slack', new URL(url).host, 'quiet 22:00-07:00 (UTC)', 'nothing sent yet'])
    expect(list).toContain(shown);
  expect(list).not.toContain('B0wl');
  const id = /chn_[0-9a-z]{26}/.exec(list)?.[0] ?? '';
  const form = formOf({ text: list }, `${PAGE}/${id}/test`);
  const tested = await ask(`${PAGE}/${id}/test`, { cookie: browser.cookie, form });
  expect([tested.status, tested.location]).toEqual([303, `${PAGE}?tested=${id}`]);
  expect(received.map(({ path }) => path)).toEqual(['/services/B0wl']);
  expect(await look(`${PAGE}?tested=${id}`)).toContain('The test was sent to');
  expect((await ask(`${PAGE}/${id}/test`, { cookie: browser.cookie, form })).status).toBe(409);
  expect(received).toHaveLength(1);

  pass(SIX_MINUTES_MS);
  expect((await send(browser, `${PAGE}/${id}/remove`)).text).toContain('Confirm this change');
  expect(await rows()).toHaveLength(1);
  const removed = await sendWithPasskey(browser, `${PAGE}/${id}/remove`, ann.key);
  expect([removed.status, removed.location]).toEqual([303, `${PAGE}?removed=1`]);
  expect(await rows()).toEqual([]);
  expect(await audited()).toEqual(['channel.added', 'channel.tested', 'channel.removed']);
  expect((await ask(`${PAGE}/${id}/remove`, { cookie: browser.cookie })).status).toBe(404);
});

test('a channel that fails says so, and a test says why', async () => {
  const { url } = await startReceiver((response) => response.writeHead(503).end());
  const { browser, look, add, ask } = await openChannels();
  await add('discord', { url, isOwnNetwork: 'yes' });
  const list = await look();
  const id = /chn_[0-9a-z]{26}/.exec(list)?.[0] ?? '';
  const form = formOf({ text: list }, `${PAGE}/${id}/test`);
  await ask(`${PAGE}/${id}/test`, { cookie: browser.cookie, form });
  const after = await look(`${PAGE}?tested=${id}`);
  for (const shown of ['The test could not be sent to', 'http_503', '<strong>failing</strong>'])
    expect(after).toContain(shown);
  expect(await look('/settings')).toContain('1 channel, 1 failing');
});

test('a secret that is made is shown once; mails go to several', async () => {
  const { url } = await startReceiver();
  const { look, rows, add } = await openChannels();
  const made = await add('webhook', { url, isOwnNetwork: 'yes', name: 'pager' });
  const [secret = ''] = /whsec_[A-Za-z0-9+/=]+/.exec(made.text) ?? [];
  expect(secret).not.toBe('');
  expect(await look()).not.toContain(secret);
  const to = 'anna@example.com\r\n\r\nbert@example.com\r\n';
  await add('email', { to, from: 'q@example.com', url: 'smtps://user:password@mail.example.com' });
  expect((await rows()).map(({ shown }) => shown)).toContain('anna@example.com and 1 more via mail.example.com:465');
  expect(await look()).not.toContain('password');
});

test.each([
  ['slack', { url: 'http://10.0.0.1/a' }, 'The server is in my own network'],
  ['slack', {}, 'is missing: a channel of kind slack requires it'],
  ['email', { url: 'smtps://h.example', from: 'q@example.com', to: 'nobody' }, 'is not an e-mail address'],
  ['ntfy', { url: 'https://ntfy.sh/' }, 'has no topic'],
  ['telegram', { accessToken: 'short', chat: '1' }, 'is not a valid token'],
  ['webhook', { url: 'https://ops.example', quiet: '22:00' }, 'two different times'],
] as const)('a form for %s with %o is shown again with what to mend', async (kind, filled, problem) => {
  const { browser, rows } = await openChannels();
  const { status, text } = await send(browser, `${PAGE}/new/${kind}`, filled);
  expect([status, text.includes(problem)], text.slice(0, 3000)).toEqual([400, true]);
  expect(await rows()).toEqual([]);
});

test('an operator looks and tests, a viewer looks, and neither adds or removes', async () => {
  const { url } = await startReceiver();
  const desk = await openChannels();
  await desk.add('slack', { url, isOwnNetwork: 'yes' });
  const id = /chn_[0-9a-z]{26}/.exec(await desk.look())?.[0] ?? '';
  for (const [login, role] of [
    ['olga', 'operator'],
    ['vera', 'viewer'],
  ] as const) {
    const cookie = cookieOf((await joinByPasskey(desk, login, role)).token);
    const { status, text } = await desk.ask(PAGE, { cookie });
    expect([status, text.includes('/test"'), text.includes('/remove"'), text.includes('/new/')]).toEqual([
      ...[200, role === 'operator', false, false],
    ]);
    for (const path of [`${PAGE}/new/slack`, `${PAGE}/${id}/remove`])
      expect((await desk.ask(path, { cookie })).status).toBe(403);
  }
});

test('a kind that nobody knows is not found', async () => {
  const { browser, ask } = await openChannels();
  expect((await ask(`${PAGE}/new/fax`, { cookie: browser.cookie })).status).toBe(404);
});
