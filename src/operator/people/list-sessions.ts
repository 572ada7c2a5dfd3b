import { AppError } from '../../domain/errors.ts';
import { decodeId, encodeId } from '../../domain/ids.ts';
import { say } from '../../domain/message.ts';
import { toIso, type UnixMs } from '../../domain/time.ts';
import { endOtherSessionRows, endSessionRow, listLiveSessions, type SessionRow } from '../../store/access/sessions.ts';
import type { Database, Sql } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';
import { clip } from '../input/clip.ts';
import { recordActions } from '../record-actions.ts';
import { selectPerson } from './select-person.ts';
import { endOf, isoOrNull, liveSince, steppedUpUntil } from './session.ts';
import type { EndedSessionsView, EndedSessionView, SessionListView, SessionView } from './views.ts';

type Deps = { db: Sql; now(): UnixMs };

/** The sessions of all people, or of one by login or `usr_…`, the last used first; at most 1,000. Errors: `NOT_FOUND`. */
export async function listSessions(
  { db, now }: Deps,
  _actor: Actor,
  { person }: { person?: string | undefined } = {},
): Promise<SessionListView> {
  const id = person === undefined ? null : (await selectPerson(db, person)).id;
  return view(await listLiveSessions(db, id, liveSince(now())), now());
}

/** Those of whoever asks. */
export async function listOwnSessions({ db, now }: Deps, actor: Actor): Promise<SessionListView> {
  return actor.id === null ? { data: [] } : view(await listLiveSessions(db, actor.id, liveSince(now())), now());
}

type EndDeps = { db: Database; now(): UnixMs };

/** Ends a session at once. `sessionId`: `ses_…`. Errors: `NOT_FOUND`, `INVALID_ARGUMENT`. */
export async function endSession(deps: EndDeps, actor: Actor, input: { sessionId: string }): Promise<EndedSessionView> {
  return end(deps, actor, input, null);
}

/** The same for a session of whoever asks, as it does to sign out. */
export async function endOwnSession(
  deps: EndDeps,
  actor: Actor,
  input: { sessionId: string },
): Promise<EndedSessionView> {
  if (actor.id === null) throw notThere(input.sessionId);
  return end(deps, actor, input, actor.id);
}

/** Ends all sessions of whoever asks but the one that asks, and says how many. `keep`: its `ses_…`. Errors: `INVALID_ARGUMENT`. */
export async function endOtherSessions(
  { db, now }: EndDeps,
  actor: Actor,
  { keep }: { keep: string },
): Promise<EndedSessionsView> {
  const { id: personId } = actor;
  if (personId === null) throw notThere(keep);
  const kept = readSessionId(keep);
  return db.transaction(async (tx) => {
    const ended = await endOtherSessionRows(tx, personId, now(), { kept, ...liveSince(now()) });
    const detail = { personId: encodeId('usr', personId) };
    const subjects = ended.map((id) => encodeId('ses', id));
    await recordActions(
      tx,
      actor,
      now(),
      subjects.map((subject) => ({ projectId: null, action: 'session.ended', subject, detail })),
    );
    return { endedSessions: ended.length };
  });
}

async function end(
  { db, now }: EndDeps,
  actor: Actor,
  { sessionId }: { sessionId: string },
  personId: string | null,
): Promise<EndedSessionView> {
  const uuid = readSessionId(sessionId);
  return db.transaction(async (tx) => {
    const ended = await endSessionRow(tx, uuid, now(), personId);
    if (ended === null) throw notThere(sessionId);
    const detail = { personId: encodeId('usr', ended.personId) };
    await recordActions(tx, actor, now(), [{ projectId: null, action: 'session.ended', subject: sessionId, detail }]);
    return { sessionId, status: 'ended' };
  });
}

function readSessionId(sessionId: string): string {
  const uuid = decodeId('ses', sessionId);
  if (uuid !== null) return uuid;
  throw new AppError(
    'INVALID_ARGUMENT',
    say`${clip(sessionId)} is not a session id: it is "ses_" and 26 characters, as "${{ command: 'session list' }}" shows it`,
  );
}

const notThere = (sessionId: string) =>
  new AppError(
    'NOT_FOUND',
    say`there is no session ${sessionId} that goes on: "${{ command: 'session list' }}" shows those there are`,
  );

function view(rows: readonly SessionRow[], now: UnixMs): SessionListView {
  return { data: rows.map((row) => toView(row, now)) };
}

function toView(row: SessionRow, now: UnixMs): SessionView {
  const { id, person, proof, createdAt, seenAt, origin, userAgent } = row;
  return {
    ...{ sessionId: encodeId('ses', id), personId: encodeId('usr', person.id), login: person.login, role: person.role },
    ...{ proof, createdAt: toIso(createdAt), seenAt: toIso(seenAt), endsAt: toIso(endOf(row)) },
    ...{ steppedUpUntil: isoOrNull(steppedUpUntil(row, now)), origin, userAgent },
  };
}
