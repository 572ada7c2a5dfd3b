import { expect, test } from 'vitest';
import { encodeId } from '../../../src/core/domain/ids.ts';
import { listAudit, readAuditFilter } from '../../../src/faces/operator/subjects/audit.ts';
import { createAuthenticator } from '../../people/authenticator.ts';
import { ANN, CONSOLE, joinByPasskey, joinByPassword, PASSWORD } from '../../people/desk.ts';
import { openConsole, SANDBOX } from '../open-console.ts';
import { cookieOf, formOf, passkeyOptionsOf, send, sendWithCode, sendWithPasskey } from './ask-again.ts';

const ME = '/settings/me';
const NEW = `${ME}/passkeys/new`;

/** A viewer who is signed in with a password and an app. */
async function openViewer() {
  const desk = await openConsole();
  const ann = await joinByPassword(desk, 'ann', 'viewer');
  const browser = { ask: desk.ask, cookie: cookieOf(ann.token) };
  const look = () => desk.ask(ME, { cookie: browser.cookie });
  const recorded = async () =>
    (await listAudit.run(desk, ANN, readAuditFilter({ by: 'ann' }))).data.map(({ action }) => action);
  return { ...desk, ann, browser, look, recorded };
}

test('who has no passkey is asked to make one, proves by the app’s code, and signs in with it from then on', async () => {
  const { ask, ann, browser, look, recorded } = await openViewer();
  const { text } = await look();
  expect(text).toContain('Sign in with a passkey');
  expect(text).toContain(`href="${NEW}"`);
  expect(text).toContain('The server administrator can also create a link.');
  const key = createAuthenticator(CONSOLE);
  const page = await ask(NEW, { cookie: browser.cookie });
  const created = JSON.stringify(key.create(passkeyOptionsOf(page)));
  const filled = { ...formOf(page, NEW), created, name: `<b>${'ب'.repeat(97)}` };
  const asked = await ask(NEW, { cookie: browser.cookie, form: filled });
  expect([asked.status, asked.text.includes('the passkey that this browser just created')]).toEqual([200, true]);
  const form = { ...formOf(asked, NEW, 'code'), code: ann.code() };
  const added = await ask(NEW, { cookie: browser.cookie, form });
  expect([added.status, added.location]).toEqual([303, `${ME}?done=passkey-added`]);
  const after = await look();
  expect(after.text).toContain(`&lt;b&gt;${'ب'.repeat(97)}`);
  expect(after.text).not.toContain('Sign in with a passkey');
  expect((await recorded()).slice(0, 2)).toEqual(['passkey.added', 'session.stepped-up']);
  const request = passkeyOptionsOf(await ask('/sign-in'));
  expect((await ask('/sign-in', { form: { passkey: JSON.stringify(key.sign(request)) } })).status).toBe(303);
});

test('a passkey that was made for another page, by another origin, or twice is refused, and so is nonsense', async () => {
  const { ask, ann, browser, recorded } = await openViewer();
  const key = createAuthenticator(CONSOLE);
  const options = passkeyOptionsOf(await ask(NEW, { cookie: browser.cookie }));
  const stranger = createAuthenticator('https://evil.example');
  const signIn = passkeyOptionsOf(await ask('/sign-in'));
  const right = JSON.stringify(key.create(options));
  const added = await sendWithCode(browser, NEW, ann.code(), { created: right, name: 'a key' });
  expect(added.status).toBe(303);
  const wrong: [Record<string, string>, string][] = [
    [{ created: right }, 'is already in use'],
    [{ created: JSON.stringify(key.create(signIn)) }, 'was not created for this page'],
    [{ created: JSON.stringify(stranger.create(options)) }, 'was not created for this page'],
    [
      { created: JSON.stringify(createAuthenticator(CONSOLE).create(options, { isVerified: false })) },
      'was not created',
    ],
    [{ created: '' }, 'was not created for this page'],
    [{ created: 'odd' }, 'was not created for this page'],
    [{ created: '{}' }, 'was not created for this page'],
    [{ created: 'null' }, 'was not created for this page'],
    [{ name: '' }, '“Name”'],
    [{ name: 'x'.repeat(101) }, '“Name”'],
  ];
  for (const [each, says] of wrong) {
    const created = JSON.stringify(
      createAuthenticator(CONSOLE).create(passkeyOptionsOf(await ask(NEW, { cookie: browser.cookie }))),
    );
    const { status, text } = await sendWithPasskey(browser, NEW, key, { created, name: 'another', ...each });
    expect([says, status, text.includes(says)]).toEqual([says, 400, true]);
  }
  expect((await recorded()).filter((action) => action === 'passkey.added')).toHaveLength(1);
});

test('a passkey is removed after a proof, but not the last thing that somebody signs in with, and none of another person', async () => {
  const desk = await openConsole();
  const { ask } = desk;
  const ann = await joinByPasskey(desk, 'ann', 'viewer');
  const bob = await joinByPasskey(desk, 'bob', 'viewer');
  const browser = { ask, cookie: cookieOf(ann.token) };
  const path = `${ME}/passkeys/${ann.key.id}/remove`;
  const asked = await send(browser, path);
  const passkey = JSON.stringify(ann.key.sign(passkeyOptionsOf(asked)));
  const last = await ask(path, { cookie: browser.cookie, form: { ...formOf(asked, path, 'passkey'), passkey } });
  expect([last.status, last.text.includes('this passkey is your only way to sign in')]).toEqual([409, true]);
  for (const id of [bob.key.id, 'x', '%00', 'ann']) {
    expect((await ask(`${ME}/passkeys/${id}/remove`, { cookie: browser.cookie })).status).toBe(404);
  }
  const second = createAuthenticator(CONSOLE);
  const options = passkeyOptionsOf(await ask(NEW, { cookie: browser.cookie }));
  const made = { created: JSON.stringify(second.create(options)), name: 'another' };
  const added = await sendWithPasskey(browser, NEW, ann.key, made);
  expect(added.location).toBe(`${ME}?done=passkey-added`);
  const removed = await sendWithPasskey(browser, path, ann.key);
  expect([removed.status, removed.location]).toEqual([303, `${ME}?done=passkey-removed`]);
  expect((await ask(ME, { cookie: browser.cookie })).text).not.toContain('laptop');
  expect((await ask(path, { cookie: browser.cookie })).status).toBe(404);
});

test('a person ends one of its own sessions, or all but the one that asks, and none of somebody else', async () => {
  const desk = await openViewer();
  const { ask, ann, browser, look, pass } = desk;
  const bob = await joinByPassword(desk, 'bob', 'viewer');
  const signIn = async () => {
    pass(30_000);
    const { cookie } = await ask('/sign-in', { form: { login: 'ann', password: PASSWORD, code: ann.code() } });
    return cookie ?? '';
  };
  const others = [await signIn(), await signIn(), await signIn()];
  const page = await look();
  expect(page.text).toContain('End all other sessions (3)');
  const [foreign, own] = [bob, ann].map(({ sessionId }) => `${ME}/sessions/${encodeId('ses', sessionId)}/end`);
  const { token = '' } = formOf(page, own ?? '');
  expect((await ask(foreign ?? '', { cookie: browser.cookie, form: { token } })).status).toBe(409);
  const paths = [...page.text.matchAll(/action="(\/settings\/me\/sessions\/ses_\w+\/end)"/g)].map(
    ([, path]) => path ?? '',
  );
  const one = paths.find((path) => path !== own) ?? '';
  const ended = await ask(one, { cookie: browser.cookie, form: formOf(page, one) });
  expect([ended.status, ended.location]).toEqual([303, `${ME}?done=session-ended`]);
  const all = `${ME}/sessions/end-others`;
  const rest = await ask(all, { cookie: browser.cookie, form: formOf(page, all) });
  expect([rest.status, rest.location]).toEqual([303, `${ME}?done=others-ended`]);
  for (const cookie of others) expect((await ask('/', { cookie })).location).toBe('/sign-in');
  for (const cookie of [browser.cookie, cookieOf(bob.token)]) expect((await ask(ME, { cookie })).status).toBe(200);
  const seen = (await listAudit.run(desk, ANN, readAuditFilter({ action: 'session.ended' }))).data;
  expect(seen.map(({ actor }) => actor.name)).toEqual(['ann', 'ann', 'ann']);
  expect(new Set(seen.map(({ subject }) => subject)).size).toBe(3);
  expect((await look()).text).not.toContain('End all but');
});

test('the end of the session that asks leads to the sign-in', async () => {
  const { ask, ann, browser, look } = await openViewer();
  const own = `${ME}/sessions/${encodeId('ses', ann.sessionId)}/end`;
  expect((await ask(own, { cookie: browser.cookie, form: formOf(await look(), own) })).status).toBe(303);
  expect((await look()).location).toBe('/sign-in?next=%2Fsettings%2Fme');
});

test('the owner of a sandbox has no account, and is told so wherever it looks for one', async () => {
  const { ask } = await openConsole({ isSandbox: true, isSecure: false });
  const cookie = `quittance=${SANDBOX}`;
  expect((await ask(ME, { cookie })).text).toContain('the link that the sandbox printed');
  expect((await ask(NEW, { cookie })).status).toBe(404);
  const people = await ask('/settings/people', { cookie });
  expect([people.status, people.text.includes('No users yet')]).toEqual([200, true]);
  expect((await ask('/settings/sessions', { cookie })).text).toContain('No one is signed in');
  expect((await ask(`${ME}/sessions/end-others`, { cookie, form: {} })).status).toBe(409);
});

test('at an IP address, where browsers know no passkeys, the page says what to set', async () => {
  const desk = await openConsole({ isSecure: false });
  const ann = await joinByPassword(desk, 'ann');
  const { status, text } = await desk.ask(NEW, { cookie: `quittance=${ann.token}` });
  expect([status, text.includes('QUITTANCE_CONSOLE_URL')]).toEqual([409, true]);
});
