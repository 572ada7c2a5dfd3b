import type { Network } from '../../domain/network.ts';
import type { Database, Sql } from '../db/database.ts';
import { attemptOf, commandOf, conditionOf } from '../db/rows-of.ts';
import { statement } from '../db/statement.ts';

/** The right to do a named job, which only one process can have at a time. `epoch` increases with every new holder (fencing token). */
export type Lease = { name: string; holder: string; epoch: bigint };

/** Returns the name of the lease for following a network. */
export function watcherLease(network: Network): string {
  return `watcher:${network}`;
}

/**
 * A lease that ends more than this many lease lengths from now was granted while the database's clock was ahead. Its holder either renews
 * it within seconds or is dead, so other processes don't have to wait for the recorded end. Waiting for the row's lock can't cause such an
 * end, because the longest wait is shorter.
 */
const MOST_TTLS = 4;

/** The limit in the database. Beyond this value, the epoch starts again, so that a forged value can't block a lease. */
const MOST_EPOCH = 1_000_000_000_000_000;

const acquire = statement(
  'lease-acquire',
  { epoch: 'int8' },
  `insert into leases as l (name, holder, epoch, expires_at)
   values ($1, $2, 1, now() + $3::int8 * interval '1 millisecond')
   on conflict (name) do update
     set holder = excluded.holder, epoch = case when l.epoch < ${MOST_EPOCH} then l.epoch + 1 else 1 end, expires_at = excluded.expires_at
     where l.expires_at <= now() or l.expires_at > now() + ${MOST_TTLS} * $3::int8 * interval '1 millisecond'
   returning epoch`,
);

/**
 * Acquires a free or expired lease. Returns `null` as long as another holder's lease is valid. All times are the database's. If its clock
 * is set back, a live holder may lose its lease to another process, but then the epoch prevents the old holder's writes.
 */
export async function acquireLease(db: Sql, name: string, holder: string, ttlMs: number): Promise<Lease | null> {
  const [row] = await db.run(acquire, [name, holder, ttlMs]);
  return row === undefined ? null : { name, holder, epoch: row.epoch };
}

/** Renews a lease. Returns `false` if the lease was lost. */
export const renewLease = attemptOf(
  'lease-renew',
  `update leases set expires_at = now() + $4::int8 * interval '1 millisecond'
   where name = $1 and holder = $2 and epoch = $3 and expires_at > now()`,
  (lease: Lease, ttlMs: number) => [lease.name, lease.holder, lease.epoch, ttlMs],
);

/** Releases a lease, so that a standby doesn't have to wait until it expires. */
export const releaseLease = commandOf(
  'lease-release',
  'update leases set expires_at = now() where name = $1 and holder = $2 and epoch = $3',
  (lease: Lease) => [lease.name, lease.holder, lease.epoch],
);

export const isLeaseHeld = conditionOf(
  'lease-held',
  'exists (select from leases where name = $1 and expires_at > now())',
  (name: string) => [name],
);

/**
 * Holds and renews a lease that only one process can have at a time. `isHeld` returns whether this process certainly holds the lease,
 * according to its own clock.
 */
export function holdLease(db: Database, name: string, holder: string, ttlMs: number) {
  let held: Lease | null = null;
  let surelyUntilMs = 0;
  const isHeld = () => held !== null && performance.now() < surelyUntilMs;
  return {
    isHeld,
    keep: async (): Promise<boolean> => {
      const askedMs = performance.now();
      if (held === null) held = await acquireLease(db, name, holder, ttlMs);
      else if (!(await renewLease(db, held, ttlMs))) held = null;
      if (held !== null) surelyUntilMs = askedMs + ttlMs;
      return isHeld();
    },
    release: async () => {
      if (held !== null) await releaseLease(db, held).catch(() => undefined);
    },
  };
}
