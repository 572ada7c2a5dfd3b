import { expect, test } from 'vitest';
import { changeRole } from '../../src/faces/operator/subjects/people.ts';
import { openInvitation } from '../../src/faces/operator/subjects/sign-in.ts';
import { ANN, codeOf, joinByPassword, PASSWORD } from '../people/desk.ts';
import { openConsole, SANDBOX } from './open-console.ts';

test('a password and a code begin a session in a cookie that scripts, other sites and other hosts cannot have', async () => {
  const desk = await openConsole();
  const { code } = await joinByPassword(desk, 'ann');
  const right = { login: 'ann', password: PASSWORD, code: code(), next: '/invoices?status=PAID' };
  const planted = '__Host-quittance=planted';
  const signedIn = await desk.ask('/sign-in', { form: right, cookie: planted });
  expect([signedIn.status, signedIn.location]).toEqual([303, '/invoices?status=PAID']);
  expect(signedIn.set).toMatch(/^__Host-quittance=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Secure$/);
  expect((await desk.ask('/', { cookie: signedIn.cookie })).status).toBe(200);
  // A planted cookie never becomes a session, not even after someone signs in with it (session fixation).
  expect((await desk.ask('/', { cookie: planted })).location).toBe('/sign-in');
  expect((await desk.ask('/', { cookie: `${planted}; ${signedIn.cookie}` })).location).toBe('/sign-in');

  const out = await desk.ask('/sign-out', { form: {}, cookie: signedIn.cookie });
  expect([out.location, out.set]).toEqual(['/sign-in', expect.stringContaining('Max-Age=0')]);
  expect((await desk.ask('/', { cookie: signedIn.cookie })).location).toBe('/sign-in');
});

test('whatever was wrong is answered alike, and too many tries are told to wait', async () => {
  const desk = await openConsole();
  await joinByPassword(desk, 'ann');
  const wrong = (login: string, password: string) => ({ form: { login, password, code: '000000' } });
  const answers = [
    await desk.ask('/sign-in', wrong('nobody', PASSWORD)),
    await desk.ask('/sign-in', wrong('ann', 'not the password')),
    await desk.ask('/sign-in', wrong('ann', PASSWORD)),
    await desk.ask('/sign-in', { form: { passkey: '{"id": 1}' } }),
    await desk.ask('/sign-in', { form: { passkey: 'odd' } }),
    await desk.ask('/sign-in', { form: {} }),
  ];
  for (const { status, text, set } of answers) {
    expect([status, set]).toEqual([401, null]);
    expect(text).toContain('Sign-in failed');
    expect(text).not.toContain(PASSWORD);
  }
  for (let tries = 0; tries < 5; tries += 1) await desk.ask('/sign-in', wrong('ann', 'not the password'));
  const limited = await desk.ask('/sign-in', wrong('ann', 'not the password'));
  expect([limited.status, Number(limited.headers.get('retry-after')) > 0]).toEqual([429, true]);
});

test.each(['//evil.example', '/\\evil.example', 'https://evil.example', 'evil', '/\u0000x', '/a\nb', '/日'])(
  'a sign-in leads to no other place: next=%j',
  async (next) => {
    const desk = await openConsole();
    const { code } = await joinByPassword(desk, 'ann');
    const { text } = await desk.ask(`/sign-in?${new URLSearchParams({ next })}`);
    expect(text).not.toContain('evil');
    const answer = await desk.ask('/sign-in', { form: { login: 'ann', password: PASSWORD, code: code(), next } });
    expect([answer.status < 500, answer.location ?? '/']).toEqual([true, '/']);
  },
);

test('no other page signs anybody in or out, or takes an invitation up', async () => {
  const desk = await openConsole();
  const { code } = await joinByPassword(desk, 'ann');
  const form = { login: 'ann', password: PASSWORD, code: code() };
  const token = await desk.invite('bob');
  const { cookie } = await desk.ask('/sign-in', { form });
  for (const headers of [
    { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' },
    { 'sec-fetch-site': 'same-site', origin: 'https://pay.example' },
    { 'sec-fetch-site': '', origin: 'null' },
  ]) {
    for (const path of ['/sign-in', '/sign-out', `/invitation/${token}`]) {
      const { status, set } = await desk.ask(path, { form, cookie, headers });
      expect([path, status, set]).toEqual([path, 403, null]);
    }
  }
  expect((await desk.ask('/', { cookie })).status).toBe(200);
});

test('a link is looked at as often as anybody likes and taken up once; what is wrong with a form is told beside it', async () => {
  const desk = await openConsole();
  const token = await desk.invite('ann');
  const path = `/invitation/${token}`;
  for (const _ of [1, 2, 3]) expect((await desk.ask(path)).status).toBe(200);
  const short = await desk.ask(path, { form: { password: 'short', code: '000000' } });
  expect([short.status, short.set]).toEqual([400, null]);
  expect(short.text).toContain('role="alert"');
  const secret = (await openInvitation(desk.deps, token))?.totp.secret ?? '';
  const code = codeOf(secret, desk.deps.now());
  const joined = await desk.ask(path, { form: { password: PASSWORD, code } });
  expect(joined.status).toBe(200);
  expect(joined.text.match(/<li><code>/g)).toHaveLength(10);
  expect((await desk.ask('/', { cookie: joined.cookie })).status).toBe(200);
  const again = await desk.ask(path, { form: { password: PASSWORD, code } });
  expect([again.status, again.set]).toEqual([404, null]);
  expect((await desk.ask('/invitation/unknown')).status).toBe(404);
});

test('a role that is taken away ends what is open, also in the middle of a form', async () => {
  const desk = await openConsole();
  await joinByPassword(desk, 'ann');
  const { code } = await joinByPassword(desk, 'otto', 'operator');
  const { cookie } = await desk.ask('/sign-in', { form: { login: 'otto', password: PASSWORD, code: code() } });
  expect((await desk.ask('/invoices/new', { cookie })).status).not.toBe(303);
  await changeRole.run(desk.deps, ANN, { person: 'otto', role: 'viewer', projects: null });
  const sent = await desk.ask('/invoices/new', { form: { amount: '1', externalId: 'x' }, cookie });
  expect([sent.status, sent.set]).toEqual([401, null]);
});

/** Returns what a browser would submit with the first form that posts to `action`. */
function fieldsOf(text: string, action: string): Record<string, string> {
  const form = text
    .split('<form ')
    .find((each) => each.includes('method="post"') && each.includes(`action="${action}"`));
  const inputs = [...(form ?? '').matchAll(/<input(?=[^>]* name="([^"]*)")(?=[^>]* value="([^"]*)")/g)];
  const areas = [...(form ?? '').matchAll(/<textarea[^>]* name="([^"]*)"[^>]*>([^<]*)</g)];
  const read = (value = '') =>
    value.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"').replaceAll('&amp;', '&');
  return Object.fromEntries([...inputs, ...areas].map(([, name = '', value]) => [name, read(value)]));
}

/** Forms of every kind of route: one with its own page, one of the common kind, and one that requires a proof. */
const TYPED: [path: string, typed: Record<string, string>][] = [
  ['/settings/projects/new', { name: 'Ä "shop" & <co>', policy: 'exact', lifetime: '45m' }],
  ['/settings/people/new', { login: 'carl', name: 'Carl & Co', role: 'viewer' }],
];

test.each(TYPED)(
  'what was typed into %s survives a session that ends, wrong tries and the sign-in',
  async (path, typed) => {
    const desk = await openConsole();
    const { code } = await joinByPassword(desk, 'ann');
    const signIn = (more: Record<string, string>) => ({ login: 'ann', password: PASSWORD, code: code(), ...more });
    const first = await desk.ask('/sign-in', { form: signIn({}) });
    const { token = '' } = fieldsOf((await desk.ask(path, { cookie: first.cookie })).text, path);
    await desk.ask('/sign-out', { form: {}, cookie: first.cookie });
    desk.pass(60_000);

    const ended = await desk.ask(path, { form: { ...typed, token, code: '123456' }, cookie: first.cookie });
    expect([ended.status, ended.text.includes('Your session has ended')]).toEqual([401, true]);
    expect(ended.text).not.toContain('123456');
    const wrong = await desk.ask('/sign-in', {
      form: { ...fieldsOf(ended.text, '/sign-in'), ...signIn({ password: 'wrong' }) },
    });
    desk.pass(60_000);
    const again = await desk.ask('/sign-in', { form: { ...fieldsOf(wrong.text, '/sign-in'), ...signIn({}) } });
    expect([again.status, again.text.includes('You are signed in again')]).toEqual([200, true]);
    const back = await desk.ask(path, { form: fieldsOf(again.text, path), cookie: again.cookie });
    expect(back.text).toContain('you are signed in again, but the form was not sent');
    const { token: fresh, ...shown } = fieldsOf(back.text, path);
    for (const [name, value] of Object.entries(typed)) {
      if (name in shown) expect([name, shown[name]]).toEqual([name, value]);
      else expect(back.text).toContain(`<option value="${value}" selected>`);
    }
    const sent = await desk.ask(path, { form: { ...shown, ...typed, token: String(fresh) }, cookie: again.cookie });
    expect(sent.text).not.toContain('the form was not sent');
  },
);

test('a button whose session ended leads back to its page, and to no other site', async () => {
  const desk = await openConsole();
  const ask = async (referer: string) =>
    (await desk.ask('/webhooks/whe_1/test', { form: { token: 'x' }, headers: { referer } })).location;
  expect(await ask('https://console.example/webhooks/whe_1?status=dead')).toBe(
    `/sign-in?${new URLSearchParams({ next: '/webhooks/whe_1?status=dead' })}`,
  );
  for (const referer of ['https://evil.example/webhooks', 'odd', '']) expect(await ask(referer)).toBe('/sign-in');
});

test('the link of a sandbox signs in whoever has it, and nobody else', async () => {
  const desk = await openConsole({ isSandbox: true, isSecure: false });
  expect((await desk.ask(`/sandbox/${'t'.repeat(43)}`)).status).toBe(404);
  expect((await desk.ask('/', { cookie: `quittance=${'t'.repeat(43)}` })).location).toBe('/sign-in');
  const { status, location, set, cookie } = await desk.ask(`/sandbox/${SANDBOX}`);
  expect([status, location, set]).toEqual([303, '/', `quittance=${SANDBOX}; Path=/; HttpOnly; SameSite=Strict`]);
  expect((await desk.ask('/', { cookie })).text).toContain('sandbox');
});

test('a console that is no sandbox has no such link', async () => {
  const desk = await openConsole();
  expect((await desk.ask(`/sandbox/${SANDBOX}`)).status).toBe(404);
  expect((await desk.ask('/', { cookie: `__Host-quittance=${SANDBOX}` })).location).toBe('/sign-in');
});
