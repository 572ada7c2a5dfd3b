import { encodeId, uuidV7 } from '../../../core/domain/ids.ts';
import { type UnixMs, unixMs } from '../../../core/domain/time.ts';
import { Type } from '../../../core/runtime/type.ts';
import type { Person } from '../../../core/store/access/people.ts';
import {
  endOtherSessionRows,
  endSessionRow,
  findLiveSession,
  insertSession,
  listLiveSessions,
  type SessionRow,
  touchSession,
} from '../../../core/store/access/sessions.ts';
import type { Database, Sql } from '../../../core/store/db/database.ts';
import { type Actor, ROLES } from '../actor.ts';
import { columnsText } from '../command-words.ts';
import { choice, id, maybe, of, type Shown, show, text, time } from '../fields.ts';
import { noSuch, readId } from '../input/readers.ts';
import { localOperation } from '../operation.ts';
import { argument, BY, line } from '../option.ts';
import { recordAction, recordActions } from '../record-actions.ts';
import { hashToken, selectPerson } from './people.ts';

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

/** Lists the caller's sessions. */
export const listOwnSessions = localOperation({
  action: 'listOwnSessions',
  input: Type.Object({}),
  run: async ({ db, now }: { db: Sql; now(): UnixMs }, actor, _wanted: object) =>
    actor.id === null ? { data: [] } : viewAll(await listLiveSessions(db, actor.id, liveSince(now())), now()),
});

type EndDeps = { db: Database; now(): UnixMs };

/** Ends a session immediately. `sessionId` is `ses_…`. Throws `NOT_FOUND` or `INVALID_ARGUMENT`. */
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
