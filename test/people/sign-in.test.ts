import { expect, test } from 'vitest';
import { createSignInLimits, hashPassword } from '../../src/faces/operator/people/password.ts';
import { resetPerson } from '../../src/faces/operator/subjects/people.ts';
import { findSession } from '../../src/faces/operator/subjects/sessions.ts';
import {
  requestSignIn,
  requestStepUp,
  type SignInOutcome,
  startSession,
} from '../../src/faces/operator/subjects/sign-in.ts';
import { createTokenBuckets } from '../../src/faces/web/rate-limit.ts';
import { createAuthenticator } from './authenticator.ts';
import { ANN, CONSOLE, type Desk, from, joinByPasskey, joinByPassword, openDesk, PASSWORD } from './desk.ts';

const REFUSED = { kind: 'refused' };
const kindsOf = (outcomes: readonly SignInOutcome[]) => outcomes.map(({ kind }) => kind).sort();

async function challengeOf(desk: Desk): Promise<{ challenge: string }> {
  const request = await requestSignIn(desk.deps);
  if (request === null) throw new Error('no passkey is asked for');
  return request;
}

test('somebody signs in with password and code, and a code is taken once, also by two at the same time', async () => {
  const desk = await openDesk();
  const { code } = await joinByPassword(desk, 'ann');
  const signIn = { login: ' Ann ', password: PASSWORD, code: code() };
  const both = await Promise.all([1, 2].map(() => startSession(desk.deps, from(), signIn)));
  expect(kindsOf(both)).toEqual(['refused', 'started']);
  expect(await startSession(desk.deps, from(), signIn)).toEqual(REFUSED);
  // Nor a code of an earlier period, once a later one was used.
  expect(await startSession(desk.deps, from(), { ...signIn, code: code(-1) })).toEqual(REFUSED);
  expect(await startSession(desk.deps, from(), { ...signIn, code: code(1) })).toMatchObject({ kind: 'started' });
});

test('a code is taken one period early or late, and not two', async () => {
  const desk = await openDesk();
  const { code } = await joinByPassword(desk, 'ann');
  const signIn = { login: 'ann', password: PASSWORD };
  for (const periods of [-2, 2]) {
    expect(await startSession(desk.deps, from(), { ...signIn, code: code(periods) })).toEqual(REFUSED);
  }
  for (const periods of [-1, 0, 1]) {
    expect(await startSession(desk.deps, from(), { ...signIn, code: code(periods) })).toMatchObject({
      kind: 'started',
    });
  }
});

test('a recovery code is taken once, however it is typed, also by two connections at the same time', async () => {
  const desk = await openDesk();
  const { recoveryCodes } = await joinByPassword(desk, 'ann');
  const [first = '', second = ''] = recoveryCodes;
  const typed = first.toUpperCase().replaceAll('-', ' ');
  const both = await Promise.all(
    [first, typed].map((code) => startSession(desk.deps, from(), { login: 'ann', password: PASSWORD, code })),
  );
  expect(kindsOf(both)).toEqual(['refused', 'started']);
  expect(await startSession(desk.deps, from(), { login: 'ann', password: PASSWORD, code: first })).toEqual(REFUSED);
  expect(await startSession(desk.deps, from(), { login: 'ann', password: PASSWORD, code: second })).toMatchObject({
    kind: 'started',
  });
  // And isn't valid for anyone else.
  await joinByPassword(desk, 'bert', 'viewer');
  const theirs = { login: 'bert', password: PASSWORD, code: recoveryCodes[2] ?? '' };
  expect(await startSession(desk.deps, from(), theirs)).toEqual(REFUSED);
});

test('an unknown login, a removed password, a wrong password and a wrong code get one answer and one run of scrypt each', async () => {
  const desk = await openDesk();
  const { code } = await joinByPassword(desk, 'ann');
  await joinByPasskey(desk, 'keyed', 'viewer');
  const tries = [
    { login: 'nobody', password: PASSWORD, code: code() },
    { login: 'keyed', password: PASSWORD, code: code() },
    { login: 'ann', password: `${PASSWORD}!`, code: code() },
    { login: 'ann', password: PASSWORD, code: '000000' },
    { login: '\0', password: '', code: '' },
  ];
  for (const signIn of tries) {
    const before = desk.derived();
    expect(await startSession(desk.deps, from('198.51.100.1'), signIn)).toEqual(REFUSED);
    expect(desk.derived() - before).toBe(1);
  }
});

test('an oversized login or password costs nothing', async () => {
  const desk = await openDesk();
  const huge = 'x'.repeat(1025);
  const before = desk.derived();
  for (const part of [{ login: huge }, { password: huge }]) {
    const signIn = { login: 'ann', password: PASSWORD, code: '000000', ...part };
    expect(await startSession(desk.deps, from(), signIn)).toEqual(REFUSED);
  }
  expect(desk.derived()).toBe(before);
});

test('whoever tries on from one network is slowed, and a known one not by strangers beside it', async () => {
  const desk = await openDesk();
  const { code } = await joinByPassword(desk, 'ann', 'owner', from('192.0.2.1'));
  const guess = (login: string, network: string) =>
    startSession(desk.deps, from(network), { login, password: 'not the password', code: '000000' });
  const own = [];
  for (let n = 0; n < 6; n += 1) own.push(await guess('bert', '192.0.2.9'));
  expect(own.at(-1)).toMatchObject({ kind: 'limited', retryAfterSeconds: 60 });
  // Another login from the same network isn't limited until the network's share is used up.
  const others = [];
  for (let n = 0; n < 16; n += 1) others.push((await guess(`login${n}`, '192.0.2.1')).kind);
  for (let n = 16; n < 24; n += 1) others.push((await guess(`login${n}`, '192.0.2.1')).kind);
  expect(others.filter((kind) => kind === 'refused')).toHaveLength(20);
  const signIn = { login: 'ann', password: PASSWORD, code: code() };
  expect(await startSession(desk.deps, from('192.0.2.1'), signIn)).toMatchObject({ kind: 'started' });
});

test('a recovery code and a passkey get in where a stranger has used up all that a login may try from there', async () => {
  const desk = await openDesk();
  const { recoveryCodes, code } = await joinByPassword(desk, 'ann');
  const { key } = await joinByPasskey(desk, 'keyed');
  for (let n = 0; n < 6; n += 1) {
    await startSession(desk.deps, from(), { login: 'ann', password: 'not the password', code: '000000' });
  }
  const signIn = { login: 'ann', password: PASSWORD, code: code() };
  expect(await startSession(desk.deps, from(), signIn)).toMatchObject({ kind: 'limited' });
  const [recovery = ''] = recoveryCodes;
  expect(await startSession(desk.deps, from(), { ...signIn, code: recovery })).toMatchObject({ kind: 'started' });
  const passkey = key.sign(await challengeOf(desk));
  expect(await startSession(desk.deps, from(), { passkey })).toMatchObject({ kind: 'started' });
});

test('a thousand networks try one account, and its owner signs in from a known network, with a recovery code from a new one, and by passkey', async () => {
  const desk = await openDesk();
  const { code, recoveryCodes } = await joinByPassword(desk, 'ann', 'owner', from('192.0.2.1'));
  const { key } = await joinByPasskey(desk, 'keyed');
  let stop = false;
  const strangers = Array.from({ length: 1000 }, (_, n) => from(`10.${n >> 8}.${n & 255}.1`)).values();
  const kinds = new Set<string>();
  // More sign-ins than may wait for their turn. If all came at once, a slow machine would let some wait too long for a connection.
  const flood = Array.from({ length: 40 }, async () => {
    for (const stranger of strangers) {
      const guess = { login: 'ann', password: `guess ${stranger.origin}`, code: '123456' };
      for (let tries = 0; !stop && tries < 5; tries += 1) {
        kinds.add((await startSession(desk.deps, stranger, guess)).kind);
      }
    }
  });
  const signIn = { login: 'ann', password: PASSWORD, code: code() };
  const started = { kind: 'started' };
  expect(await startSession(desk.deps, from('192.0.2.1'), signIn)).toMatchObject(started);
  const [recovery = ''] = recoveryCodes;
  expect(await startSession(desk.deps, from('192.0.2.77'), { ...signIn, code: recovery })).toMatchObject(started);
  const passkey = key.sign(await challengeOf(desk));
  expect(await startSession(desk.deps, from('192.0.2.78'), { passkey })).toMatchObject(started);
  stop = true;
  await Promise.all(flood);
  expect([...kinds].filter((kind) => kind !== 'limited' && kind !== 'refused')).toEqual([]);
  // Wrong passwords leave nothing in the database, and nothing that locks the owner out later.
  expect(await desk.sql("select misses from people where login = 'ann'")).toEqual([{ misses: 0 }]);
  expect(await desk.sql("select 1 from operator_actions where action = 'session.refused'")).toEqual([]);
});

test('of strangers one waits for its turn after the other, and any of too many is let go', async () => {
  let running = 0;
  let most = 0;
  const done: (() => void)[] = [];
  const limits = createSignInLimits(createTokenBuckets, async () => {
    running += 1;
    most = Math.max(most, running);
    await new Promise<void>((resolve) => done.push(resolve));
    running -= 1;
    return Buffer.alloc(32);
  });
  const cost = { logN: 15, r: 8, p: 3 };
  const run = (isKnown: boolean) =>
    limits
      .derive(isKnown)('x', Buffer.alloc(16), cost)
      .then(
        () => 'done',
        (error: Error) => error.name,
      );
  const strangers = Array.from({ length: 40 }, () => run(false));
  const known = run(true);
  await expect.poll(() => done.length).toBe(2);
  const settled = Promise.all([...strangers, known]);
  for (let n = 0; n < 34; n += 1) {
    await expect.poll(() => done.length).toBeGreaterThan(n);
    done[n]?.();
  }
  const outcomes = await settled;
  expect([most, outcomes.filter((each) => each === 'done').length, outcomes.at(-1)]).toEqual([2, 34, 'done']);
  expect(outcomes.filter((each) => each === 'TooBusy')).toHaveLength(7);
});

test('whoever has the password tries ten codes, each of which is recorded, and then a right one does not help but a recovery code does', async () => {
  const desk = await openDesk();
  const { code, recoveryCodes } = await joinByPassword(desk, 'ann');
  const signIn = (n: number, text: string) =>
    startSession(desk.deps, from(`198.51.100.${n}`), { login: 'ann', password: PASSWORD, code: text });
  const wrong = code() === '000000' ? '000001' : '000000';
  for (let n = 0; n < 12; n += 1) expect(await signIn(n, wrong)).toEqual(REFUSED);
  const recorded = await desk.sql(
    "select acted_by, origin from operator_actions where action = 'session.refused' order by seq",
  );
  expect(recorded).toHaveLength(10);
  expect(recorded[0]).toEqual({ acted_by: 'ann', origin: '198.51.100.0' });
  expect(await signIn(20, code())).toEqual(REFUSED);
  expect(await signIn(21, recoveryCodes[0] ?? '')).toMatchObject({ kind: 'started' });
  desk.pass(30 * 60_000);
  expect(await signIn(22, code())).toMatchObject({ kind: 'started' });
});

test('a passkey signs somebody in, and what it signed is worth nothing afterwards', async () => {
  const desk = await openDesk();
  const { key, person } = await joinByPasskey(desk, 'ann');
  const request = await challengeOf(desk);
  expect(request).toMatchObject({ rpId: 'console.example', userVerification: 'required' });
  const passkey = key.sign(request);
  const both = await Promise.all([1, 2].map(() => startSession(desk.deps, from(), { passkey })));
  expect(kindsOf(both)).toEqual(['refused', 'started']);
  expect(both.find(({ kind }) => kind === 'started')).toMatchObject({ person: { id: person.id } });
  expect(await startSession(desk.deps, from(), { passkey })).toEqual(REFUSED);
});

test('a passkey is refused at another origin, for another challenge, unverified, late, copied, or with a signature of somebody else', async () => {
  const desk = await openDesk();
  const { key, token } = await joinByPasskey(desk, 'ann');
  const session = await findSession(desk.deps, token);
  if (session === null) throw new Error('nobody is signed in');
  const ofStepUp = await requestStepUp(desk.deps, session, { name: 'createKey', input: '' });
  const request = await challengeOf(desk);
  const forged = Buffer.from(request.challenge, 'base64url');
  forged[20] = 255 - (forged[20] ?? 0);
  const wrong = [
    key.sign(request, { origin: 'https://evil.example' }),
    key.sign(request, { origin: 'http://console.example' }),
    key.sign(request, { rpId: 'evil.example' }),
    key.sign(request, { isVerified: false }),
    key.sign(request, { type: 'webauthn.create' }),
    key.sign(request, { key: createAuthenticator(CONSOLE).privateKey }),
    key.sign({ challenge: 'AAAA' }),
    key.sign({ challenge: forged.toString('base64url') }),
    key.sign(ofStepUp.passkey ?? { challenge: '' }),
    { ...key.sign(request), id: createAuthenticator(CONSOLE).id },
    { id: key.id },
    'x',
    null,
  ];
  for (const passkey of wrong) expect(await startSession(desk.deps, from(), { passkey })).toEqual(REFUSED);
  const good = await startSession(desk.deps, from(), { passkey: key.sign(request, { counter: 7 }) });
  expect(good.kind).toBe('started');
  for (const counter of [7, 6, 0]) {
    const passkey = key.sign(await challengeOf(desk), { counter });
    expect(await startSession(desk.deps, from(), { passkey })).toEqual(REFUSED);
  }
  const late = key.sign(await challengeOf(desk), { counter: 8 });
  desk.pass(300_000);
  expect(await startSession(desk.deps, from(), { passkey: late })).toEqual(REFUSED);
});

test('a passkey that counts nothing, as those of telephones do, signs in again and again', async () => {
  const desk = await openDesk();
  const { key } = await joinByPasskey(desk, 'ann');
  for (let n = 0; n < 2; n += 1) {
    const passkey = key.sign(await challengeOf(desk), { counter: 0 });
    expect((await startSession(desk.deps, from(), { passkey })).kind).toBe('started');
  }
});

test('a reset forgets password, codes and passkeys, and ends every session at once', async () => {
  const desk = await openDesk();
  const ann = await joinByPassword(desk, 'ann');
  const keyed = await joinByPasskey(desk, 'keyed');
  for (const person of ['ann', 'keyed']) await resetPerson.run(desk.deps, ANN, { person });
  for (const { token } of [ann, keyed]) expect(await findSession(desk.deps, token)).toBeNull();
  for (const code of [ann.code(), ann.recoveryCodes[0] ?? '']) {
    expect(await startSession(desk.deps, from(), { login: 'ann', password: PASSWORD, code })).toEqual(REFUSED);
  }
  const passkey = keyed.key.sign(await challengeOf(desk));
  expect(await startSession(desk.deps, from(), { passkey })).toEqual(REFUSED);
});

test('a sealed secret that was moved to the row of another person opens nothing', async () => {
  const desk = await openDesk();
  const { code } = await joinByPassword(desk, 'ann');
  await joinByPassword(desk, 'bert', 'viewer');
  await desk.sql(
    "update people b set totp_sealed = a.totp_sealed from people a where b.login = 'bert' and a.login = 'ann'",
  );
  expect(await startSession(desk.deps, from(), { login: 'bert', password: PASSWORD, code: code() })).toEqual(REFUSED);
});

test('a session is always a new one: no token that a browser brings along becomes one, and nobody else’s token changes', async () => {
  const desk = await openDesk();
  const { token, code } = await joinByPassword(desk, 'ann');
  const planted = 'A'.repeat(43);
  const started = await startSession(desk.deps, from(), { login: 'ann', password: PASSWORD, code: code() });
  if (started.kind !== 'started') throw new Error(started.kind);
  expect(started.token).toMatch(/^[\w-]{43}$/);
  expect([planted, token]).not.toContain(started.token);
  expect(await findSession(desk.deps, planted)).toBeNull();
  expect((await findSession(desk.deps, token))?.id).not.toBe(started.sessionId);
  for (const text of ['', 'x', `${started.token} `, started.token.slice(1), `${started.token}A`]) {
    expect(await findSession(desk.deps, text)).toBeNull();
  }
});

test('two hashes of one password differ', async () => {
  expect(await hashPassword(PASSWORD)).not.toBe(await hashPassword(PASSWORD));
});
