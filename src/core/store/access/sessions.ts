import type { UnixMs } from '../../domain/time.ts';
import type { Sql } from '../db/database.ts';
import { answerOf, attemptOf, changesOf, commandOf, conditionOf, rowOf } from '../db/rows-of.ts';
import { sealColumn, sealOf } from '../db/seal.ts';
import { SEALED_SESSION } from '../db/sealed-tables.ts';
import { group, isAsSealed, listColumns, type Row, text } from '../db/statement.ts';
import { PERSON_SHAPE, PERSON_SOURCES } from './people.ts';

const session = {
  id: 'uuid',
  proof: text<'passkey' | 'totp' | 'recovery-code'>(),
  createdAt: 'timestamptz',
  seenAt: 'timestamptz',
  steppedUpAt: 'timestamptz?',
  origin: 'text',
  userAgent: 'text?',
  isSound: isAsSealed(SEALED_SESSION),
  person: group(PERSON_SHAPE),
} as const;

/** A session, with its person's current state. `proof` is the factor that it was started with. */
export type SessionRow = Omit<Row<typeof session>, 'isSound'>;

const SEAL = { isSound: sealColumn(SEALED_SESSION, 's.') };
const SESSION = `select ${listColumns(session, 's.', { ...SEAL, person: PERSON_SOURCES })} from sessions s join people p on p.id = s.person_id`;

/** The condition that the session hasn't ended and isn't older than the limits in parameters 1 (last use) and 2 (start). */
const LIVE = 's.ended_at is null and p.removed_at is null and s.seen_at > $1 and s.created_at > $2';

/** Drops each session that was inserted without the master key, or whose person was inserted without it. */
const soundOf = (rows: readonly Row<typeof session>[]) =>
  rows.filter(({ isSound, person }) => isSound && person.isSound);

type Since = { seenAfter: UnixMs; createdAfter: UnixMs };

export const insertSession = commandOf(
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
export const findLiveSession = answerOf(
  'session-find',
  session,
  `${SESSION} where s.sha256 = $3 and ${LIVE}`,
  (sha256: Buffer, { seenAfter, createdAfter }: Since) => [new Date(seenAfter), new Date(createdAfter), sha256],
  (rows) => soundOf(rows)[0] ?? null,
);

/** Returns the live sessions of one person or of everyone, newest first, at most 1,000. */
export const listLiveSessions = answerOf(
  'session-list',
  session,
  `${SESSION} where ($3::uuid is null or s.person_id = $3) and ${LIVE} order by s.seen_at desc, s.id limit 1000`,
  (personId: string | null, { seenAfter, createdAfter }: Since) => [
    ...[new Date(seenAfter), new Date(createdAfter), personId],
  ],
  soundOf,
);

/** Records that a session was used, unless a recent use is already recorded. */
export const touchSession = commandOf(
  'session-touch',
  'update sessions set seen_at = $2 where id = $1 and ended_at is null and seen_at <= $3',
  (id: string, { now, unlessAfter }: { now: UnixMs; unlessAfter: UnixMs }) => [
    ...[id, new Date(now), new Date(unlessAfter)],
  ],
);

/** Ends a session, optionally only if it belongs to a person. Returns `null` if no such session is open. */
export const endSessionRow = rowOf(
  'session-end',
  { id: 'uuid', personId: 'uuid' },
  `update sessions set ended_at = $2, mac = null where id = $1 and ended_at is null and ($3::uuid is null or person_id = $3)
   returning id, person_id`,
  (id: string, now: UnixMs, personId: string | null) => [id, new Date(now), personId],
);

/** Ends all of a person's sessions. Returns how many there were. */
export const endSessionsOf = changesOf(
  'session-end-all',
  'update sessions set ended_at = $2, mac = null where person_id = $1 and ended_at is null',
  (personId: string, now: UnixMs) => [personId, new Date(now)],
);

/** Ends everyone's sessions. */
export const endAllSessions = commandOf(
  'session-end-everyone',
  'update sessions set ended_at = $1, mac = null where ended_at is null',
  (now: UnixMs) => [new Date(now)],
);

/** Ends a person's live sessions, except one. Returns their ids. */
export const endOtherSessionRows = answerOf(
  'session-end-others',
  { id: 'uuid' },
  `update sessions set ended_at = $2, mac = null where person_id = $1 and id <> $3 and ended_at is null and seen_at > $4 and created_at > $5
   returning id`,
  (personId: string, now: UnixMs, { kept, seenAfter, createdAfter }: Since & { kept: string }) => [
    ...[personId, new Date(now), kept, new Date(seenAfter), new Date(createdAfter)],
  ],
  (rows) => rows.map(({ id }) => id),
);

const content = {
  id: 'uuid',
  sha256: 'bytea',
  personId: 'uuid',
  proof: 'text',
  createdAt: 'timestamptz',
  isSound: isAsSealed(SEALED_SESSION),
} as const;

const lockSession = rowOf(
  'session-lock',
  content,
  `select ${listColumns(content, 's.', SEAL)} from sessions s where s.id = $1 and s.ended_at is null for update`,
  (id: string) => [id],
);

const noteStepUp = commandOf(
  'session-step-up',
  'update sessions set stepped_up_at = $2, mac = $3 where id = $1',
  (found: Row<typeof content>, now: UnixMs) => [
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

/** Whether a person has signed in from a network since a given time. The query takes equally long for an unknown person. */
export const hasSignedInFrom = conditionOf(
  'session-network-known',
  'exists (select from sessions where person_id = $1 and client_network = $2 and created_at > $3)',
  (personId: string, network: string, since: UnixMs) => [personId, network, new Date(since)],
);

/** Marks a challenge as used. Returns `false` if the challenge was already used. */
export const spendChallenge = attemptOf(
  'challenge-spend',
  'insert into spent_challenges (sha256, expires_at) values ($1, $2) on conflict do nothing',
  (sha256: Buffer, expiresAt: UnixMs) => [sha256, new Date(expiresAt)],
);

/** Deletes sessions that began before a given time, and invitations and challenges that ended before then, up to 1,000 of each. */
export const forgetOldSessions = commandOf(
  'session-forget-old',
  'select from forget_old_sessions($1)',
  (before: UnixMs) => [new Date(before)],
);
