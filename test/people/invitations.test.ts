import { expect, test } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import { TooBusy } from '../../src/faces/operator/people/password.ts';
import { invitePerson, removePerson, resetPerson } from '../../src/faces/operator/subjects/people.ts';
import { findSession } from '../../src/faces/operator/subjects/sessions.ts';
import { openInvitation, redeemInvitation, startSession } from '../../src/faces/operator/subjects/sign-in.ts';
import { createAuthenticator } from './authenticator.ts';
import { ANN, CONSOLE, codeOf, from, joinByPasskey, joinByPassword, openDesk, PASSWORD, tokenOf } from './desk.ts';

const ENDED = { code: 'NOT_FOUND' };

test('a fresh server belongs to nobody: without an invitation no token, no login and no passkey gets in', async () => {
  const desk = await openDesk();
  const key = createAuthenticator(CONSOLE);
  const nobodys = 'A'.repeat(43);
  expect(await openInvitation(desk.deps, nobodys)).toBeNull();
  const proof = { password: PASSWORD, code: '000000' };
  await expect(redeemInvitation(desk.deps, from(), nobodys, proof)).rejects.toMatchObject(ENDED);
  expect(await startSession(desk.deps, from(), { login: 'admin', ...proof })).toEqual({ kind: 'refused' });
  expect(await startSession(desk.deps, from(), { passkey: key.sign({ challenge: 'x' }) })).toEqual({ kind: 'refused' });
  expect(await desk.sql('select 1 from people union all select 1 from sessions')).toEqual([]);
});

test('an invited owner joins with a passkey, is signed in, and the database holds neither token', async () => {
  const desk = await openDesk();
  const { token, person, key, recoveryCodes } = await joinByPasskey(desk, 'Ann@Shop.Example');
  expect(person).toMatchObject({ login: 'ann@shop.example', role: 'owner', projects: null });
  expect(recoveryCodes).toEqual([]);
  expect(await findSession(desk.deps, token)).toMatchObject({
    person: { login: 'ann@shop.example' },
    steppedUpUntil: null,
  });
  const [row] = await desk.sql('select sha256, octet_length(sha256) as bytes from sessions');
  expect([row.bytes, row.sha256.includes(Buffer.from(token, 'base64url'))]).toEqual([32, false]);
  const [stored] = await desk.sql('select id, counter, transports, name from passkeys');
  expect(stored).toMatchObject({ counter: '0', transports: ['usb', 'nfc'], name: 'laptop' });
  expect(stored.id.toString('base64url')).toBe(key.id);
});

test('an invited owner joins with a password and an app, and gets ten recovery codes, of which the database has hashes', async () => {
  const desk = await openDesk();
  const { recoveryCodes, secret } = await joinByPassword(desk, 'ann');
  expect(new Set(recoveryCodes).size).toBe(10);
  for (const code of recoveryCodes) expect(code).toMatch(/^([0-9a-z]{4}-){3}[0-9a-z]{4}$/);
  const kept = JSON.stringify(await desk.sql('select p.*, encode(totp_sealed, $1) as hex from people p', ['hex']));
  expect(kept).not.toContain(PASSWORD);
  expect(kept).not.toContain(secret);
  expect(kept).toContain('scrypt$15$8$3$');
});

test('an invitation is taken up once, also by two at the same time', async () => {
  const desk = await openDesk();
  const token = await desk.invite('ann');
  const open = await openInvitation(desk.deps, token);
  const proof = { password: PASSWORD, code: codeOf(open?.totp.secret ?? '', desk.deps.now()) };
  const both = await Promise.allSettled([1, 2].map(() => redeemInvitation(desk.deps, from(), token, proof)));
  expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  await expect(redeemInvitation(desk.deps, from(), token, proof)).rejects.toMatchObject(ENDED);
  expect(await openInvitation(desk.deps, token)).toBeNull();
  expect(await desk.sql('select count(*)::int as n from sessions')).toEqual([{ n: 1 }]);
  expect(await desk.sql('select count(*)::int as n from recovery_codes')).toEqual([{ n: 10 }]);
});

test('while too many sign in at once, an invitation says so at its form and stays', async () => {
  const desk = await openDesk();
  const token = await desk.invite('ann');
  const open = await openInvitation(desk.deps, token);
  const proof = { password: PASSWORD, code: codeOf(open?.totp.secret ?? '', desk.deps.now()) };
  const derive = () => () => Promise.reject(new TooBusy('too many people are signing in at the same time'));
  const busy = { ...desk.deps, limits: { ...desk.deps.limits, derive } };
  await expect(redeemInvitation(busy, from(), token, proof)).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
    field: 'password',
    message: expect.stringContaining('try again in a few seconds'),
  });
  expect((await redeemInvitation(desk.deps, from(), token, proof)).recoveryCodes).toHaveLength(10);
});

test('an invitation ends after 15 minutes, and when the person is removed or gets a new link', async () => {
  const desk = await openDesk();
  const [late, removed, renewed] = [await desk.invite('late'), await desk.invite('gone'), await desk.invite('again')];
  await removePerson.run(desk.deps, ANN, { person: 'gone' });
  const { link } = await resetPerson.run(desk.deps, ANN, { person: 'again' });
  for (const token of [removed, renewed]) expect(await openInvitation(desk.deps, token)).toBeNull();
  desk.pass(15 * 60_000 - 1);
  expect(await openInvitation(desk.deps, tokenOf(link))).toMatchObject({ kind: 'reset' });
  const open = await openInvitation(desk.deps, late);
  const code = codeOf(open?.totp.secret ?? '', desk.deps.now());
  desk.pass(1);
  await expect(redeemInvitation(desk.deps, from(), late, { password: PASSWORD, code })).rejects.toMatchObject(ENDED);
});

test('looking at an invitation takes nothing from it, and shows the same secret again', async () => {
  const desk = await openDesk();
  const token = await desk.invite('ann');
  const [first, second] = [await openInvitation(desk.deps, token), await openInvitation(desk.deps, token)];
  expect(first?.totp).toEqual(second?.totp);
  expect(first?.totp.uri).toMatch(/^otpauth:\/\/totp\/Quittance%20console\.example:ann\?secret=[A-Z2-7]{32}&issuer=/);
  expect((await openInvitation(desk.deps, await desk.invite('bert')))?.totp.secret).not.toBe(first?.totp.secret);
});

test('a passkey that was made for another invitation, at another origin, or without user verification is not taken', async () => {
  const desk = await openDesk();
  const [token, other] = [await desk.invite('ann'), await desk.invite('bert')];
  const [own, theirs] = [await openInvitation(desk.deps, token), await openInvitation(desk.deps, other)];
  if (own?.passkey == null || theirs?.passkey == null) throw new Error('no passkey is offered');
  expect(own.passkey).toMatchObject({
    rp: { id: 'console.example' },
    authenticatorSelection: { userVerification: 'required', residentKey: 'required' },
  });
  const key = createAuthenticator(CONSOLE);
  const wrong = [
    key.create(theirs.passkey),
    key.create(own.passkey, { origin: 'https://console.example.evil' }),
    key.create(own.passkey, { rpId: 'evil' }),
    key.create(own.passkey, { isVerified: false }),
    key.create({ challenge: 'AAAA' }),
    { ...key.create(own.passkey), response: null },
    null,
    'x',
  ];
  for (const passkey of wrong) {
    const redeemed = redeemInvitation(desk.deps, from(), token, { passkey, name: 'laptop' });
    await expect(redeemed).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', field: 'passkey' });
  }
  // None of these attempts used up the invitation or its challenge.
  await redeemInvitation(desk.deps, from(), token, { passkey: key.create(own.passkey), name: 'laptop' });
  // The same passkey can't serve two people either.
  const again = redeemInvitation(desk.deps, from(), other, { passkey: key.create(theirs.passkey), name: 'laptop' });
  await expect(again).rejects.toMatchObject({ field: 'passkey' });
});

test.each([
  ['short', 'elevenchars'],
  ['common', 'password1234'],
  ['common', 'Dragon!Dragon!2026'],
  ['common', '123456789012'],
  ['common', 'aaaaaaaaaaaaaaaa'],
  ['common', 'Ann.Smith-2026!'],
  ['long', 'é'.repeat(513)],
])('a %s password is refused: %s', async (_why, password) => {
  const desk = await openDesk();
  const token = await desk.invite('annsmith@shop.example');
  const open = await openInvitation(desk.deps, token);
  const code = codeOf(open?.totp.secret ?? '', desk.deps.now());
  const redeemed = redeemInvitation(desk.deps, from(), token, { password, code });
  await expect(redeemed).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', field: 'password' });
});

test('a password without the code of the app is no way in', async () => {
  const desk = await openDesk();
  const token = await desk.invite('ann');
  for (const code of ['', '000000', codeOf('A'.repeat(32), desk.deps.now())]) {
    const redeemed = redeemInvitation(desk.deps, from(), token, { password: PASSWORD, code });
    await expect(redeemed).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', field: 'code' });
  }
});

test('at an IP address no passkey is offered, for browsers know none there', async () => {
  const desk = await openDesk();
  const token = await desk.invite('ann');
  const open = await openInvitation({ ...desk.deps, consoleUrl: 'http://127.0.0.1:8090' }, token);
  expect(open?.passkey).toBeNull();
});

test('a login is one person, however it is written, and free again once that person is removed', async () => {
  const desk = await openDesk();
  await joinByPassword(desk, 'ann');
  const twin = { login: 'ann', name: 'Ann', role: 'viewer' as const, projects: null };
  await expect(invitePerson.run(desk.deps, ANN, twin)).rejects.toMatchObject({ code: 'CONFLICT' });
  const upper = desk.sql(
    `insert into people (id, login, name, role, created_at) values (gen_random_uuid(), 'Ann', 'x', 'viewer', now())`,
  );
  await expect(upper).rejects.toThrow('people_login_check');
  await joinByPassword(desk, 'bert');
  await removePerson.run(desk.deps, ANN, { person: 'ann' });
  expect(await invitePerson.run(desk.deps, ANN, twin)).toMatchObject({ login: 'ann', role: 'viewer' });
});

test('without QUITTANCE_CONSOLE_URL nobody is invited, and nothing is left behind', async () => {
  const desk = await openDesk();
  const input = { login: 'ann', name: 'Ann', role: 'owner' as const, projects: null };
  const invited = invitePerson.run({ ...desk.deps, consoleUrl: null }, ANN, input);
  await expect(invited).rejects.toMatchObject({ code: 'CONFIG_INVALID' });
  expect(await desk.sql('select 1 from people')).toEqual([]);
  const { link, expiresAt } = await invitePerson.run(desk.deps, ANN, input);
  expect(link).toMatch(/^https:\/\/console\.example\/invitation\/[\w-]{43}$/);
  expect(Date.parse(expiresAt)).toBe(unixMs(desk.deps.now() + 15 * 60_000));
});
