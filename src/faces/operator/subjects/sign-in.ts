import { createHash } from 'node:crypto';
import { base32crockford } from '@scure/base';
import { notFound } from '../../../core/domain/errors.ts';
import { encodeId, NIL_UUID } from '../../../core/domain/ids.ts';
import { type UnixMs, unixMs } from '../../../core/domain/time.ts';
import type { Encrypted, KeyRing } from '../../../core/runtime/key-ring.ts';
import {
  findFactors,
  lockFactors,
  PERSON_SHAPE,
  PERSON_SOURCES,
  type Person,
  type PersonFactors,
  personOf,
} from '../../../core/store/access/people.ts';
import type { Database, Sql } from '../../../core/store/db/database.ts';
import { answerOf, attemptOf, commandOf, conditionOf } from '../../../core/store/db/rows-of.ts';
import { hexSeal, sealColumn, sealOf } from '../../../core/store/db/seal.ts';
import { SEALED_INVITATION, SEALED_PERSON, SEALED_RECOVERY_CODE } from '../../../core/store/db/sealed-tables.ts';
import { text as column, group, isAsSealed, listColumns } from '../../../core/store/db/statement.ts';
import type { ActionName } from '../actions.ts';
import type { Actor } from '../actor.ts';
import { FieldError } from '../input/problems.ts';
import {
  hashPassword,
  isPassword,
  MAX_PASSWORD_BYTES,
  passwordProblem,
  type SignInLimits,
  TooBusy,
} from '../people/password.ts';
import { recordAction } from '../record-actions.ts';
import { type NewPasskey, passkeyCreation, passkeyRequest, readPasskey, verifyPasskey } from './passkeys.ts';
import { hashToken, loginOf } from './people.ts';
import {
  type From,
  openSession,
  personActor,
  type Session,
  type StartedSession,
  steppedUpUntil,
  stepUpSession,
} from './sessions.ts';
import { offerTotp, proveTotp, sealTotp, takeTotp } from './totp.ts';

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

/** Stores a person's password and encrypted TOTP secret. `step` is the time step of the code that confirmed the secret. */
const storePassword = commandOf(
  'person-password',
  `update people set password_hash = $2, master_key_id = $3, totp_sealed = $4, totp_step = $5, misses = 0, mac = $6 where id = $1`,
  (person: Person, { hash, totp, step }: { hash: string; totp: Encrypted; step: number }) => [
    ...[person.id, hash, totp.masterKeyId, totp.sealed, step],
    sealOf(SEALED_PERSON, { ...personOf(person), passwordHash: hash, totpSealed: totp.sealed }),
  ],
);

/**
 * Records a failed code. A person may fail `most` times in a row, and after that once every `everySeconds` seconds. Returns `false` if no
 * attempts are left.
 */
const takeMiss = attemptOf(
  'person-take-miss',
  `update people p set misses = least(b.misses + 1, 1000), missed_at = $2
   from (select id, greatest(0, misses - floor(greatest(0, extract(epoch from $2::timestamptz - coalesce(missed_at, $2))) / $4::int))::int as misses
     from people where id = $1 and removed_at is null for update) b
   where p.id = b.id and b.misses < $3`,
  (id: string, now: UnixMs, { most, everySeconds }: { most: number; everySeconds: number }) => [
    ...[id, new Date(now), most, everySeconds],
  ],
);

const open = {
  kind: column<'invite' | 'reset'>(),
  expiresAt: 'timestamptz',
  isSound: isAsSealed(SEALED_INVITATION),
  person: group(PERSON_SHAPE),
} as const;

/** Returns an open invitation with its person, unless either row was inserted without the master key. */
const findInvitation = answerOf(
  'invitation-find',
  open,
  `select ${listColumns(open, 'i.', { isSound: sealColumn(SEALED_INVITATION, 'i.'), person: PERSON_SOURCES })} from invitations i join people p on p.id = i.person_id
   where i.sha256 = $1 and i.ended_at is null and i.expires_at > $2 and p.removed_at is null`,
  (sha256: Buffer, now: UnixMs) => [sha256, new Date(now)],
  (rows) => rows.filter(({ isSound, person }) => isSound && person.isSound)[0] ?? null,
);

/** Redeems an invitation. Returns `false` if the invitation was already redeemed or has ended. */
const consumeInvitation = attemptOf(
  'invitation-take',
  'update invitations set ended_at = $2, mac = null where sha256 = $1 and ended_at is null and expires_at > $2',
  (sha256: Buffer, now: UnixMs) => [sha256, new Date(now)],
);

const insertCodes = commandOf(
  'recovery-code-insert',
  `insert into recovery_codes (sha256, person_id, created_at, mac)
   select decode(code, 'hex'), $1, $4, decode(mac, 'hex') from unnest($2::text[], $3::text[]) as _ (code, mac)`,
  (personId: string, codes: readonly Buffer[], macs: readonly (string | null)[], now: UnixMs) => [
    ...[personId, codes.map((code) => code.toString('hex')), macs, new Date(now)],
  ],
);

/** Stores the SHA-256 hashes of a person's recovery codes. */
async function insertRecoveryCodes(tx: Sql, personId: string, codes: readonly Buffer[], now: UnixMs): Promise<void> {
  const sealer = await tx.sealer();
  const macs = codes.map((sha256) => hexSeal(sealer, SEALED_RECOVERY_CODE, { sha256, personId }));
  await insertCodes(tx, personId, codes, macs, now);
}

const code = { sha256: 'bytea', personId: 'uuid', isSound: isAsSealed(SEALED_RECOVERY_CODE) } as const;
const isOneSound = (rows: readonly { isSound: boolean }[]) => rows.some(({ isSound }) => isSound);

/** Whether a person has this code and hasn't used it. */
const hasRecoveryCode = answerOf(
  'recovery-code-find',
  code,
  `select ${listColumns(code, '', { isSound: sealColumn(SEALED_RECOVERY_CODE, '') })} from recovery_codes
   where sha256 = $1 and person_id = $2 and ended_at is null`,
  (sha256: Buffer, personId: string) => [sha256, personId],
  isOneSound,
);

/** Uses up a recovery code. Returns `false` if the person has no such code. */
const consumeRecoveryCode = answerOf(
  'recovery-code-take',
  code,
  `update recovery_codes c set ended_at = $3, mac = null
   from (select sha256, person_id, ended_at, mac from recovery_codes
     where sha256 = $1 and person_id = $2 and ended_at is null for update) b
   where c.sha256 = b.sha256 returning ${listColumns(code, 'b.', { isSound: sealColumn(SEALED_RECOVERY_CODE, 'b.') })}`,
  (sha256: Buffer, personId: string, now: UnixMs) => [sha256, personId, new Date(now)],
  isOneSound,
);

/** Whether a person has signed in from a network since a given time. The query takes equally long for an unknown person. */
const hasSignedInFrom = conditionOf(
  'session-network-known',
  'exists (select from sessions where person_id = $1 and client_network = $2 and created_at > $3)',
  (personId: string, network: string, since: UnixMs) => [personId, network, new Date(since)],
);

/** Deletes sessions that began before a given time, and invitations and challenges that ended before then, up to 1,000 of each. */
const forgetOldSessions = commandOf('session-forget-old', 'select from forget_old_sessions($1)', (before: UnixMs) => [
  new Date(before),
]);

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
    if (person === null || !(await verified.consume(tx, deps.now()))) return REFUSED;
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
  if (await takeTotp(tx, { keyRing, now }, person, code)) return 'totp';
  const subject = encodeId('usr', person.id);
  await recordAction(tx, actor, now(), 'session.refused', { subject, detail: {} });
  return null;
}

/**
 * Reads an invitation without using it up so that link previews in chats do no harm. Returns `null` if it has ended or never existed.
 * `passkey` is `null` if browsers can't have one, such as at an IP address.
 */
export async function openInvitation(deps: SignInDeps, token: string) {
  const found = await findInvitation(deps.db, hashToken(token), deps.now());
  if (found === null) return null;
  const { person, kind, expiresAt } = found;
  return {
    ...{ person, kind, expiresAt },
    passkey: await passkeyCreation(deps, person, invitationPurpose(token)),
    totp: offerTotp(deps.keyRing, token, {
      login: person.login,
      issuer: `Quittance ${new URL(deps.consoleUrl).host}`,
    }),
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
  notFound`this invitation is no longer valid: it was used, is older than 15 minutes, or was replaced by a newer invitation. Ask for a new link`;

const invitationPurpose = (token: string) => ['invitation', hashToken(token).toString('hex')];

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
  const app = proveTotp(keyRing, token, code, now());
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
      const isTaken = (await lockFactors(tx, person.id)) !== null && (await verified.consume(tx, deps.now()));
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
