import { decodeId, firstIdOf } from '../domain/ids.ts';
import type { MicroUsdt } from '../domain/money.ts';
import { MINUTE_MS, type UnixMs } from '../domain/time.ts';
import {
  DEFAULT_UNPAID_LIMITS,
  isUnderLimits,
  tightest,
  UNPAID_MS,
  type UnpaidLimits,
  type UnpaidRule,
} from '../domain/unpaid.ts';
import type { Loop } from '../runtime/loop.ts';
import { endAlarm, findAlarmSubjects } from '../store/chain/alarms.ts';
import type { Sql } from '../store/db/database.ts';
import { answerOf, rowOf } from '../store/db/rows-of.ts';
import { sealColumn } from '../store/db/seal.ts';
import { SEALED_LIMITS } from '../store/db/sealed-tables.ts';
import { count, isAsSealed, listColumns, micro, type Row } from '../store/db/statement.ts';
import { type Leading, loopWhileLeading, whileLeading } from './watching.ts';

const limits = {
  id: 'uuid',
  network: 'text',
  maxUnpaid: 'int4?',
  maxUnpaidPerMinute: 'int4?',
  isSound: isAsSealed(SEALED_LIMITS),
} as const;

/**
 * Returns a project's limits, or the defaults if its limits were changed directly in the database. Returns `null` if the project doesn't
 * exist.
 */
const findUnpaidLimits = answerOf(
  'unpaid-limits',
  limits,
  `select ${listColumns(limits, 'p.', { isSound: sealColumn(SEALED_LIMITS, 'p.') })} from projects p where p.id = $1`,
  (projectId: string) => [projectId],
  ([row]): UnpaidLimits | null => {
    if (row === undefined) return null;
    const { maxUnpaid, maxUnpaidPerMinute } = row;
    return row.isSound ? { maxUnpaid, maxUnpaidPerMinute } : DEFAULT_UNPAID_LIMITS;
  },
);

// Ids contain the time of their creation, so the latest invoices are a single range of the primary key, read backwards. Counting stops at
// the limits, so a flood of orders can't make it slow. The range has an end, because after a clock is set back, all invoices from before
// would count as new.
const COUNTED = `select i.id, i.created_at, i.requested_micro from invoices i
   where i.project_id = $1 and i.id >= $2 and i.id < $3 and i.status in ('PENDING', 'EXPIRED')
   order by i.id desc limit $4`;
/** The clocks of other processes may be ahead by up to a minute. */
const countedIds = (now: UnixMs) => [firstIdOf(now - UNPAID_MS), firstIdOf(now + MINUTE_MS)];

const counts = {
  unpaid: count,
  unpaidLastMinute: count,
  oldestAt: 'timestamptz?',
  oldestLastMinuteAt: 'timestamptz?',
} as const;

type Unpaid = UnpaidLimits & Row<typeof counts>;

const NOTHING: Row<typeof counts> = { unpaid: 0, unpaidLastMinute: 0, oldestAt: null, oldestLastMinuteAt: null };

const countUpTo = answerOf(
  'unpaid-count',
  counts,
  `select count(*) as unpaid, count(*) filter (where i.id >= $5) as unpaid_last_minute,
     min(i.created_at) as oldest_at, min(i.created_at) filter (where i.id >= $5) as oldest_last_minute_at
   from (${COUNTED}) i`,
  (projectId: string, now: UnixMs, most: number) => [
    ...[projectId, ...countedIds(now), BigInt(most), firstIdOf(now - MINUTE_MS)],
  ],
  ([row]) => row ?? NOTHING,
);

const mostOf = ({ maxUnpaid, maxUnpaidPerMinute }: UnpaidLimits) =>
  maxUnpaid === null && maxUnpaidPerMinute === null ? null : Math.max(maxUnpaid ?? 0, maxUnpaidPerMinute ?? 0);

/**
 * Returns a project's limits and its number of unpaid invoices in the last 30 minutes, counting up to the higher limit. Returns `null` if
 * the project doesn't exist.
 */
async function countUnpaid(db: Sql, projectId: string, now: UnixMs): Promise<Unpaid | null> {
  const found = await findUnpaidLimits(db, projectId);
  if (found === null) return null;
  const most = mostOf(found);
  // Without limits nothing is counted.
  return { ...found, ...(most === null ? NOTHING : await countUpTo(db, projectId, now, most)) };
}

/** Returns the most frequent amount among these invoices, with its count, or `null` if there are none or nothing is counted. */
export async function findBusiestUnpaid(db: Sql, projectId: string, now: UnixMs) {
  const found = await findUnpaidLimits(db, projectId);
  const most = found && mostOf(found);
  return most === null ? null : findBusiest(db, projectId, now, most);
}

const findBusiest = rowOf(
  'unpaid-busiest-amount',
  { requestedMicro: micro<MicroUsdt>('int8'), count },
  `select i.requested_micro, count(*) as count from (${COUNTED}) i
   group by i.requested_micro order by count desc, i.requested_micro limit 1`,
  (projectId: string, now: UnixMs, most: number) => [projectId, ...countedIds(now), BigInt(most)],
);

/** A limit that was reached, and after how many seconds (at most 60) one more invoice may be possible. */
export type LimitReached = { rule: UnpaidRule; limit: number; retryAfterSeconds: number };

/** Call `leave` as soon as the admitted creation is over, whatever its result is. */
type Entered = { kind: 'pass'; leave(): void } | ({ kind: 'limited' } & LimitReached);

export type UnpaidGate = { enter(projectId: string): Promise<Entered> };

/** A count's maximum age. If counting is slow, it's done less often, so that it takes at most a twentieth of the time. */
const FRESH_MS = { least: 1000, most: 10_000 };
const REST_PER_LOOK = 20;
/** A payment may make room before the oldest invoices stop counting, so callers are never asked to wait for longer than this. */
const LONGEST_RETRY_S = 60;
const MAX_REMEMBERED = 10_000;

type Look = { unpaid: Unpaid; at: UnixMs; freshMs: number };
/**
 * `allowance`: how many requests may pass before the next count. `waiting`: callers that are waiting for one of the running creations to
 * finish.
 */
type Known = {
  last: Look | null;
  allowance: number;
  begun: number;
  ended: number;
  looking: Promise<void> | null;
  waiting: (() => void)[];
};

/**
 * Admits creations as long as a project is within its limits. The gate doesn't query the database for each creation, but once a second, and
 * whenever half of the remaining room is used up. Other processes' invoices become visible only with the next count, so n processes may
 * exceed a limit once, by (n − 1) / 2 of the remaining room.
 */
export function createUnpaidGate({ db, now }: { db: Sql; now(): UnixMs }): UnpaidGate {
  const projects = new Map<string, Known>();
  const look = async (projectId: string, known: Known) => {
    const { ended } = known;
    const [at, startMs] = [now(), performance.now()];
    const unpaid = await countUnpaid(db, projectId, at);
    if (unpaid === null) throw new Error(`project ${projectId} is missing, although projects are never deleted`);
    const restMs = (performance.now() - startMs) * REST_PER_LOOK;
    known.last = { unpaid, at, freshMs: Math.min(Math.max(FRESH_MS.least, restMs), FRESH_MS.most) };
    // The count may already include some creations that were running when it began. If they are counted twice, the only effect is another
    // count after they are over.
    const left = leftOf(unpaid) - (known.begun - ended);
    known.allowance = Math.max(0, Math.ceil(left / 2));
  };
  const lookOnce = (projectId: string, known: Known) => {
    known.looking ??= look(projectId, known).finally(() => {
      known.looking = null;
    });
    return known.looking;
  };
  return {
    enter: async (projectId) => {
      const known = recall(projects, projectId);
      for (;;) {
        const { last } = known;
        const isFresh = last !== null && Math.abs(now() - last.at) < last.freshMs;
        if (last !== null && known.allowance > 0) {
          // No request waits for this count. If it fails, the next request tries again.
          if (!isFresh) lookOnce(projectId, known).catch(() => undefined);
          known.allowance -= 1;
          known.begun += 1;
          const leave = () => {
            known.ended += 1;
            for (const wake of known.waiting.splice(0)) wake();
          };
          return { kind: 'pass', leave };
        }
        if (isFresh && leftOf(last.unpaid) <= 0) return limited(last.unpaid, now());
        // There's still room, but the running requests may use it up. Let them finish before any other request is admitted.
        if (isFresh && known.begun > known.ended) await new Promise<void>((wake) => known.waiting.push(wake));
        await lookOnce(projectId, known);
      }
    },
  };
}

function recall(projects: Map<string, Known>, projectId: string): Known {
  const found = projects.get(projectId);
  if (found !== undefined) return found;
  if (projects.size >= MAX_REMEMBERED) projects.clear();
  const known = { last: null, allowance: 0, begun: 0, ended: 0, looking: null, waiting: [] };
  projects.set(projectId, known);
  return known;
}

function leftOf(unpaid: Unpaid): number {
  return tightest(unpaid, unpaid)?.left ?? Number.POSITIVE_INFINITY;
}

function limited(unpaid: Unpaid, now: UnixMs): Entered {
  const reached = tightest(unpaid, unpaid);
  if (reached === null) throw new Error('a project without limits cannot reach a limit');
  const { rule, limit } = reached;
  const [oldestAt, windowMs] =
    rule === 'unpaid' ? [unpaid.oldestAt, UNPAID_MS] : [unpaid.oldestLastMinuteAt, MINUTE_MS];
  const waitMs = (oldestAt ?? now) + windowMs - now;
  const retryAfterSeconds = Math.min(Math.max(1, Math.ceil(waitMs / 1000)), LONGEST_RETRY_S);
  return { kind: 'limited', rule, limit, retryAfterSeconds };
}

const LOOK_MS = 5000;

/** Resolves the `order-flood` alarms for projects that are well below their limits again, while this process is the leader. */
export function startOrderFloodWatch(options: Leading): Loop {
  const { network, now, log, isLeader } = options;
  const db = whileLeading(options.db, network, isLeader);
  return loopWhileLeading(options, { name: 'order floods', pauseMs: LOOK_MS }, async (shouldEnd) => {
    for (const subject of await findAlarmSubjects(db, network, 'order-flood')) {
      if (shouldEnd()) break;
      const projectId = decodeId('prj', subject);
      const unpaid = projectId === null ? null : await countUnpaid(db, projectId, now());
      if (unpaid !== null && !isUnderLimits(unpaid, unpaid)) continue;
      await endAlarm({ db, log }, 'order-flood', network, subject);
    }
  });
}
