import { expect, test } from 'vitest';
import { encodeId } from '../../../src/core/domain/ids.ts';
import { joinByPasskey, joinByPassword, PASSWORD } from '../../people/desk.ts';
import { openConsole } from '../open-console.ts';
import { cookieOf, formOf, passkeyOptionsOf, send, sendWithCode, sendWithPasskey } from './ask-again.ts';

const SIX_MINUTES_MS = 360_000;

/** An owner with a passkey, who may remove bob or carl. */
async function openWithPasskey() {
  const desk = await openConsole();
  const ann = await joinByPasskey(desk, 'ann');
  const [bob, carl] = [await joinByPasskey(desk, 'bob', 'viewer'), await joinByPasskey(desk, 'carl', 'viewer')];
  const at = ({ person }: typeof bob) => `/settings/people/${encodeId('usr', person.id)}`;
  const left = async () =>
    (await desk.sql('select login from people where removed_at is null order by login')).map(({ login }) => login);
  return { ...desk, ann, browser: { ask: desk.ask, cookie: cookieOf(ann.token) }, bob, carl, at, left };
}

test('a passkey that signed “remove bob” removes bob, and not carl, not with another form, not in another session, not twice', async () => {
  const { ask, browser, ann, bob, carl, at, left, pass } = await openWithPasskey();
  const { cookie } = browser;
  const [remove, other] = [`${at(bob)}/remove`, `${at(carl)}/remove`];
  // The same person's session in another browser.
  const request = passkeyOptionsOf(await ask('/sign-in'));
  const second = await ask('/sign-in', { form: { passkey: JSON.stringify(ann.key.sign(request)) } });
  const asked = await send(browser, remove);
  const passkey = JSON.stringify(ann.key.sign(passkeyOptionsOf(asked)));
  const sent = async (path: string, as = cookie) => {
    const page = await ask(path, { cookie: as });
    return ask(path, { cookie: as, form: { ...formOf(page, path), passkey } });
  };
  for (const path of [other, `${at(bob)}/reset`, `${at(carl)}/reset`]) {
    const { status, text } = await sent(path);
    expect([path, status, text.includes('Nothing was changed')]).toEqual([path, 403, true]);
  }
  const role = `${at(bob)}/role`;
  const page = await ask(role, { cookie });
  expect((await ask(role, { cookie, form: { ...formOf(page, role), role: 'owner', passkey } })).status).toBe(403);
  expect((await sent(remove, second.cookie ?? '')).status).toBe(403);
  expect(await left()).toEqual(['ann', 'bob', 'carl']);

  expect((await ask(remove, { cookie, form: { ...formOf(asked, remove, 'passkey'), passkey } })).status).toBe(303);
  expect(await left()).toEqual(['ann', 'carl']);
  pass(SIX_MINUTES_MS);
  expect((await sent(other)).status).toBe(403);
  expect(await left()).toEqual(['ann', 'carl']);
});

test('what was signed is the form as it was shown: other content asks again, and nothing is done', async () => {
  const { ask, browser, ann, bob, at, sql } = await openWithPasskey();
  const role = `${at(bob)}/role`;
  const asked = await send(browser, role, { role: 'operator' });
  const passkey = JSON.stringify(ann.key.sign(passkeyOptionsOf(asked)));
  const form = formOf(asked, role, 'passkey');
  expect(form).toMatchObject({ role: 'operator' });
  const more = await ask(role, { cookie: browser.cookie, form: { ...form, role: 'owner', passkey } });
  expect([more.status, more.text.includes('owner: can do everything')]).toEqual([403, true]);
  expect(await sql("select role from people where login = 'bob'")).toEqual([{ role: 'viewer' }]);
  const anew = JSON.stringify(ann.key.sign(passkeyOptionsOf(more)));
  const signed = { ...formOf(more, role, 'passkey'), passkey: anew };
  expect((await ask(role, { cookie: browser.cookie, form: signed })).status).toBe(303);
  expect(await sql("select role from people where login = 'bob'")).toEqual([{ role: 'owner' }]);
});

test('another person’s passkey proves nothing, and a proof of nonsense is refused', async () => {
  const { ask, browser, bob, at, left } = await openWithPasskey();
  const remove = `${at(bob)}/remove`;
  for (const passkey of ['{}', 'odd', '[]', 'null', '"x"', '{"id":1}', 'x'.repeat(30_000)]) {
    const page = await ask(remove, { cookie: browser.cookie });
    const { status } = await ask(remove, { cookie: browser.cookie, form: { ...formOf(page, remove), passkey } });
    expect([passkey.slice(0, 20), status]).toEqual([passkey.slice(0, 20), 403]);
  }
  expect((await sendWithPasskey(browser, remove, bob.key)).status).toBe(403);
  expect(await left()).toEqual(['ann', 'bob', 'carl']);
});

test('a code of the app is taken once, also for another form', async () => {
  const desk = await openConsole();
  const ann = await joinByPassword(desk, 'ann');
  const removalOf = async (login: string) => {
    const { person } = await joinByPassword(desk, login, 'viewer');
    return `/settings/people/${encodeId('usr', person.id)}/remove`;
  };
  const [first, second] = [await removalOf('bob'), await removalOf('carl')];
  const browser = { ask: desk.ask, cookie: cookieOf(ann.token) };
  const code = ann.code();
  const wrong = await sendWithCode(browser, first, '000000');
  expect([wrong.status, wrong.text.includes('That code is wrong')]).toEqual([403, true]);
  expect((await sendWithCode(browser, first, code)).status).toBe(303);
  const again = await sendWithCode(browser, second, code);
  expect([again.status, again.text.includes('was already used')]).toEqual([403, true]);
  expect(await desk.sql("select login from people where removed_at is null and login <> 'ann'")).toEqual([
    { login: 'carl' },
  ]);
});

test('a form that is sent twice does its work once, and two tabs each do their own', async () => {
  const { ask, browser, ann, left } = await openWithPasskey();
  const { cookie } = browser;
  const path = '/settings/people/new';
  const [one, two] = [await ask(path, { cookie }), await ask(path, { cookie })];
  for (const [page, login] of [
    [two, 'eve'],
    [one, 'frank'],
  ] as const) {
    const filled = { ...formOf(page, path), login, role: 'viewer' };
    const asked = await ask(path, { cookie, form: filled });
    const passkey = JSON.stringify(ann.key.sign(passkeyOptionsOf(asked)));
    const form = { ...formOf(asked, path, 'passkey'), passkey };
    expect((await ask(path, { cookie, form })).text).toContain('/invitation/');
    const again = await ask(path, { cookie, form });
    expect([again.status, again.text.includes('was already sent'), again.text.includes('/invitation/')]).toEqual([
      409,
      true,
      false,
    ]);
  }
  expect(await left()).toEqual(['ann', 'bob', 'carl', 'eve', 'frank']);
});

test('a form without a token, with that of another form, or of another session does nothing', async () => {
  const { ask, browser, ann, bob, carl, at, left } = await openWithPasskey();
  const { cookie } = browser;
  const [remove, other] = [`${at(bob)}/remove`, `${at(carl)}/remove`];
  const { token: foreign = '' } = formOf(await ask(other, { cookie }), other);
  const request = passkeyOptionsOf(await ask('/sign-in'));
  const second = await ask('/sign-in', { form: { passkey: JSON.stringify(ann.key.sign(request)) } });
  const { token: elsewhere = '' } = formOf(await ask(remove, { cookie: second.cookie }), remove);
  for (const form of [{}, { token: '' }, { token: 'x.y.z' }, { token: foreign }, { token: elsewhere }]) {
    const { status, text } = await ask(remove, { cookie, form });
    expect([status, text.includes('belongs to another session')]).toEqual([409, true]);
  }
  expect(await left()).toEqual(['ann', 'bob', 'carl']);
});

test('a person who is no owner any more, or has gone, is let no further with a form that is open', async () => {
  const desk = await openWithPasskey();
  const { ask, browser, bob, carl, at, left, sql } = desk;
  await sql("update people set role = 'owner' where login = 'bob'");
  const page = await ask(`${at(carl)}/remove`, { cookie: cookieOf(bob.token) });
  expect(page.status).toBe(200);
  // Changes the role without ending the sessions, because rights are read on each request.
  await sql("update people set role = 'viewer' where login = 'bob'");
  const form = formOf(page, `${at(carl)}/remove`);
  const refused = await ask(`${at(carl)}/remove`, { cookie: cookieOf(bob.token), form });
  expect([refused.status, refused.text.includes('Only an owner can do this')]).toEqual([403, true]);
  await sendWithPasskey(browser, `${at(bob)}/remove`, desk.ann.key);
  const gone = await ask(`${at(carl)}/remove`, { cookie: cookieOf(bob.token), form });
  expect([gone.status, gone.location]).toEqual([303, '/sign-in']);
  expect(await left()).toEqual(['ann', 'carl']);
});

test('a session is always a new one: what a browser brought along is never taken over, and the sign-in stays reachable', async () => {
  const desk = await openConsole();
  const { code, token } = await joinByPassword(desk, 'ann');
  const planted = cookieOf('p'.repeat(43));
  const form = { login: 'ann', password: PASSWORD, code: code() };
  const signedIn = await desk.ask('/sign-in', { form, cookie: planted });
  expect(signedIn.cookie).not.toBe(planted);
  expect((await desk.ask('/settings/me', { cookie: planted })).location).toBe('/sign-in?next=%2Fsettings%2Fme');
  for (const cookie of [planted, cookieOf(token), signedIn.cookie]) {
    const { status, text } = await desk.ask('/sign-in', { cookie });
    expect([status, text.includes('With a password')]).toEqual([200, true]);
  }
  desk.pass(30_000);
  const again = await desk.ask('/sign-in', { form: { ...form, code: code() }, cookie: signedIn.cookie });
  expect(again.cookie).not.toBe(signedIn.cookie);
});
