import { createHash } from 'node:crypto';
import { toIso, type UnixMs, unixMs } from '../../domain/time.ts';
import { openKeyRing } from '../../runtime/open-key-ring.ts';
import type { Database } from '../../store/db/database.ts';
import { answerOf } from '../../store/db/rows-of.ts';
import { count } from '../../store/db/statement.ts';
import { findNewestSecrets } from '../../store/outbox/webhook-secrets.ts';
import { openEndpointSecrets } from '../../webhooks/endpoint-secrets.ts';
import type { Actor } from '../actor.ts';
import type { KeyDeps } from '../subjects/master-keys.ts';
import { viewListed } from './list-endpoints.ts';
import { selectEndpoint } from './select-endpoint.ts';
import type { ShownEndpointView } from './views.ts';

const DAY_MS = 86_400_000;

type Deps = KeyDeps & { db: Database };

/** An endpoint: how it does, what became of its deliveries of 24 hours, and by which secrets it signs. Errors: `INVALID_ARGUMENT`, `NOT_FOUND`. */
export async function showEndpoint(
  { db, now, config, note }: Deps,
  actor: Actor,
  { endpointId }: { endpointId: string },
): Promise<ShownEndpointView> {
  // Without the keys less can be told, but the rest is worth showing.
  const keyRing = await openKeyRing(config, { mayCreate: false, warn: note });
  return db.snapshot(async (tx) => {
    const at = now();
    const endpoint = await selectEndpoint(tx, actor, endpointId);
    const [listed] = await viewListed(tx, [endpoint], at);
    if (listed === undefined) throw new Error('an endpoint was not listed');
    const stored = (await findNewestSecrets(tx, endpoint.id)).filter(({ endsAt }) => endsAt === null || endsAt > at);
    const opened = keyRing === null ? [] : await openEndpointSecrets(keyRing, stored);
    const { oldest, ...day } = await findDay(tx, endpoint, unixMs(at - DAY_MS));
    return {
      ...{ ...listed, day: { ...day, isSample: day.looked >= MAX_LOOKED }, oldestUndelivered: oldest && toIso(oldest) },
      secrets: stored.map(({ createdAt, endsAt }, index) => {
        const each = opened[index];
        const fingerprint = each?.kind === 'ok' ? fingerprintOf(each.secret) : null;
        return { createdAt: toIso(createdAt), endsAt: endsAt && toIso(endsAt), fingerprint };
      }),
    };
  });
}

/** Tells secrets apart without showing them: the beginning of the SHA-256 of the text `whsec_…`, in hexadecimal. */
function fingerprintOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex').slice(0, 12);
}

/** Deliveries of a day that are counted at most; more are a sample of the newest. */
const MAX_LOOKED = 2000;
const MAX_WAITING = 10_000;

/** What became of the newest deliveries since a time, tests left out, and the oldest of those that wait. */
const findDay = answerOf(
  'endpoint-desk-day',
  { looked: count, delivered: count, waiting: count, dead: count, oldest: 'timestamptz?' },
  `select count(*) as looked, count(*) filter (where status = 'delivered') as delivered,
     count(*) filter (where status = 'pending') as waiting, count(*) filter (where status = 'dead') as dead,
     (select min(created_at) from (
       select created_at from deliveries where endpoint_id = $2 and status = 'pending' limit ${MAX_WAITING}) waits) as oldest
   from (
     select d.status
     from (select id, type, created_at from events where project_id = $1 order by position desc limit ${MAX_LOOKED}) e
     join deliveries d on d.event_id = e.id and d.endpoint_id = $2
     where e.created_at >= $3 and e.type <> 'ping') newest`,
  ({ projectId, id }: { projectId: string; id: string }, since: UnixMs) => [projectId, id, new Date(since)],
  ([row]) => row ?? { looked: 0, delivered: 0, waiting: 0, dead: 0, oldest: null },
);
