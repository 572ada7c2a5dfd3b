import { createHash } from 'node:crypto';
import { encodeId, uuidV7 } from '../../domain/ids.ts';
import { toIso, type UnixMs, unixMs } from '../../domain/time.ts';
import type { Person } from '../../store/access/people.ts';
import { findLiveSession, insertSession, type SessionRow, touchSession } from '../../store/access/sessions.ts';
import type { Sql } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';
import { recordActions } from '../record-actions.ts';

/** A session that nobody uses ends after twelve hours, and every one after seven days. */
const IDLE_MS = 12 * 3_600_000;
const LIFETIME_MS = 7 * 86_400_000;
/** How long a proof given again counts. */
const STEP_UP_MS = 300_000;
/** A use is noted to the minute. */
const TOUCH_MS = 60_000;

const TOKEN_BYTES = 32;
/** Bounds of the schema. */
const MAX_TEXT = 200;

/** Where a request comes from. `network`: the part of the address by which clients are counted. */
export type From = { origin: string; network: string; userAgent: string | null; requestId: string | null };

/** A session of a request. The person and its rights are as they are now. */
export type Session = { id: string; person: Person; steppedUpUntil: UnixMs | null };

/** A session that was just started. The token is the value of the cookie, and is shown this one time. */
export type StartedSession = { token: string; sessionId: string; person: Person; endsAt: UnixMs };

type Deps = { db: Sql; now(): UnixMs; random(bytes: number): Uint8Array };

/** The session of a token, which it also notes as used; `null`: it has ended, or there never was one. */
export async function findSession({ db, now }: Pick<Deps, 'db' | 'now'>, token: string): Promise<Session | null> {
  if (!/^[\w-]{43}$/.test(token)) return null;
  const found = await findLiveSession(db, hashOf(token), liveSince(now()));
  if (found === null) return null;
  const unlessAfter = unixMs(now() - TOUCH_MS);
  if (found.seenAt <= unlessAfter) await touchSession(db, found.id, { now: now(), unlessAfter });
  return { id: found.id, person: found.person, steppedUpUntil: steppedUpUntil(found, now()) };
}

/** Since when a session that is live must have been seen and begun. */
export function liveSince(now: UnixMs) {
  return { seenAfter: unixMs(now - IDLE_MS), createdAfter: unixMs(now - LIFETIME_MS) };
}

/** Until when a proof that was given again counts; `null`: it does not any more. */
export function steppedUpUntil({ steppedUpAt }: Pick<SessionRow, 'steppedUpAt'>, now: UnixMs): UnixMs | null {
  if (steppedUpAt === null || steppedUpAt > now) return null;
  const until = unixMs(steppedUpAt + STEP_UP_MS);
  return until > now ? until : null;
}

/** When a session ends if it is not used any more. */
export function endOf({ seenAt, createdAt }: Pick<SessionRow, 'seenAt' | 'createdAt'>): UnixMs {
  return unixMs(Math.min(seenAt + IDLE_MS, createdAt + LIFETIME_MS));
}

/**
 * Opens a session in the transaction in which the person has proved who it is, and records it. The token is always a new one: none that a browser
 * brings along is ever taken over.
 */
export async function openSession(
  tx: Sql,
  { now, random }: Deps,
  { person, from, proof }: { person: Person; from: From; proof: SessionRow['proof'] },
): Promise<StartedSession> {
  const createdAt = now();
  const id = uuidV7(createdAt, random(10));
  const token = Buffer.from(random(TOKEN_BYTES)).toString('base64url');
  await insertSession(tx, hashOf(token), {
    ...{ id, personId: person.id, proof, createdAt, userAgent: from.userAgent?.slice(0, MAX_TEXT) || null },
    ...{ origin: from.origin.slice(0, MAX_TEXT), network: from.network.slice(0, MAX_TEXT) },
  });
  await recordActions(tx, personActor(person, from), createdAt, [
    { projectId: null, action: 'session.started', subject: encodeId('ses', id), detail: { proof } },
  ]);
  return { token, sessionId: id, person, endsAt: endOf({ seenAt: createdAt, createdAt }) };
}

/** The actor of a session. `origin`: the network address of the request. */
export function personActor(
  { id, login, role, projects }: Person,
  { origin, requestId }: Pick<From, 'origin' | 'requestId'>,
): Actor {
  return { kind: 'console', name: login, role, id, projects, origin: origin.slice(0, MAX_TEXT), requestId };
}

/** A time of a session for a view. */
export const isoOrNull = (time: UnixMs | null) => time && toIso(time);

function hashOf(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
