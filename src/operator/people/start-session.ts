import { encodeId, NIL_UUID } from '../../domain/ids.ts';
import { type UnixMs, unixMs } from '../../domain/time.ts';
import type { KeyRing } from '../../runtime/key-ring.ts';
import { hasRecoveryCode, takeRecoveryCode } from '../../store/access/invitations.ts';
import {
  findFactors,
  lockFactors,
  type PersonFactors,
  personOf,
  takeMiss,
  takeTotpStep,
} from '../../store/access/people.ts';
import { forgetOldSessions, hasSignedInFrom } from '../../store/access/sessions.ts';
import type { Database, Sql } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';
import { recordActions } from '../record-actions.ts';
import { passkeyRequest, takePasskey, verifyPasskey } from './passkey-proof.ts';
import { isPassword } from './password.ts';
import { MAX_PASSWORD_BYTES } from './password-problem.ts';
import { loginOf } from './read-person.ts';
import { recoveryCodeHash } from './recovery-codes.ts';
import { type From, openSession, personActor, type StartedSession } from './session.ts';
import { type SignInLimits, TooBusy } from './sign-in-limits.ts';
import { TOTP_CODE, totpStepOf } from './totp.ts';
import { openTotp } from './totp-secret.ts';

export type SignInDeps = {
  db: Database;
  keyRing: KeyRing;
  consoleUrl: string;
  limits: SignInLimits;
  now(): UnixMs;
  /** By which old sessions are deleted; that of `now` when absent. */
  certainNow?(): UnixMs;
  random(bytes: number): Uint8Array;
};

/** `code`: six digits of an authenticator app, or a recovery code. `passkey`: what the browser answered. */
export type SignIn = { passkey: unknown } | { login: string; password: string; code: string };

/** `refused` says no more, whatever was wrong. `limited`: nobody has looked at it. */
export type SignInOutcome =
  | ({ kind: 'started' } & StartedSession)
  | { kind: 'refused' }
  | { kind: 'limited'; retryAfterSeconds: number };

/** What is shown before somebody has signed in: a request for any passkey of this console. */
const SIGN_IN = ['sign-in'] as const;
export const requestSignIn = (deps: SignInDeps) => passkeyRequest(deps, null, SIGN_IN);

/** A network from which somebody has signed in is known this long; so long sessions are kept. */
const KNOWN_MS = 90 * 86_400_000;

/** Wrong codes beside the right password: ten at once, then one in half an hour. Who guesses on needs decades. */
const MISSES = { most: 10, everySeconds: 1800 };

const REFUSED = { kind: 'refused' } as const;

/** Signs a person in, by a passkey or by password and code. */
export async function startSession(deps: SignInDeps, from: From, signIn: SignIn): Promise<SignInOutcome> {
  const outcome =
    'passkey' in signIn ? await byPasskey(deps, from, signIn.passkey) : await byPassword(deps, from, signIn);
  // Whoever signs in clears away: this way the work is bound to what people do, and strangers cause none.
  if (outcome.kind === 'started')
    await forgetOldSessions(deps.db, unixMs(Math.max(0, (deps.certainNow ?? deps.now)() - KNOWN_MS)));
  return outcome;
}

async function byPasskey(deps: SignInDeps, from: From, response: unknown): Promise<SignInOutcome> {
  const verified = await verifyPasskey(deps, SIGN_IN, response);
  if (verified === null) return REFUSED;
  return deps.db.transaction(async (tx) => {
    // Locked first, as by whoever takes from the person what it signs in with.
    const person = await lockFactors(tx, verified.person.id);
    if (person === null || !(await takePasskey(tx, verified, deps.now()))) return REFUSED;
    return { kind: 'started', ...(await openSession(tx, deps, { person: personOf(person), from, proof: 'passkey' })) };
  });
}

/** The same statements and one run of scrypt for every login and every password, known or not. */
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
  // Nobody guesses one, so a stranger who uses up what a network may try does not keep out who has one.
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
 * Takes the code of an app or a recovery code, once. `null`: it is wrong, was taken before, or too many were wrong, which keeps no recovery code
 * out. A wrong one is recorded: whoever sent it has the password, or the session. The caller has locked the person.
 */
export async function takeCode(
  tx: Sql,
  { keyRing, now }: CodeDeps,
  actor: Actor,
  { person, code }: { person: PersonFactors; code: string },
): Promise<'totp' | 'recovery-code' | null> {
  const recovery = recoveryCodeHash(code);
  if (recovery !== null && (await takeRecoveryCode(tx, recovery, person.id, now()))) return 'recovery-code';
  // Taken before it is looked at, so that many at once are no more than one after the other.
  if (!(await takeMiss(tx, person.id, now(), MISSES))) return null;
  if (TOTP_CODE.test(code) && (await takeTotp(tx, { keyRing, now }, person, code))) return 'totp';
  const subject = encodeId('usr', person.id);
  await recordActions(tx, actor, now(), [{ projectId: null, action: 'session.refused', subject, detail: {} }]);
  return null;
}

async function takeTotp(tx: Sql, { keyRing, now }: CodeDeps, person: PersonFactors, code: string) {
  const secret = await openTotp(keyRing, person);
  const step = secret && totpStepOf(secret, code, now());
  return step !== null && takeTotpStep(tx, person.id, step);
}
