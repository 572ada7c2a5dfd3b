import { createHash } from 'node:crypto';
import { base32crockford } from '@scure/base';
import { AppError } from '../../../core/domain/errors.ts';
import { encodeId, NIL_UUID } from '../../../core/domain/ids.ts';
import { type UnixMs, unixMs } from '../../../core/domain/time.ts';
import type { KeyRing } from '../../../core/runtime/key-ring.ts';
import { Type } from '../../../core/runtime/type.ts';
import {
  consumeInvitation,
  consumeRecoveryCode,
  consumeTotpStep,
  findFactors,
  findInvitation,
  findPasskeys,
  hasRecoveryCode,
  insertPasskey,
  insertRecoveryCodes,
  lockFactors,
  type Person,
  type PersonFactors,
  personOf,
  removePasskeyRow,
  storePassword,
  takeMiss,
} from '../../../core/store/access/people.ts';
import { forgetOldSessions, hasSignedInFrom, stepUpSession } from '../../../core/store/access/sessions.ts';
import type { Database, Sql } from '../../../core/store/db/database.ts';
import type { ActionName } from '../actions.ts';
import type { Actor } from '../actor.ts';
import { maybe, of, type Shown, show, text, time } from '../fields.ts';
import { FieldError, nameProblem } from '../input/problems.ts';
import { localOperation } from '../operation.ts';
import {
  consumePasskey,
  notNew,
  notVerified,
  passkeyCreation,
  passkeyRequest,
  spend,
  verifyCreated,
  verifyPasskey,
} from '../people/passkey-proof.ts';
import {
  hashPassword,
  isPassword,
  MAX_PASSWORD_BYTES,
  openTotp,
  passwordProblem,
  type SignInLimits,
  sealTotp,
  TOTP_CODE,
  TooBusy,
  totpLink,
  totpSecretsOf,
  totpStepOf,
} from '../people/sign-in-proofs.ts';
import { recordAction } from '../record-actions.ts';
import { hashToken, loginOf } from './people.ts';
import { type From, openSession, personActor, type Session, type StartedSession, steppedUpUntil } from './sessions.ts';

export type SignInDeps = {
  db: Database;
  keyRing: KeyRing;
  consoleUrl: string;
  limits: SignInLimits;
  now(): UnixMs;
  /** The clock for deleting old sessions. The default is `now`. */
  certainNow?(): UnixMs;
  random(bytes: number): Uint8Array;
};

/** `code` is six digits from an authenticator app, or a recovery code. `passkey` is the browser's response. */
export type SignIn = { passkey: unknown } | { login: string; password: string; code: string };

/** `refused` never says what was wrong. `limited` means that the attempt wasn't checked. */
export type SignInOutcome =
  | ({ kind: 'started' } & StartedSession)
  | { kind: 'refused' }
  | { kind: 'limited'; retryAfterSeconds: number };

/** Requests any passkey for this console, because the person isn't known before they sign in. */
const SIGN_IN = ['sign-in'] as const;
export const requestSignIn = (deps: SignInDeps) => passkeyRequest(deps, null, SIGN_IN);

/** A network from which someone signed in stays known for this time, so sessions are kept just as long. */
const KNOWN_MS = 90 * 86_400_000;

/**
 * With the right password, ten wrong codes are allowed at once, and then one every half hour. At this rate, guessing a code would take
 * decades.
 */
const MISSES = { most: 10, everySeconds: 1800 };

const REFUSED = { kind: 'refused' } as const;

/** Signs a person in with a passkey, or with a password and a code. */
export async function startSession(deps: SignInDeps, from: From, signIn: SignIn): Promise<SignInOutcome> {
  const outcome =
    'passkey' in signIn ? await byPasskey(deps, from, signIn.passkey) : await byPassword(deps, from, signIn);
  // Old sessions are deleted only after a successful sign-in, so strangers can't cause this work.
  if (outcome.kind === 'started')
    await forgetOldSessions(deps.db, unixMs(Math.max(0, (deps.certainNow ?? deps.now)() - KNOWN_MS)));
  return outcome;
}

async function byPasskey(deps: SignInDeps, from: From, response: unknown): Promise<SignInOutcome> {
  const verified = await verifyPasskey(deps, SIGN_IN, response);
  if (verified === null) return REFUSED;
  return deps.db.transaction(async (tx) => {
    // Locks the person first, as every action that removes a means of signing in does.
    const person = await lockFactors(tx, verified.person.id);
    if (person === null || !(await consumePasskey(tx, verified, deps.now()))) return REFUSED;
    return { kind: 'started', ...(await openSession(tx, deps, { person: personOf(person), from, proof: 'passkey' })) };
  });
}

/** Runs the same statements and one scrypt hash for every login and password, known or not, so that timing reveals nothing. */
async function byPassword(
  deps: SignInDeps,
  from: From,
  { login, password, code }: Extract<SignIn, { password: string }>,
): Promise<SignInOutcome> {
  const { db, limits, now } = deps;
  if (login.length > MAX_PASSWORD_BYTES || Buffer.byteLength(password) > MAX_PASSWORD_BYTES) return REFUSED;
  const given = loginOf(login);
  const found = await findFactors(db, { id: null, login: given });
  const id = found?.id ?? NIL_UUID;
  const isKnown = await hasSignedInFrom(db, id, from.network, unixMs(now() - KNOWN_MS));
  // A recovery code can't be guessed. So a stranger who uses up a network's attempts doesn't lock out a person who has a recovery code.
  const recovery = recoveryCodeHash(code);
  const hasCode = recovery !== null && (await hasRecoveryCode(db, recovery, id));
  const attempt = { login: given, network: from.network, isKnown, nowMs: now() };
  const verdict = limits.take(attempt);
  if (verdict.kind === 'limited' && !hasCode) return verdict;
  try {
    const isRight = await isPassword(password, found?.passwordHash ?? null, limits.derive(isKnown || hasCode));
    if (!isRight || found === null) return REFUSED;
  } catch (error) {
    if (error instanceof TooBusy) return { kind: 'limited', retryAfterSeconds: error.retryAfterSeconds };
    throw error;
  }
  const started = await db.transaction(async (tx) => {
    const person = await lockFactors(tx, id);
    if (person === null || person.passwordHash !== found.passwordHash) return null;
    const proof = await takeCode(tx, deps, personActor(personOf(person), from), { person, code });
    return proof && openSession(tx, deps, { person: personOf(person), from, proof });
  });
  if (started === null) return REFUSED;
  if (verdict.kind === 'pass') limits.giveBack(attempt);
  return { kind: 'started', ...started };
}

type CodeDeps = { keyRing: KeyRing; now(): UnixMs };

/**
 * Accepts an app's code or a recovery code once. Returns `null` if the code is wrong, was used before, or follows too many wrong codes. Too
 * many wrong codes don't block recovery codes. Records wrong codes, because the sender has the password or the session. The caller has
 * locked the person.
 */
async function takeCode(
  tx: Sql,
  { keyRing, now }: CodeDeps,
  actor: Actor,
  { person, code }: { person: PersonFactors; code: string },
): Promise<'totp' | 'recovery-code' | null> {
  const recovery = recoveryCodeHash(code);
  if (recovery !== null && (await consumeRecoveryCode(tx, recovery, person.id, now()))) return 'recovery-code';
  // Counts the attempt as wrong before checking it, so that parallel attempts gain nothing over sequential ones.
  if (!(await takeMiss(tx, person.id, now(), MISSES))) return null;
  if (TOTP_CODE.test(code) && (await takeTotp(tx, { keyRing, now }, person, code))) return 'totp';
  const subject = encodeId('usr', person.id);
  await recordAction(tx, actor, now(), 'session.refused', { subject, detail: {} });
  return null;
}

async function takeTotp(tx: Sql, { keyRing, now }: CodeDeps, person: PersonFactors, code: string) {
  const secret = await openTotp(keyRing, person);
  const step = secret && totpStepOf(secret, code, now());
  return step !== null && consumeTotpStep(tx, person.id, step);
}

/**
 * Reads an invitation without using it up so that link previews in chats do no harm. Returns `null` if it has ended or never existed.
 * `passkey` is `null` if browsers can't have one, such as at an IP address.
 */
export async function openInvitation(deps: SignInDeps, token: string) {
  const found = await findInvitation(deps.db, hashToken(token), deps.now());
  if (found === null) return null;
  const { person, kind, expiresAt } = found;
  const [secret = Buffer.alloc(0)] = totpSecretsOf(deps.keyRing, token);
  return {
    ...{ person, kind, expiresAt },
    passkey: await passkeyCreation(deps, person, invitationPurpose(token)),
    totp: totpLink(secret, { login: person.login, issuer: `Quittance ${new URL(deps.consoleUrl).host}` }),
  };
}

export type OpenInvitation = NonNullable<Awaited<ReturnType<typeof openInvitation>>>;

/** `name` is the name that the person gives the passkey. `code` is from the app that scanned this invitation's secret. */
export type Redemption = NewPasskey | { password: string; code: string };

/**
 * Redeems an invitation: stores the person's means of signing in, and signs them in. `recoveryCodes` are shown only once; a person with a
 * passkey gets none. Throws `NOT_FOUND` if the invitation has ended, or `INVALID_ARGUMENT` for `passkey`, `name`, `password` or `code`.
 */
export async function redeemInvitation(deps: SignInDeps, from: From, token: string, proof: Redemption) {
  const { db, now } = deps;
  const found = await findInvitation(db, hashToken(token), now());
  if (found === null) throw ended();
  const { person, kind } = found;
  const factor =
    'passkey' in proof ? await passkeyFactor(deps, token, proof) : await passwordFactor(deps, person, token, proof);
  return db.transaction(async (tx) => {
    // Locks the person first so that a concurrent request waits here and then finds the invitation used.
    const factors = await lockFactors(tx, person.id);
    if (factors === null || !(await consumeInvitation(tx, hashToken(token), now()))) throw ended();
    const locked = personOf(factors);
    const recoveryCodes = await factor.store(tx, locked);
    const started = await openSession(tx, deps, { person: locked, from, proof: factor.proof });
    const [subject, detail] = [encodeId('usr', locked.id), { kind, factor: factor.proof }];
    await recordAction(tx, personActor(locked, from), now(), 'user.joined', { subject, detail });
    return { ...started, recoveryCodes };
  });
}

const ended = () =>
  new AppError(
    'NOT_FOUND',
    'this invitation is no longer valid: it was used, is older than 15 minutes, or was replaced by a newer invitation. Ask for a new link',
  );

const invitationPurpose = (token: string) => ['invitation', hashToken(token).toString('hex')];

type NewPasskey = { passkey: unknown; name: string };

/** Reads a passkey that the browser created, and the name that the person gave it. Throws `INVALID_ARGUMENT`. */
async function readPasskey(deps: SignInDeps, purpose: readonly string[], { passkey, name: given }: NewPasskey) {
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

async function passkeyFactor(deps: SignInDeps, token: string, proof: NewPasskey) {
  const { store } = await readPasskey(deps, invitationPurpose(token), proof);
  return { proof: 'passkey' as const, store: (tx: Sql, { id }: Person) => store(tx, id).then(() => []) };
}

async function passwordFactor(
  { keyRing, now, random, limits }: SignInDeps,
  person: Person,
  token: string,
  { password, code }: { password: string; code: string },
) {
  const problem = passwordProblem(password, person.login);
  if (problem !== null) throw new FieldError('password', problem);
  const proved = totpSecretsOf(keyRing, token).flatMap((secret) => {
    const step = totpStepOf(secret, code, now());
    return step === null ? [] : [{ secret, step }];
  });
  const [app] = proved;
  if (app === undefined)
    throw new FieldError('code', "is not the current code from your app: check that your device's clock is right");
  const hash = await hashPassword(password, limits.derive(true)).catch(refuseBusy);
  const store = async (tx: Sql, joined: Person) => {
    const totp = await sealTotp(tx, keyRing, joined.id, app.secret);
    await storePassword(tx, joined, { hash, totp, step: app.step });
    const codes = createRecoveryCodes(random);
    await insertRecoveryCodes(
      tx,
      joined.id,
      codes.flatMap((each) => recoveryCodeHash(each) ?? []),
      now(),
    );
    return codes;
  };
  return { proof: 'totp' as const, store };
}

function refuseBusy(error: unknown): never {
  if (!(error instanceof TooBusy)) throw error;
  throw new FieldError(
    'password',
    'cannot be checked right now, because too many people are signing in: try again in a few seconds',
  );
}

/**
 * The action that a person is about to take: the use case, and its input as it's shown to the person. The person signs exactly what they
 * see.
 */
export type SignedAction = { name: ActionName; input: string };

/** How a person can prove their identity again. */
export type StepUpRequest = { passkey: Awaited<ReturnType<typeof passkeyRequest>>; hasCode: boolean };

/** Requests a new proof of identity before an action. */
export async function requestStepUp(deps: SignInDeps, session: Session, action: SignedAction): Promise<StepUpRequest> {
  const { id } = session.person;
  const factors = await findFactors(deps.db, { id, login: null });
  return {
    passkey: await passkeyRequest(deps, id, actionPurpose(session, action)),
    hasCode: factors?.totpSealed != null,
  };
}

/** `code` comes from an authenticator app, or is a recovery code. */
export type StepUpProof = { passkey: unknown } | { code: string };

/**
 * Records that a session's person proved their identity again; the proof is valid for five minutes. A passkey must have signed the
 * challenge for this action in this session. `actor` is that person. Returns `null` if the proof is someone else's, is for another action,
 * or was used before.
 */
export async function stepUp(
  deps: SignInDeps,
  actor: Actor,
  { session, action, proof }: { session: Session; action: SignedAction; proof: StepUpProof },
): Promise<{ steppedUpUntil: UnixMs } | null> {
  const note = async (tx: Sql, by: string) => {
    if (!(await stepUpSession(tx, session.id, deps.now()))) return null;
    const subject = encodeId('ses', session.id);
    const detail = { for: action.name, input: createHash('sha256').update(action.input).digest('hex'), proof: by };
    await recordAction(tx, actor, deps.now(), 'session.stepped-up', { subject, detail });
    return { steppedUpUntil: steppedUpUntil({ steppedUpAt: deps.now() }, deps.now()) ?? unixMs(deps.now()) };
  };
  const { person } = session;
  if ('passkey' in proof) {
    const verified = await verifyPasskey(deps, actionPurpose(session, action), proof.passkey);
    if (verified === null || verified.person.id !== person.id) return null;
    return deps.db.transaction(async (tx) => {
      const isTaken = (await lockFactors(tx, person.id)) !== null && (await consumePasskey(tx, verified, deps.now()));
      return isTaken ? note(tx, 'passkey') : null;
    });
  }
  return deps.db.transaction(async (tx) => {
    const locked = await lockFactors(tx, person.id);
    const by = locked && (await takeCode(tx, deps, actor, { person: locked, code: proof.code }));
    return by === null ? null : note(tx, by);
  });
}

const actionPurpose = ({ id }: Session, { name, input }: SignedAction) => ['step-up', id, name, input];

const passkeyFields = {
  passkeyId: of('id', { ...text, show: (id: Buffer) => id.toString('base64url') }),
  ...{ name: text, createdAt: time, lastUsedAt: maybe(time) },
};
export type PasskeyView = Shown<typeof passkeyFields>;

/** Lists the caller's passkeys, oldest first, at most 100. */
export const listOwnPasskeys = localOperation({
  action: 'listOwnPasskeys',
  input: Type.Object({}),
  run: async ({ db }: Pick<SignInDeps, 'db'>, actor, _wanted: object) => {
    return { data: (await findPasskeys(db, personIdOf(actor))).map((key) => show(passkeyFields, key)) };
  },
});

/** People have a few: a phone, a laptop, a security key in the safe. */
const MOST = 20;

const passkeyPurpose = (personId: string) => ['passkey', personId];

/** Returns the options for creating another passkey in the browser; `null` if browsers don't support that here. */
export const requestPasskey = (deps: SignInDeps, { person }: Session) =>
  passkeyCreation(deps, person, passkeyPurpose(person.id));

/** Adds a passkey to the caller. `name` is the name that the person gives it. Throws `INVALID_ARGUMENT`. */
export const addPasskey = localOperation({
  action: 'addPasskey',
  input: Type.Object({ passkey: Type.Unknown(), name: Type.String() }),
  run: async (deps: SignInDeps, actor, given): Promise<PasskeyView> => {
    const personId = personIdOf(actor);
    const { row, store } = await readPasskey(deps, passkeyPurpose(personId), given);
    await deps.db.transaction(async (tx) => {
      await lockFactors(tx, personId);
      if ((await findPasskeys(tx, personId)).length >= MOST) {
        throw new AppError('CONFLICT', `you have ${MOST} passkeys: remove one first`);
      }
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
  run: async (deps: Pick<SignInDeps, 'db' | 'now'>, actor, { passkeyId }) => {
    const personId = personIdOf(actor);
    await deps.db.transaction(async (tx) => {
      // Prevents two concurrent requests from removing the last two.
      const factors = await lockFactors(tx, personId);
      if (!(await removePasskeyRow(tx, Buffer.from(passkeyId, 'base64url'), personId, deps.now()))) {
        throw new AppError('NOT_FOUND', 'you have no passkey with this id');
      }
      const rest = await findPasskeys(tx, personId);
      if (rest.length === 0 && factors?.passwordHash == null) {
        throw new AppError('CONFLICT', 'this passkey is your only way to sign in: add another passkey first');
      }
      const subject = encodeId('usr', personId);
      await recordAction(tx, actor, deps.now(), 'passkey.removed', { subject, detail: { left: rest.length } });
    });
    return { passkeyId };
  },
});

/** Only people have passkeys; commands and keys don't. Throws `NOT_FOUND`. */
function personIdOf({ kind, id }: Actor): string {
  if (kind === 'console' && id !== null) return id;
  throw new AppError('NOT_FOUND', 'only console users have passkeys');
}

const COUNT = 10;
/** 80 bits can't be guessed, however many attempts are allowed. */
const BYTES = 10;

/** Creates ten codes for safekeeping, such as `7k3m-9x2p-…`: 16 characters, without ones that look alike. */
export function createRecoveryCodes(random: (bytes: number) => Uint8Array): string[] {
  return Array.from({ length: COUNT }, () => {
    const text = base32crockford.encode(random(BYTES)).toLowerCase();
    return (text.match(/.{4}/g) ?? []).join('-');
  });
}

/** Returns the hash that the database stores, however the code was typed, or `null` if the text isn't a code. */
export function recoveryCodeHash(code: string): Buffer | null {
  const text = code.toLowerCase().replaceAll(/[\s-]/g, '').replaceAll('o', '0').replaceAll(/[il]/g, '1');
  return /^[0-9a-hjkmnp-tv-z]{16}$/.test(text) ? createHash('sha256').update(text).digest() : null;
}
