import { encodeId, uuidV7 } from '../../../core/domain/ids.ts';
import { type UnixMs, unixMs } from '../../../core/domain/time.ts';
import { Type } from '../../../core/runtime/type.ts';
import { PERSON_SHAPE, PERSON_SOURCES, type Person } from '../../../core/store/access/people.ts';
import type { Database, Sql } from '../../../core/store/db/database.ts';
import { answerOf, commandOf, rowOf } from '../../../core/store/db/rows-of.ts';
import { sealColumn, sealOf } from '../../../core/store/db/seal.ts';
import { SEALED_SESSION } from '../../../core/store/db/sealed-tables.ts';
import { text as column, group, isAsSealed, listColumns, type Row } from '../../../core/store/db/statement.ts';
import { type Actor, ROLES } from '../actor.ts';
import { columnsText } from '../command-words.ts';
import { choice, id, maybe, of, type Shown, show, text, time } from '../fields.ts';
import { noSuch, readId } from '../input/readers.ts';
import { localOperation } from '../operation.ts';
import { argument, BY, line } from '../option.ts';
import { recordAction, recordActions } from '../record-actions.ts';
import { hashToken, selectPerson } from './people.ts';

const session = {
  id: 'uuid',
  proof: column<'passkey' | 'totp' | 'recovery-code'>(),
  createdAt: 'timestamptz',
  seenAt: 'timestamptz',
  steppedUpAt: 'timestamptz?',
  origin: 'text',
  userAgent: 'text?',
  isSound: isAsSealed(SEALED_SESSION),
  person: group(PERSON_SHAPE),
} as const;

/** A session, with its person's current state. `proof` is the factor that it was started with. */
type SessionRow = Omit<Row<typeof session>, 'isSound'>;

const SEAL = { isSound: sealColumn(SEALED_SESSION, 's.') };
const SESSION = `select ${listColumns(session, 's.', { ...SEAL, person: PERSON_SOURCES })} from sessions s join people p on p.id = s.person_id`;

/** The condition that the session hasn't ended and isn't older than the limits in parameters 1 (last use) and 2 (start). */
const LIVE = 's.ended_at is null and p.removed_at is null and s.seen_at > $1 and s.created_at > $2';

/** Drops each session that was inserted without the master key, or whose person was inserted without it. */
const soundOf = (rows: readonly Row<typeof session>[]) =>
  rows.filter(({ isSound, person }) => isSound && person.isSound);

type Since = { seenAfter: UnixMs; createdAfter: UnixMs };

const insertSession = commandOf(
  'session-insert',
  `insert into sessions (id, sha256, person_id, proof, created_at, seen_at, origin, client_network, user_agent, mac)
   values ($1, $2, $3, $4, $5, $5, $6, $7, $8, $9)`,
  (sha256: Buffer, { id, personId, proof, createdAt, origin, network, userAgent }: NewSession) => [
    id,
    sha256,
    personId,
    proof,
    new Date(createdAt),
    origin,
    network,
    userAgent,
    sealOf(SEALED_SESSION, { id, sha256, personId, proof, createdAt, steppedUpAt: null }),
  ],
);

type NewSession = Pick<SessionRow, 'id' | 'proof' | 'createdAt' | 'origin' | 'userAgent'> & {
  personId: string;
  network: string;
};

/** Returns the live session with this token, given by its SHA-256. */
const findLiveSession = answerOf(
  'session-find',
  session,
  `${SESSION} where s.sha256 = $3 and ${LIVE}`,
  (sha256: Buffer, { seenAfter, createdAfter }: Since) => [new Date(seenAfter), new Date(createdAfter), sha256],
  (rows) => soundOf(rows)[0] ?? null,
);

/** Returns the live sessions of one person or of everyone, newest first, at most 1,000. */
const listLiveSessions = answerOf(
  'session-list',
  session,
  `${SESSION} where ($3::uuid is null or s.person_id = $3) and ${LIVE} order by s.seen_at desc, s.id limit 1000`,
  (personId: string | null, { seenAfter, createdAfter }: Since) => [
    ...[new Date(seenAfter), new Date(createdAfter), personId],
  ],
  soundOf,
);

/** Records that a session was used, unless a recent use is already recorded. */
const touchSession = commandOf(
  'session-touch',
  'update sessions set seen_at = $2 where id = $1 and ended_at is null and seen_at <= $3',
  (id: string, { now, unlessAfter }: { now: UnixMs; unlessAfter: UnixMs }) => [
    ...[id, new Date(now), new Date(unlessAfter)],
  ],
);

/** Ends a session, optionally only if it belongs to a person. Returns `null` if no such session is open. */
const endSessionRow = rowOf(
  'session-end',
  { id: 'uuid', personId: 'uuid' },
  `update sessions set ended_at = $2, mac = null where id = $1 and ended_at is null and ($3::uuid is null or person_id = $3)
   returning id, person_id`,
  (id: string, now: UnixMs, personId: string | null) => [id, new Date(now), personId],
);

/** Ends everyone's sessions. */
export const endAllSessions = commandOf(
  'session-end-everyone',
  'update sessions set ended_at = $1, mac = null where ended_at is null',
  (now: UnixMs) => [new Date(now)],
);

/** Ends a person's live sessions, except one. Returns their ids. */
const endOtherSessionRows = answerOf(
  'session-end-others',
  { id: 'uuid' },
  `update sessions set ended_at = $2, mac = null where person_id = $1 and id <> $3 and ended_at is null and seen_at > $4 and created_at > $5
   returning id`,
  (personId: string, now: UnixMs, { kept, seenAfter, createdAfter }: Since & { kept: string }) => [
    ...[personId, new Date(now), kept, new Date(seenAfter), new Date(createdAfter)],
  ],
  (rows) => rows.map(({ id }) => id),
);

const sealedColumns = {
  id: 'uuid',
  sha256: 'bytea',
  personId: 'uuid',
  proof: 'text',
  createdAt: 'timestamptz',
  isSound: isAsSealed(SEALED_SESSION),
} as const;

const lockSession = rowOf(
  'session-lock',
  sealedColumns,
  `select ${listColumns(sealedColumns, 's.', SEAL)} from sessions s where s.id = $1 and s.ended_at is null for update`,
  (id: string) => [id],
);

const noteStepUp = commandOf(
  'session-step-up',
  'update sessions set stepped_up_at = $2, mac = $3 where id = $1',
  (found: Row<typeof sealedColumns>, now: UnixMs) => [
    ...[found.id, new Date(now), sealOf(SEALED_SESSION, { ...found, steppedUpAt: now })],
  ],
);

/** Records a step-up, in a transaction. Returns `false` if the session has ended in the meantime. */
export async function stepUpSession(tx: Sql, id: string, now: UnixMs): Promise<boolean> {
  const found = await lockSession(tx, id);
  if (found?.isSound !== true) return false;
  await noteStepUp(tx, found, now);
  return true;
}

/** An unused session ends after twelve hours, and every session after seven days. */
const IDLE_MS = 12 * 3_600_000;
const LIFETIME_MS = 7 * 86_400_000;
/** How long a repeated proof of identity is valid. */
const STEP_UP_MS = 300_000;
/** Uses are recorded only once a minute so that not every request writes a row. */
const TOUCH_MS = 60_000;

const TOKEN_BYTES = 32;
/** The limits that the database schema sets. */
const MAX_TEXT = 200;

/** A request's origin. `network` is the part of its address that identifies a client in rate limits. */
export type From = { origin: string; network: string; userAgent: string | null; requestId: string | null };

/** A request's session, with the person's current rights. */
export type Session = { id: string; person: Person; steppedUpUntil: UnixMs | null };

/** A new session. The token is the cookie's value, and shown only once. */
export type StartedSession = { token: string; sessionId: string; person: Person; endsAt: UnixMs };

type Deps = { db: Sql; now(): UnixMs; random(bytes: number): Uint8Array };

/** Finds a token's session and records its use. Returns `null` if it has ended or never existed. */
export async function findSession({ db, now }: Pick<Deps, 'db' | 'now'>, token: string): Promise<Session | null> {
  if (!/^[\w-]{43}$/.test(token)) return null;
  const found = await findLiveSession(db, hashToken(token), liveSince(now()));
  if (found === null) return null;
  const unlessAfter = unixMs(now() - TOUCH_MS);
  if (found.seenAt <= unlessAfter) await touchSession(db, found.id, { now: now(), unlessAfter });
  return { id: found.id, person: found.person, steppedUpUntil: steppedUpUntil(found, now()) };
}

/** Returns the oldest start and last use that a live session may have. */
function liveSince(now: UnixMs) {
  return { seenAfter: unixMs(now - IDLE_MS), createdAfter: unixMs(now - LIFETIME_MS) };
}

/** Returns until when the repeated proof of identity is valid, or `null` if it has expired. */
export function steppedUpUntil({ steppedUpAt }: Pick<SessionRow, 'steppedUpAt'>, now: UnixMs): UnixMs | null {
  if (steppedUpAt === null || steppedUpAt > now) return null;
  const until = unixMs(steppedUpAt + STEP_UP_MS);
  return until > now ? until : null;
}

/** Returns when a session ends if it's not used again. */
function endOf({ seenAt, createdAt }: Pick<SessionRow, 'seenAt' | 'createdAt'>): UnixMs {
  return unixMs(Math.min(seenAt + IDLE_MS, createdAt + LIFETIME_MS));
}

/**
 * Opens a session and records it, in the same transaction as the person's proof of identity. The token is always new; one that the browser
 * already had is never reused.
 */
export async function openSession(
  tx: Sql,
  { now, random }: Deps,
  { person, from, proof }: { person: Person; from: From; proof: SessionRow['proof'] },
): Promise<StartedSession> {
  const createdAt = now();
  const id = uuidV7(createdAt, random(10));
  const token = Buffer.from(random(TOKEN_BYTES)).toString('base64url');
  await insertSession(tx, hashToken(token), {
    ...{ id, personId: person.id, proof, createdAt, userAgent: from.userAgent?.slice(0, MAX_TEXT) || null },
    ...{ origin: from.origin.slice(0, MAX_TEXT), network: from.network.slice(0, MAX_TEXT) },
  });
  const subject = encodeId('ses', id);
  await recordAction(tx, personActor(person, from), createdAt, 'session.started', { subject, detail: { proof } });
  return { token, sessionId: id, person, endsAt: endOf({ seenAt: createdAt, createdAt }) };
}

/** Returns a session's actor. `origin` is the network address of the request. */
export function personActor(
  { id, login, role, projects }: Person,
  { origin, requestId }: Pick<From, 'origin' | 'requestId'>,
): Actor {
  return { kind: 'console', name: login, role, id, projects, origin: origin.slice(0, MAX_TEXT), requestId };
}

/** `proof` is what the person signed in with. `endsAt` applies if the session isn't used again. */
const shown = {
  ...{ sessionId: of('id', id('ses')), personId: id('usr'), login: text, role: choice(ROLES) },
  ...{ proof: choice(['passkey', 'totp', 'recovery-code']), createdAt: time, seenAt: time, endsAt: time },
  ...{ steppedUpUntil: maybe(time), origin: text, userAgent: maybe(text) },
};
export type SessionView = Shown<typeof shown>;

const viewAll = (rows: readonly SessionRow[], now: UnixMs) => ({
  data: rows.map((row) => {
    const { id: personId, login, role } = row.person;
    return show(shown, {
      ...{ ...row, personId, login, role, endsAt: endOf(row), steppedUpUntil: steppedUpUntil(row, now) },
    });
  }),
});

/** Lists the sessions of everyone, or of one person (login or `usr_…`), most recently used first, at most 1,000. Throws `NOT_FOUND`. */
export const listSessions = localOperation({
  action: 'listSessions',
  command: 'session list',
  does: 'list active sessions, most recently used first',
  input: Type.Object({ person: line('<login>', 'only sessions of this user: the login, or usr_…') }),
  run: async ({ db, now }: { db: Sql; now(): UnixMs }, _actor, { person }) => {
    const id = person === undefined ? null : (await selectPerson(db, person)).id;
    return viewAll(await listLiveSessions(db, id, liveSince(now())), now());
  },
  print: ({ data }) => ({
    text: columnsText(data, [
      ['SESSION', 'sessionId'],
      ['LOGIN', 'login'],
      ['ROLE', 'role'],
      ['BY', 'proof'],
      ['SINCE', 'createdAt'],
      ['LAST SEEN', 'seenAt'],
      ['ENDS', 'endsAt'],
      ['FROM', 'origin'],
      ['WITH', 'userAgent'],
    ]),
    next: data.length === 0 && 'no one is signed in',
  }),
});

export const listOwnSessions = localOperation({
  action: 'listOwnSessions',
  input: Type.Object({}),
  run: async ({ db, now }: { db: Sql; now(): UnixMs }, actor, _wanted: object) =>
    actor.id === null ? { data: [] } : viewAll(await listLiveSessions(db, actor.id, liveSince(now())), now()),
});

type EndDeps = { db: Database; now(): UnixMs };

export const endSession = localOperation({
  action: 'endSession',
  command: 'session end',
  does: 'end a session immediately',
  by: BY,
  input: Type.Object({ sessionId: argument('<sessionId>', 'ses_…') }),
  run: (deps: EndDeps, actor, input) => end(deps, actor, input, null),
  print: ({ sessionId }) => ({ text: `ended ${sessionId}` }),
});

/** Ends one of the caller's own sessions, for example when signing out. */
export const endOwnSession = localOperation({
  action: 'endOwnSession',
  input: endSession.input,
  run: async (deps: EndDeps, actor, input: { sessionId: string }) => {
    if (actor.id === null) throw noSuch('ses', input.sessionId);
    return end(deps, actor, input, actor.id);
  },
});

/** Ends all of the caller's sessions except one, and returns how many. `keep` is that session's `ses_…`. Throws `INVALID_ARGUMENT`. */
export const endOtherSessions = localOperation({
  action: 'endOtherSessions',
  input: Type.Object({ keep: Type.String() }),
  run: async ({ db, now }: EndDeps, actor, { keep }) => {
    const { id: personId } = actor;
    if (personId === null) throw noSuch('ses', keep);
    const kept = readId('ses', keep);
    return db.transaction(async (tx) => {
      const ended = await endOtherSessionRows(tx, personId, now(), { kept, ...liveSince(now()) });
      const detail = { personId: encodeId('usr', personId) };
      const done = { projectId: null, action: 'session.ended', detail } as const;
      const actions = ended.map((id) => ({ ...done, subject: encodeId('ses', id) }));
      await recordActions(tx, actor, now(), actions);
      return { endedSessions: ended.length };
    });
  },
});

async function end({ db, now }: EndDeps, actor: Actor, { sessionId }: { sessionId: string }, personId: string | null) {
  const uuid = readId('ses', sessionId);
  return db.transaction(async (tx) => {
    const ended = await endSessionRow(tx, uuid, now(), personId);
    if (ended === null) throw noSuch('ses', sessionId);
    const detail = { personId: encodeId('usr', ended.personId) };
    await recordAction(tx, actor, now(), 'session.ended', { subject: sessionId, detail });
    return { sessionId, status: 'ended' as const };
  });
}

export const operations = [listSessions, endSession];
