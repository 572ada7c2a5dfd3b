import { createHash, randomBytes, randomUUID } from 'node:crypto';
import pg from 'pg';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { formatAdminKey } from '../../src/core/domain/api-key.ts';
import { encodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import { createKeyRing, createMasterKey, type KeyRing } from '../../src/core/runtime/key-ring.ts';
import { openDatabase } from '../../src/core/store/db/database.ts';
import type { SealProblem } from '../../src/core/store/db/seal.ts';
import { createSeals } from '../../src/core/store/db/seals.ts';
import { checkSeals, type SealsView, sealLedger } from '../../src/faces/operator/ledger/seal-ledger.ts';
import { hashPassword } from '../../src/faces/operator/people/password.ts';
import {
  authenticateAdminKey,
  createAdminKeyOperation,
  revokeAdminKeyOperation,
} from '../../src/faces/operator/subjects/admin-keys.ts';
import { rotateMasterKey } from '../../src/faces/operator/subjects/master-keys.ts';
import { changeRole, removePerson, resetPerson } from '../../src/faces/operator/subjects/people.ts';
import { endSession, findSession, personActor } from '../../src/faces/operator/subjects/sessions.ts';
import {
  openInvitation,
  recoveryCodeHash,
  requestSignIn,
  startSession,
  stepUp,
} from '../../src/faces/operator/subjects/sign-in.ts';
import { ANN, type Desk, from, joinByPasskey, joinByPassword, openDesk, PASSWORD } from '../people/desk.ts';
import { TEST_KEY_RING } from '../support/key-ring.ts';
import { someCases } from '../support/some-cases.ts';

/** Attempts to sign in as an owner, by an attacker who can write to the database but lacks the master key. */
type Rights = 'plain' | 'owner';
/** `named` is the row in the alarm. `isIn` returns whether the attacker is signed in. */
type Attempt = { named: string; isIn(): Promise<boolean> };

let desk: Desk;

async function as(rights: Rights, text: string, values: unknown[] = []): Promise<void> {
  const client = new pg.Client(rights === 'plain' ? desk.database.connection : desk.database.owner);
  await client.connect();
  try {
    // Bypasses every trigger and reference.
    if (rights === 'owner') await client.query('set session_replication_role = replica');
    expect(await client.query(text, values)).toMatchObject({ rowCount: 1 });
  } finally {
    await client.end();
  }
}

const alarms = async () =>
  (
    await desk.sql("select subject from alarms where kind in ('row-changed', 'row-unsealed') and resolved_at is null")
  ).map(({ subject }) => String(subject));
const sha256 = (text: string) => createHash('sha256').update(text).digest();
const isIn = (token: string) => async () => (await findSession(desk.deps, token)) !== null;
const idOf = async (login: string) =>
  String((await desk.sql('select id from people where login = $1', [login]))[0]?.id);

async function sessionInserted(rights: Rights): Promise<Attempt> {
  await joinByPassword(desk, 'ann');
  const [token, id] = [randomBytes(32).toString('base64url'), randomUUID()];
  await as(
    rights,
    `insert into sessions (id, sha256, person_id, proof, created_at, seen_at, origin, client_network)
     values ($1, $2, $3, 'passkey', $4, $4, '192.0.2.1', '192.0.2.1')`,
    [id, sha256(token), await idOf('ann'), new Date(desk.deps.now())],
  );
  return { named: `sessions ${id}`, isIn: isIn(token) };
}

async function sessionSwapped(rights: Rights): Promise<Attempt> {
  await joinByPassword(desk, 'ann');
  const { token, sessionId } = await joinByPassword(desk, 'bert', 'viewer');
  await as(rights, 'update sessions set person_id = $2 where id = $1', [sessionId, await idOf('ann')]);
  return { named: `sessions ${sessionId}`, isIn: isIn(token) };
}

async function sessionPutBack(rights: Rights): Promise<Attempt> {
  const { token, sessionId } = await joinByPassword(desk, 'ann');
  await endSession.run(desk.deps, ANN, { sessionId: encodeId('ses', sessionId) });
  await as(rights, 'update sessions set ended_at = null where id = $1', [sessionId]);
  return { named: `sessions ${sessionId}`, isIn: isIn(token) };
}

async function sessionMadeYoung(rights: Rights): Promise<Attempt> {
  const { token, sessionId } = await joinByPassword(desk, 'ann');
  desk.pass(30 * 86_400_000);
  const now = new Date(desk.deps.now());
  await as(rights, 'update sessions set created_at = $2, seen_at = $2 where id = $1', [sessionId, now]);
  return { named: `sessions ${sessionId}`, isIn: isIn(token) };
}

async function sessionSteppedUp(rights: Rights): Promise<Attempt> {
  const { token, sessionId } = await joinByPassword(desk, 'ann');
  await as(rights, 'update sessions set stepped_up_at = $2 where id = $1', [sessionId, new Date(desk.deps.now())]);
  const steppedUp = async () => ((await findSession(desk.deps, token))?.steppedUpUntil ?? null) !== null;
  return { named: `sessions ${sessionId}`, isIn: steppedUp };
}

async function roleRaised(rights: Rights): Promise<Attempt> {
  const { token } = await joinByPassword(desk, 'bert', 'viewer');
  await as(rights, "update people set role = 'owner' where login = 'bert'");
  return {
    named: `people ${await idOf('bert')}`,
    isIn: async () => (await findSession(desk.deps, token))?.person.role === 'owner',
  };
}

async function passwordSwapped(rights: Rights): Promise<Attempt> {
  const { code } = await joinByPassword(desk, 'ann');
  const password = 'the heron flew away';
  await as(rights, "update people set password_hash = $1 where login = 'ann'", [
    await hashPassword(password, desk.deps.limits.derive(true)),
  ]);
  return {
    named: `people ${await idOf('ann')}`,
    isIn: async () =>
      (await startSession(desk.deps, from(), { login: 'ann', password, code: code() })).kind === 'started',
  };
}

async function personPutBack(rights: Rights): Promise<Attempt> {
  await joinByPassword(desk, 'ann');
  const { token, sessionId } = await joinByPassword(desk, 'bert');
  const id = await idOf('bert');
  const [{ mac }] = (await desk.sql('select mac from sessions where id = $1', [sessionId])) as [{ mac: Buffer }];
  await removePerson.run(desk.deps, ANN, { person: 'bert' });
  // The session gets its old seal, so that only its person's seal is wrong.
  await as('owner', 'update sessions set ended_at = null, mac = $2 where id = $1', [sessionId, mac]);
  await as(rights, 'update people set removed_at = null where id = $1', [id]);
  return { named: `people ${id}`, isIn: isIn(token) };
}

async function personInserted(rights: Rights): Promise<Attempt> {
  await joinByPassword(desk, 'ann');
  const { token, sessionId } = await joinByPassword(desk, 'bert', 'viewer');
  const id = randomUUID();
  await as(rights, `insert into people (id, login, name, role, created_at) values ($1, 'thief', 'x', 'owner', now())`, [
    id,
  ]);
  await as('owner', 'update sessions set person_id = $2 where id = $1', [sessionId, id]);
  return { named: `people ${id}`, isIn: isIn(token) };
}

async function passkeySwapped(rights: Rights): Promise<Attempt> {
  const { key } = await joinByPasskey(desk, 'ann');
  const thief = await joinByPasskey(desk, 'bert', 'viewer');
  const id = Buffer.from(key.id, 'base64url');
  const thiefs = Buffer.from(thief.key.id, 'base64url');
  await as(rights, 'update passkeys set public_key = (select public_key from passkeys where id = $2) where id = $1', [
    id,
    thiefs,
  ]);
  return {
    named: `passkeys ${id.toString('hex')}`,
    isIn: async () => {
      const request = await requestSignIn(desk.deps);
      const passkey = key.sign(request ?? { challenge: '' }, { key: thief.key.privateKey });
      return (await startSession(desk.deps, from(), { passkey })).kind === 'started';
    },
  };
}

async function passkeyInserted(rights: Rights): Promise<Attempt> {
  await joinByPassword(desk, 'ann');
  const { key } = await joinByPasskey(desk, 'bert', 'viewer');
  const id = randomBytes(32);
  await as(
    rights,
    `insert into passkeys (id, person_id, public_key, counter, transports, name, created_at)
     select $1, $2, public_key, 0, transports, name, created_at from passkeys`,
    [id, await idOf('ann')],
  );
  return {
    named: `passkeys ${id.toString('hex')}`,
    isIn: async () => {
      const request = await requestSignIn(desk.deps);
      const signed = key.sign(request ?? { challenge: '' });
      const passkey = { ...signed, id: id.toString('base64url'), rawId: id.toString('base64url') };
      return (await startSession(desk.deps, from(), { passkey })).kind === 'started';
    },
  };
}

async function recoveryCodeInserted(rights: Rights): Promise<Attempt> {
  await joinByPassword(desk, 'ann');
  const code = '7k3m-9x2p-7k3m-9x2p';
  const hash = recoveryCodeHash(code) ?? Buffer.alloc(0);
  await as(rights, 'insert into recovery_codes (sha256, person_id, created_at) values ($1, $2, now())', [
    hash,
    await idOf('ann'),
  ]);
  return {
    named: `recovery_codes ${hash.toString('hex')}`,
    isIn: async () =>
      (await startSession(desk.deps, from(), { login: 'ann', password: PASSWORD, code })).kind === 'started',
  };
}

async function invitationInserted(rights: Rights): Promise<Attempt> {
  await joinByPassword(desk, 'ann');
  const token = randomBytes(32).toString('base64url');
  await as(
    rights,
    `insert into invitations (sha256, person_id, kind, created_at, expires_at) values ($1, $2, 'reset', $3, $4)`,
    [sha256(token), await idOf('ann'), new Date(desk.deps.now()), new Date(desk.deps.now() + 600_000)],
  );
  return {
    named: `invitations ${sha256(token).toString('hex')}`,
    isIn: async () => (await openInvitation(desk.deps, token)) !== null,
  };
}

const keyIsIn = (key: string) => async () => {
  const asking = { origin: '192.0.2.1', requestId: null, isAllowed: () => true };
  return (await authenticateAdminKey(desk.deps, key, asking))?.role === 'owner';
};

async function adminKeyInserted(rights: Rights): Promise<Attempt> {
  // A ledger is only claimed and sealed once something was written to it.
  await newKey('viewer');
  const id = uuidV7(desk.deps.now(), randomBytes(10));
  const key = formatAdminKey(id, randomBytes(32));
  await as(rights, `insert into admin_keys (id, name, secret_sha256, role) values ($1, 'thief', $2, 'owner')`, [
    id,
    sha256(key),
  ]);
  return { named: `admin_keys ${id}`, isIn: keyIsIn(key) };
}

const newKey = (role: 'viewer' | 'owner') =>
  createAdminKeyOperation.run(desk.deps as never, ANN, {
    name: 'cron',
    role,
    projects: null,
    allowedCidrs: ['192.0.2.0/24'],
    expiresAt: null,
  });
const keyId = async () => String((await desk.sql('select id from admin_keys'))[0]?.id);

async function adminKeyRaised(rights: Rights): Promise<Attempt> {
  const { adminKey } = await newKey('viewer');
  await as(rights, "update admin_keys set role = 'owner'");
  return { named: `admin_keys ${await keyId()}`, isIn: keyIsIn(adminKey) };
}

async function adminKeyPutBack(rights: Rights): Promise<Attempt> {
  const { adminKey } = await newKey('owner');
  await revokeAdminKeyOperation.run(desk.deps as never, ANN, { uuid: await keyId() });
  await as(rights, 'update admin_keys set revoked_at = null');
  return { named: `admin_keys ${await keyId()}`, isIn: keyIsIn(adminKey) };
}

/** Whether the service's own user is prevented from it, by a right or a trigger. */
const ATTEMPTS = [
  ['a session inserted', sessionInserted, 'tried'],
  ['the person of a session swapped', sessionSwapped, 'prevented'],
  ['a session that ended put back', sessionPutBack, 'prevented'],
  ['an old session made young', sessionMadeYoung, 'prevented'],
  ['the second proof of a session made up', sessionSteppedUp, 'tried'],
  ['a role raised', roleRaised, 'tried'],
  ['a password swapped', passwordSwapped, 'tried'],
  ['a person inserted', personInserted, 'tried'],
  ['a removed person put back', personPutBack, 'prevented'],
  ['the public key of a passkey swapped', passkeySwapped, 'prevented'],
  ['a passkey inserted', passkeyInserted, 'tried'],
  ['a recovery code inserted', recoveryCodeInserted, 'tried'],
  ['an invitation inserted', invitationInserted, 'tried'],
  ['an admin key inserted', adminKeyInserted, 'tried'],
  ['the role of an admin key raised', adminKeyRaised, 'prevented'],
  ['a revoked admin key put back', adminKeyPutBack, 'prevented'],
] as const;

describe.each(['require', 'warn'] as const)('with seals in the mode %s', (rowMacs) => {
  beforeEach(async () => {
    desk = await openDesk({ rowMacs });
  });
  const tries = ATTEMPTS.flatMap(([what, attempt, plain]) => [
    { what, attempt, rights: 'plain', isPrevented: plain === 'prevented' } as const,
    { what, attempt, rights: 'owner', isPrevented: false } as const,
  ]);
  const whatComes = rowMacs === 'require' ? 'lets nobody in, and is an alarm' : 'is an alarm';

  test.each(someCases(tries, rowMacs === 'require' ? 2 : 5))(
    `$what, with the rights "$rights", ${whatComes}`,
    async ({ attempt, rights, isPrevented }) => {
      if (isPrevented) {
        await expect(attempt(rights)).rejects.toMatchObject({ code: expect.stringMatching(/^(42501|23514|QT...)$/) });
        return;
      }
      const { named, isIn: isThiefIn } = await attempt(rights);
      expect(await isThiefIn()).toBe(rowMacs === 'warn');
      // With `warn`, all unsealed rows of a table share one alarm.
      const [table] = named.split(' ');
      await expect
        .poll(alarms)
        .toSatisfy(
          (subjects: string[]) => subjects.includes(named) || (rowMacs === 'warn' && subjects.includes(table ?? '')),
        );
    },
  );
});

/** Opens the database as its owner, with the seals of `ring`. */
function openAsOwner(ring: KeyRing) {
  const problems: SealProblem[] = [];
  const judge = { mode: 'require', onProblem: (problem: SealProblem) => void problems.push(problem) } as const;
  const db = openDatabase({
    ...{ connection: desk.database.owner, poolSize: 3, applicationName: 'owner', onError: () => undefined },
    seals: createSeals(judge, async () => ring),
  });
  onTestFinished(() => db.close());
  return { db, problems };
}

/** Creates some of everything that lets people in, through all their usual actions. */
async function liveOn(): Promise<{ token: string; adminKey: string; code(periods?: number): string }> {
  const ann = await joinByPassword(desk, 'ann');
  const { key } = await joinByPasskey(desk, 'bert');
  const signed = key.sign((await requestSignIn(desk.deps)) ?? { challenge: '' });
  const bert = await startSession(desk.deps, from(), { passkey: signed });
  expect(bert).toMatchObject({ kind: 'started' });
  const session = await findSession(desk.deps, ann.token);
  if (session === null) throw new Error('ann is not in');
  const action = { name: 'revokeAdminKey', input: 'x' } as const;
  const [proof, again] = [{ code: ann.code() }, { code: ann.recoveryCodes[0] ?? '' }];
  const actor = personActor(session.person, from());
  expect(await stepUp(desk.deps, actor, { session, action, proof })).not.toBeNull();
  expect(await stepUp(desk.deps, actor, { session, action, proof: again })).not.toBeNull();
  expect((await findSession(desk.deps, ann.token))?.steppedUpUntil).not.toBeNull();
  await changeRole.run(desk.deps, ANN, { person: 'bert', role: 'viewer', projects: null });
  await resetPerson.run(desk.deps, ANN, { person: 'bert' });
  await joinByPassword(desk, 'carl', 'viewer');
  await removePerson.run(desk.deps, ANN, { person: 'carl' });
  const { adminKey } = await newKey('owner');
  expect(await keyIsIn(adminKey)()).toBe(true);
  return { token: ann.token, adminKey, code: ann.code };
}

const rowsOf = (tables: readonly string[]) => (view: SealsView) =>
  view.tables.filter(({ table }) => tables.includes(table)).map(({ sealed, unsealed }) => ({ sealed, unsealed }));
const rowsOfPeople = rowsOf(['people', 'passkeys', 'recovery_codes', 'invitations', 'sessions', 'admin_keys']);

test('what people do themselves is as it was sealed, and what has ended needs no seal', async () => {
  desk = await openDesk({ rowMacs: 'require' });
  await liveOn();
  const view = await checkSeals({ db: desk.db, onProgress: () => undefined }, ANN);
  expect(view).toMatchObject({ good: true, wrong: [] });
  expect(rowsOfPeople(view)).toEqual([2, 0, 9, 1, 1, 1].map((sealed) => ({ sealed, unsealed: 0 })));
  expect(await alarms()).toEqual([]);
});

test('people who are older than the seals are let in again by ledger seal, and until then an alarm names it', async () => {
  desk = await openDesk({ rowMacs: 'require' });
  const { token, adminKey, code } = await liveOn();
  for (const table of ['people', 'passkeys', 'recovery_codes', 'invitations', 'sessions', 'admin_keys']) {
    await desk.sql(`update ${table} set mac = null where mac is not null`);
  }
  const signIn = { login: 'ann', password: PASSWORD };
  expect([await isIn(token)(), await keyIsIn(adminKey)()]).toEqual([false, false]);
  expect(await startSession(desk.deps, from(), { ...signIn, code: code() })).toMatchObject({ kind: 'refused' });
  await expect.poll(alarms).toContain(`people ${await idOf('ann')}`);
  expect(await desk.sql("select detail from alarms where subject like 'people %'")).toMatchObject([
    { detail: expect.stringContaining('"quittance ledger seal"') },
  ]);
  const { db } = openAsOwner(TEST_KEY_RING);
  const sealing = { db, kind: 'external', now: desk.deps.now, onProgress: () => undefined } as const;
  expect(await sealLedger(sealing, ANN)).toMatchObject({ good: true });
  expect([await isIn(token)(), await keyIsIn(adminKey)()]).toEqual([true, true]);
  desk.pass(60_000);
  expect(await startSession(desk.deps, from(), { ...signIn, code: code() })).toMatchObject({ kind: 'started' });
});

test('a person that was changed gets no new seal by a change of the role or a reset, and can be removed', async () => {
  desk = await openDesk({ rowMacs: 'require' });
  await joinByPassword(desk, 'ann');
  await joinByPassword(desk, 'bert', 'viewer');
  await as('plain', "update people set role = 'owner' where login = 'bert'");
  const changed = { code: 'ROW_CHANGED', message: expect.stringContaining(await idOf('bert')) };
  const viewer = { person: 'bert', role: 'viewer', projects: null } as const;
  await expect(changeRole.run(desk.deps, ANN, viewer)).rejects.toMatchObject(changed);
  await expect(resetPerson.run(desk.deps, ANN, { person: 'bert' })).rejects.toMatchObject(changed);
  expect(await removePerson.run(desk.deps, ANN, { person: 'bert' })).toMatchObject({ status: 'removed' });
  expect(await checkSeals({ db: desk.db, onProgress: () => undefined }, ANN)).toMatchObject({ good: true });
});

test('a rotation of the master key seals them anew, but not a person that somebody changed', async () => {
  const [older, newer] = [createMasterKey(), createMasterKey()];
  desk = await openDesk({ rowMacs: 'require', keyRing: createKeyRing([older]) });
  const { token, adminKey } = await liveOn();
  await joinByPassword(desk, 'mallory', 'viewer');
  await as('plain', "update people set role = 'owner' where login = 'mallory'");
  const both = [newer, older].map(({ bytes }) => bytes.toString('base64'));
  const config = { masterKeys: both, databaseUrl: 'postgres://elsewhere', dataDir: '/nowhere' };
  const { now } = desk.deps;
  const { db: owner } = openAsOwner(createKeyRing([newer, older]));
  expect(await rotateMasterKey({ db: owner, now, config, note: () => undefined }, ANN)).toMatchObject({
    ...{ resealed: 2, droppable: [older.id] },
  });
  const { db, problems } = openAsOwner(createKeyRing([newer]));
  const deps = { ...desk.deps, db };
  expect(await findSession(deps, token)).not.toBeNull();
  const asking = { origin: null, requestId: null, isAllowed: () => true };
  expect(await authenticateAdminKey(deps, adminKey, asking)).not.toBeNull();
  expect(problems).toEqual([]);
  const view = await checkSeals({ db, onProgress: () => undefined }, ANN);
  expect(view.wrong).toMatchObject([{ table: 'people', id: await idOf('mallory') }]);
});
