import { randomBytes, scryptSync } from 'node:crypto';
import { base32nopad } from '@scure/base';
import pg from 'pg';
import { onTestFinished } from 'vitest';
import { type UnixMs, unixMs } from '../../src/core/domain/time.ts';
import { createSealNotifier } from '../../src/core/payments/row-alarm.ts';
import type { KeyRing } from '../../src/core/runtime/key-ring.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { openDatabase } from '../../src/core/store/db/database.ts';
import { createSeals } from '../../src/core/store/db/seals.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { createSignInLimits, type Derive } from '../../src/faces/operator/people/password.ts';
import { invitePerson, readNewPerson } from '../../src/faces/operator/subjects/people.ts';
import type { From } from '../../src/faces/operator/subjects/sessions.ts';
import { openInvitation, redeemInvitation, type SignInDeps } from '../../src/faces/operator/subjects/sign-in.ts';
import { totpCode } from '../../src/faces/operator/subjects/totp.ts';
import { createTokenBuckets } from '../../src/faces/web/rate-limit.ts';
import { TEST_KEY_RING } from '../support/key-ring.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { createAuthenticator } from './authenticator.ts';

export const CONSOLE = 'https://console.example';
export const ANN = commandActor('ann');
export const PASSWORD = 'a heron stands in the reeds';
export const HOUR_MS = 3_600_000;

/** A thousandth of the work. test/people/password.test.ts does all of it. */
const quickly: Derive = async (password, salt) => scryptSync(password, salt, 32, { N: 32, r: 8, p: 1 });

/** With `rowMacs`, rows are sealed, and problems raise an alarm of the network devnet. */
type Options = { poolSize?: number; rowMacs?: 'warn' | 'require'; keyRing?: KeyRing };

/** Creates a console without its pages: a database, a movable clock, and scrypt with a counter. */
export async function openDesk({ poolSize = 6, rowMacs, keyRing = TEST_KEY_RING }: Options = {}) {
  const database = await createTestDatabase();
  const { connection } = database;
  const told = { log: createLogger({ level: 'silent' }), now: () => now, networks: ['devnet'] as const };
  const sealsOf = (mode: 'warn' | 'require') =>
    createSeals({ mode, onProblem: createSealNotifier({ ...told, db: () => db }) }, async () => keyRing);
  const db = openDatabase({
    ...{ connection, poolSize, applicationName: 'people', onError: () => undefined },
    ...(rowMacs === undefined ? {} : { seals: sealsOf(rowMacs) }),
  });
  const client = new pg.Client(database.owner);
  await client.connect();
  onTestFinished(async () => {
    await db.close();
    await client.end();
    await database.drop();
  });
  let now: UnixMs = unixMs(Date.parse('2026-09-01T12:00:00Z'));
  let derived = 0;
  const limits = createSignInLimits(createTokenBuckets, (...input) => {
    derived += 1;
    return quickly(...input);
  });
  const deps: SignInDeps = {
    db,
    keyRing,
    consoleUrl: CONSOLE,
    limits,
    now: () => now,
    random: randomBytes,
  };
  return {
    ...{ deps, db, database },
    sql: async (text: string, values: unknown[] = []) => (await client.query(text, values)).rows,
    pass: (ms: number) => {
      now = unixMs(now + ms);
    },
    derived: () => derived,
    invite: async (login: string, role: 'owner' | 'operator' | 'viewer' = 'owner') => {
      const { link } = await invitePerson.run(deps, ANN, readNewPerson({ login, role }));
      return tokenOf(link);
    },
  };
}

export type Desk = Awaited<ReturnType<typeof openDesk>>;

export const tokenOf = (link: string) => link.slice(`${CONSOLE}/invitation/`.length);

/** A request from an address. */
export const from = (origin = '203.0.113.7'): From => ({ origin, network: origin, userAgent: 'test', requestId: null });

/** Returns the code of an app that scanned this secret. */
export const codeOf = (secret: string, now: UnixMs, periods = 0) =>
  totpCode(base32nopad.decode(secret), Math.floor(now / 30_000) + periods);

/** Redeems an invitation with a password and an app. */
export async function joinByPassword(
  desk: Desk,
  login: string,
  role: 'owner' | 'operator' | 'viewer' = 'owner',
  at = from(),
) {
  const token = await desk.invite(login, role);
  const open = await openInvitation(desk.deps, token);
  const secret = open?.totp.secret ?? '';
  const joined = await redeemInvitation(desk.deps, at, token, {
    ...{ password: PASSWORD, code: codeOf(secret, desk.deps.now()) },
  });
  desk.pass(60_000);
  return { ...joined, secret, code: (periods = 0) => codeOf(secret, desk.deps.now(), periods) };
}

/** Redeems an invitation with a passkey. */
export async function joinByPasskey(desk: Desk, login: string, role: 'owner' | 'operator' | 'viewer' = 'owner') {
  const token = await desk.invite(login, role);
  const open = await openInvitation(desk.deps, token);
  if (open?.passkey == null) throw new Error('the invitation offers no passkey');
  const key = createAuthenticator(CONSOLE);
  const joined = await redeemInvitation(desk.deps, from(), token, {
    passkey: key.create(open.passkey),
    name: 'laptop',
  });
  return { ...joined, key };
}
