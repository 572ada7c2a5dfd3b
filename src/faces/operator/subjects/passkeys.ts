import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { isIP } from 'node:net';
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server';
import { conflict, notFound } from '../../../core/domain/errors.ts';
import { encodeId } from '../../../core/domain/ids.ts';
import { type UnixMs, unixMs } from '../../../core/domain/time.ts';
import { deriveKey, type KeyRing, type MasterKey } from '../../../core/runtime/key-ring.ts';
import { Type } from '../../../core/runtime/type.ts';
import {
  findPasskeys,
  lockFactors,
  type Passkey,
  PERSON_SHAPE,
  PERSON_SOURCES,
  type Person,
  passkey,
} from '../../../core/store/access/people.ts';
import type { Database, Sql } from '../../../core/store/db/database.ts';
import { answerOf, attemptOf } from '../../../core/store/db/rows-of.ts';
import { sealColumn, sealOf } from '../../../core/store/db/seal.ts';
import { SEALED_PASSKEY } from '../../../core/store/db/sealed-tables.ts';
import { group, listColumns } from '../../../core/store/db/statement.ts';
import type { Actor } from '../actor.ts';
import { maybe, of, type Shown, show, text, time } from '../fields.ts';
import { FieldError, nameProblem } from '../input/problems.ts';
import { localOperation } from '../operation.ts';
import { recordAction } from '../record-actions.ts';

/** Stores a passkey. Returns `false` if a passkey with this id already exists. */
export const insertPasskey = attemptOf(
  'passkey-insert',
  `insert into passkeys (id, person_id, public_key, counter, transports, name, created_at, mac)
   values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict do nothing`,
  (personId: string, { id, publicKey, counter, transports, name, createdAt }: Omit<Passkey, 'lastUsedAt'>) => [
    ...[id, personId, publicKey, counter, transports, name, new Date(createdAt)],
    sealOf(SEALED_PASSKEY, { id, personId, publicKey }),
  ],
);

const owned = { ...passkey, person: group(PERSON_SHAPE) } as const;

/** Returns a passkey with its person. */
const findPasskey = answerOf(
  'passkey-find',
  owned,
  `select ${listColumns(owned, 'k.', { isSound: sealColumn(SEALED_PASSKEY, 'k.'), person: PERSON_SOURCES })} from passkeys k join people p on p.id = k.person_id
   where k.id = $1 and k.removed_at is null and p.removed_at is null`,
  (id: Buffer) => [id],
  (rows) => rows.filter(({ isSound, person }) => isSound && person.isSound)[0] ?? null,
);

/**
 * Records that a passkey was used. Returns `false` if the counter doesn't increase, which suggests a copy, or if the passkey was removed.
 */
const usePasskey = attemptOf(
  'passkey-use',
  `update passkeys set counter = $2, last_used_at = $3
   where id = $1 and removed_at is null and (counter < $2 or (counter = 0 and $2 = 0))`,
  (id: Buffer, counter: number, now: UnixMs) => [id, counter, new Date(now)],
);

/** Removes a person's passkey. Returns `false` if the person has no passkey with this id. */
const removePasskeyRow = attemptOf(
  'passkey-remove',
  'update passkeys set removed_at = $3, mac = null where id = $1 and person_id = $2 and removed_at is null',
  (id: Buffer, personId: string, now: UnixMs) => [id, personId, new Date(now)],
);

const passkeyFields = {
  passkeyId: of('id', { ...text, show: (id: Buffer) => id.toString('base64url') }),
  ...{ name: text, createdAt: time, lastUsedAt: maybe(time) },
};
export type PasskeyView = Shown<typeof passkeyFields>;

/** Lists the caller's passkeys, oldest first, at most 100. */
export const listOwnPasskeys = localOperation({
  action: 'listOwnPasskeys',
  input: Type.Object({}),
  run: async ({ db }: { db: Sql }, actor, _wanted: object) => {
    return { data: (await findPasskeys(db, personIdOf(actor))).map((key) => show(passkeyFields, key)) };
  },
});

/** People have a few: a phone, a laptop, a security key in the safe. */
const MOST = 20;

const passkeyPurpose = (personId: string) => ['passkey', personId];

/** Returns the options for creating another passkey in the browser; `null` if browsers don't support that here. */
export const requestPasskey = (deps: PasskeyDeps, { person }: { person: Person }) =>
  passkeyCreation(deps, person, passkeyPurpose(person.id));

/** Adds a passkey to the caller. `name` is the name that the person gives it. Throws `INVALID_ARGUMENT`. */
export const addPasskey = localOperation({
  action: 'addPasskey',
  input: Type.Object({ passkey: Type.Unknown(), name: Type.String() }),
  run: async (deps: PasskeyDeps & { db: Database }, actor, given): Promise<PasskeyView> => {
    const personId = personIdOf(actor);
    const { row, store } = await readPasskey(deps, passkeyPurpose(personId), given);
    await deps.db.transaction(async (tx) => {
      await lockFactors(tx, personId);
      if ((await findPasskeys(tx, personId)).length >= MOST)
        throw conflict`you have ${MOST} passkeys: remove one first`;
      await store(tx, personId);
      const subject = encodeId('usr', personId);
      await recordAction(tx, actor, deps.now(), 'passkey.added', { subject, detail: { name: row.name } });
    });
    return show(passkeyFields, { ...row, lastUsedAt: null });
  },
});

/** Removes one of the caller's passkeys, but never their last means of signing in. Throws `NOT_FOUND` or `CONFLICT`. */
export const removePasskey = localOperation({
  action: 'removePasskey',
  input: Type.Object({ passkeyId: Type.String() }),
  run: async (deps: { db: Database; now(): UnixMs }, actor, { passkeyId }) => {
    const personId = personIdOf(actor);
    await deps.db.transaction(async (tx) => {
      // Prevents two concurrent requests from removing the last two.
      const factors = await lockFactors(tx, personId);
      if (!(await removePasskeyRow(tx, Buffer.from(passkeyId, 'base64url'), personId, deps.now())))
        throw notFound`you have no passkey with this id`;
      const rest = await findPasskeys(tx, personId);
      if (rest.length === 0 && factors?.passwordHash == null)
        throw conflict`this passkey is your only way to sign in: add another passkey first`;
      const subject = encodeId('usr', personId);
      await recordAction(tx, actor, deps.now(), 'passkey.removed', { subject, detail: { left: rest.length } });
    });
    return { passkeyId };
  },
});

/** Only people have passkeys; commands and keys don't. Throws `NOT_FOUND`. */
function personIdOf({ kind, id }: Actor): string {
  if (kind === 'console' && id !== null) return id;
  throw notFound`only console users have passkeys`;
}

/** Marks a challenge as used. Returns `false` if the challenge was already used. */
const spendChallenge = attemptOf(
  'challenge-spend',
  'insert into spent_challenges (sha256, expires_at) values ($1, $2) on conflict do nothing',
  (sha256: Buffer, expiresAt: UnixMs) => [sha256, new Date(expiresAt)],
);

/** This leaves enough time to find a security key, but is shorter than a lunch break. */
const LIFETIME_MS = 300_000;

const NONCE_BYTES = 16;
const TIME_BYTES = 8;
const HASH_BYTES = 32;
const SEALED_BYTES = NONCE_BYTES + TIME_BYTES + HASH_BYTES;

/** The purpose of a passkey's signature: signing in, redeeming an invitation, or an action in a session. */
type Purpose = readonly string[];

/**
 * Creates a challenge for a passkey: a nonce, its expiry, the SHA-256 of its purpose, and an HMAC of all three with a key derived from the
 * master key. So a challenge doesn't need a row until it's answered, and strangers can't fill a table by requesting many challenges.
 */
function createChallenge(
  { keyRing, now, random }: { keyRing: KeyRing; now(): UnixMs; random(bytes: number): Uint8Array },
  purpose: Purpose,
): Uint8Array<ArrayBuffer> {
  const end = Buffer.alloc(TIME_BYTES);
  end.writeBigUInt64BE(BigInt(now() + LIFETIME_MS));
  const content = Buffer.concat([random(NONCE_BYTES), end, hashOf(purpose)]);
  return new Uint8Array(Buffer.concat([content, macOf(keyRing.current(), content)]));
}

/**
 * Reads a challenge (base64url). Returns its expiry and the SHA-256 that marks it as used, or `null` if it isn't ours, has another purpose,
 * or has expired.
 */
function readChallenge({ keyRing, now }: { keyRing: KeyRing; now(): UnixMs }, purpose: Purpose, challenge: string) {
  const bytes = Buffer.from(challenge, 'base64url');
  if (bytes.length !== SEALED_BYTES + HASH_BYTES) return null;
  const [content, mac] = [bytes.subarray(0, SEALED_BYTES), bytes.subarray(SEALED_BYTES)];
  if (!keyRing.keys().some((key) => timingSafeEqual(macOf(key, content), mac))) return null;
  if (!content.subarray(NONCE_BYTES + TIME_BYTES).equals(hashOf(purpose))) return null;
  const expiresAt = unixMs(Number(content.readBigUInt64BE(NONCE_BYTES)));
  return expiresAt > now() ? { sha256: createHash('sha256').update(bytes).digest(), expiresAt } : null;
}

/** Includes the length of each part so that two different purposes never produce the same text. */
function hashOf(purpose: Purpose): Buffer {
  const hash = createHash('sha256');
  for (const part of purpose) hash.update(`${Buffer.byteLength(part)}:`).update(part);
  return hash.digest();
}

function macOf(key: MasterKey, content: Buffer): Buffer {
  return createHmac('sha256', deriveKey(key, { purpose: 'quittance challenges', salt: '' }))
    .update(content)
    .digest();
}

/** `consoleUrl` is the console's configured origin. */
type PasskeyDeps = {
  db: Sql;
  keyRing: KeyRing;
  consoleUrl: string;
  now(): UnixMs;
  random(bytes: number): Uint8Array;
};

/** Loads the package on first use. It takes 0.2 s and 23 MB, mostly for authenticator certificates, which Quittance doesn't request. */
const load = () => import('@simplewebauthn/server');

const TIMEOUT_MS = 300_000;
/** ES256, RS256 and EdDSA. Every authenticator supports at least one of these algorithms. */
const ALGORITHMS = [-7, -257, -8];
/** A browser's response is a few kilobytes. */
const MAX_RESPONSE = 20_000;

/** Whether browsers support passkeys for this URL. Passkeys belong to a host name, never to an IP address. */
function hasPasskeys({ consoleUrl }: { consoleUrl: string }): boolean {
  return isIP(nameOf(consoleUrl).replace(/^\[|\]$/g, '')) === 0;
}

/** Returns the options for creating a passkey in the browser, or `null` if browsers don't support passkeys for this URL. */
export async function passkeyCreation(deps: PasskeyDeps, { id, login, name }: Person, purpose: Purpose) {
  if (!hasPasskeys(deps)) return null;
  return (await load()).generateRegistrationOptions({
    ...{ rpName: 'Quittance', rpID: nameOf(deps.consoleUrl), userName: login, userDisplayName: name },
    userID: new Uint8Array(Buffer.from(id.replaceAll('-', ''), 'hex')),
    ...{ challenge: createChallenge(deps, purpose), timeout: TIMEOUT_MS, attestationType: 'none' },
    excludeCredentials: (await findPasskeys(deps.db, id)).map(describeKey),
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    supportedAlgorithmIDs: ALGORITHMS,
  });
}

/** Returns the options for signing with one of this person's passkeys, or with any person's if `personId` is `null`. */
export async function passkeyRequest(deps: PasskeyDeps, personId: string | null, purpose: Purpose) {
  const keys = personId === null ? [] : await findPasskeys(deps.db, personId);
  if (!hasPasskeys(deps) || (personId !== null && keys.length === 0)) return null;
  return (await load()).generateAuthenticationOptions({
    ...{ rpID: nameOf(deps.consoleUrl), challenge: createChallenge(deps, purpose), timeout: TIMEOUT_MS },
    userVerification: 'required',
    ...(keys.length === 0 ? {} : { allowCredentials: keys.map(describeKey) }),
  });
}

/**
 * Verifies a passkey that a browser created. Returns `null` if the challenge or origin is different, or if the authenticator didn't verify
 * the user.
 */
async function verifyCreated(deps: PasskeyDeps, purpose: Purpose, response: unknown) {
  const challenges = expectChallenge(deps, purpose);
  const { verifyRegistrationResponse } = await load();
  const verified = await orNull(response, () =>
    verifyRegistrationResponse({
      response: response as RegistrationResponseJSON,
      ...{ expectedChallenge: challenges.expect, expectedOrigin: deps.consoleUrl },
      ...{ expectedRPID: nameOf(deps.consoleUrl), requireUserVerification: true },
      supportedAlgorithmIDs: ALGORITHMS,
    }),
  );
  const challenge = challenges.found();
  if (verified?.verified !== true || challenge === null) return null;
  const { id, publicKey, counter, transports = [] } = verified.registrationInfo.credential;
  return {
    ...{ id: Buffer.from(id, 'base64url'), publicKey: Buffer.from(publicKey), counter },
    transports: transports
      .map(String)
      .filter((each) => /^[a-z-]{1,20}$/.test(each))
      .slice(0, 10),
    challenge,
  };
}

export type NewPasskey = { passkey: unknown; name: string };

/** Reads a passkey that the browser created, and the name that the person gave it. Throws `INVALID_ARGUMENT`. */
export async function readPasskey(deps: PasskeyDeps, purpose: readonly string[], { passkey, name: given }: NewPasskey) {
  const name = given.trim();
  const problem = nameProblem(name);
  if (problem !== null) throw new FieldError('name', problem);
  const created = await verifyCreated(deps, purpose, passkey);
  if (created === null) throw notVerified();
  const { challenge, ...key } = created;
  const row = { ...key, name, createdAt: deps.now() };
  const store = async (tx: Sql, personId: string) => {
    if (!((await spend(tx, challenge)) && (await insertPasskey(tx, personId, row)))) throw notNew();
  };
  return { row, store };
}

export const notVerified = () =>
  new FieldError('passkey', 'was not created for this page, or was created without user verification: try again');

const notNew = () => new FieldError('passkey', 'is already in use: try again with another passkey');

type Spendable = NonNullable<ReturnType<typeof readChallenge>>;

/**
 * Finds the person whose passkey signed. Returns `null` if the passkey is unknown, the challenge or origin is different, the authenticator
 * didn't verify the user, or its counter went backwards. Call `consume` in the transaction that relies on the result. It
 * returns `false` if another request has used the challenge.
 */
export async function verifyPasskey(deps: PasskeyDeps, purpose: Purpose, response: unknown) {
  const id = idOf(response);
  const found = id === null ? null : await findPasskey(deps.db, id);
  if (found === null) return null;
  const challenges = expectChallenge(deps, purpose);
  const { verifyAuthenticationResponse } = await load();
  const verified = await orNull(response, () =>
    verifyAuthenticationResponse({
      response: response as AuthenticationResponseJSON,
      ...{ expectedChallenge: challenges.expect, expectedOrigin: deps.consoleUrl },
      ...{ expectedRPID: nameOf(deps.consoleUrl), requireUserVerification: true },
      credential: {
        ...{ id: found.id.toString('base64url'), publicKey: new Uint8Array(found.publicKey), counter: found.counter },
      },
    }),
  );
  const challenge = challenges.found();
  if (verified?.verified !== true || challenge === null) return null;
  const { newCounter } = verified.authenticationInfo;
  const consume = async (tx: Sql, now: UnixMs) =>
    (await spend(tx, challenge)) && (await usePasskey(tx, found.id, newCounter, now));
  return { person: found.person, consume };
}

const spend = (tx: Sql, { sha256, expiresAt }: Spendable) => spendChallenge(tx, sha256, expiresAt);

function expectChallenge(deps: PasskeyDeps, purpose: Purpose) {
  let found: Spendable | null = null;
  return {
    expect: (text: string) => {
      found = readChallenge(deps, purpose, text);
      return found !== null;
    },
    found: (): Spendable | null => found,
  };
}

/** The package throws for every invalid response, and responses come from strangers. */
async function orNull<Verified>(response: unknown, verify: () => Promise<Verified>): Promise<Verified | null> {
  if (typeof response !== 'object' || response === null || JSON.stringify(response).length > MAX_RESPONSE) return null;
  return verify().catch(() => null);
}

function idOf(response: unknown): Buffer | null {
  if (typeof response !== 'object' || response === null || !('id' in response)) return null;
  return typeof response.id === 'string' && response.id.length <= MAX_RESPONSE
    ? Buffer.from(response.id, 'base64url')
    : null;
}

function describeKey({ id, transports }: Passkey) {
  return { id: id.toString('base64url'), transports };
}

/** The passkeys' domain, which is the console's host name. */
function nameOf(consoleUrl: string): string {
  return new URL(consoleUrl).hostname;
}
