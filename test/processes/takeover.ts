import type pg from 'pg';
import { eventually } from '../support/service.ts';
import type { Fleet, Member } from './fleet.ts';

/** Milliseconds from a watcher's last sign of life to its successor's lease, and to the first block that the successor examined. */
export type Takeover = { leaseMs: number; progressMs: number };

/** The required limit after a watcher's death, of which its lease takes 8 s. */
export const TAKEOVER_LIMIT_MS = 10_000;
/** How long to wait for a takeover that comes too late. */
const PATIENCE_MS = 60_000;

/** Returns the watcher that acquired the lease last. */
export function leaderOf({ members }: Fleet): Member {
  const watchers = members.filter(({ role }) => role === 'watcher');
  const [leader] = watchers.sort((left, right) => acquiredMs(right) - acquiredMs(left));
  if (leader === undefined) throw new Error('there is no watcher');
  return leader;
}

function acquiredMs({ trace }: Member): number {
  const last = trace().findLast(({ statement, rows }) => statement === 'lease-acquire' && rows > 0);
  return last?.sentMs ?? 0;
}

/** Returns the current time and epoch by the database's clock, before something is done to the leader. */
export async function now(client: pg.Client): Promise<{ atMs: number; epoch: number }> {
  const { rows } = await client.query<{ at: string; epoch: number }>(
    `select extract(epoch from clock_timestamp()) * 1000 as at,
       (select max(epoch)::int from leases where name like 'watcher%') as epoch`,
  );
  return { atMs: Number(rows[0]?.at), epoch: rows[0]?.epoch ?? 0 };
}

/** Returns the epoch of the very first lease. */
export async function firstEpoch(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ epoch: number }>('select min(epoch)::int as epoch from witness.leases');
  return rows[0]?.epoch ?? 0;
}

/** Waits until another watcher holds the lease and has examined a block, as recorded in the database. */
export async function untilTakenOver(client: pg.Client, since: { atMs: number; epoch: number }): Promise<Takeover> {
  const { rows } = await eventually(
    () =>
      client.query<{ lease: string; progress: string }>(
        `select extract(epoch from l.at) * 1000 as lease, extract(epoch from p.at) * 1000 as progress
         from (select min(at) as at from witness.leases where epoch > $1) l
         cross join lateral (select min(at) as at from witness.progress where at > l.at) p where p.at is not null`,
        [since.epoch],
      ),
    (seen) => seen.rows.length > 0,
    PATIENCE_MS,
  );
  return { leaseMs: Number(rows[0]?.lease) - since.atMs, progressMs: Number(rows[0]?.progress) - since.atMs };
}

/**
 * Resumes a watcher that was stopped beyond its lease, and waits until it notices. Returns the changes that it made in the database before
 * it held the lease again, which must be empty. Statements sent before it was stopped were in time.
 */
export async function resumeFenced(watcher: Member): Promise<string[]> {
  const resumedMs = Date.now();
  watcher.process.signal('SIGCONT');
  await eventually(
    () => watcher.trace().some(({ sentMs, rows }) => sentMs >= resumedMs && rows === 0),
    (isKnown) => isKnown,
    PATIENCE_MS,
  );
  const after = watcher.trace().filter(({ sentMs }) => sentMs >= resumedMs);
  const again = after.findIndex(({ statement, rows }) => statement === 'lease-acquire' && rows > 0);
  return (again < 0 ? after : after.slice(0, again))
    .filter(({ rows }) => rows > 0)
    .map(({ statement, rows }) => `the fenced watcher changed ${rows} rows by ${statement}`);
}
