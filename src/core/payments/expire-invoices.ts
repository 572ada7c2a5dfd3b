import { type UnixMs, unixMs } from '../domain/time.ts';
import { keepNewest } from '../runtime/keep-newest.ts';
import { backoffMs } from '../runtime/loop.ts';
import { reasonOf } from '../runtime/reason-of.ts';
import type { LeftOut } from '../store/db/seal.ts';
import { findOverdue, recordChanges } from './record-changes.ts';
import { type Watching, withCursorApart } from './watching.ts';

/** Maximum number of invoices per transaction, so that a long backlog doesn't hold the cursor's lock for seconds. */
const BATCH = 500;

/**
 * Expires pending invoices by the chain's clock, if their deadline isn't later than the newest examined block. While no blocks are being
 * examined, this clock stops, so nothing expires. Returns how many have expired. Call it again as long as `isMoreLeft` is true.
 * `detectedTime` is the time of the newest block whose transfers are all known and sighted; invoices with a later deadline don't expire.
 * `held` contains invoices that couldn't expire and are retried later. Throws `LEASE_LOST`.
 */
export async function expireInvoices(
  watching: Watching,
  detectedTime: UnixMs,
  held: HeldBack,
): Promise<{ expired: number; isMoreLeft: boolean }> {
  const { db, network } = watching;
  const without = held.resting();
  // Most blocks don't expire anything, so check first, without taking a lock.
  const found: LeftOut[] = [];
  const overdue = await findOverdue(db, network, { clock: detectedTime, limit: 1, without }, found);
  if (overdue.length + found.length === 0) {
    held.note(new Map(), [], true);
    return { expired: 0, isMoreLeft: false };
  }
  const { tried, failed } = await withCursorApart(watching, async (tx, { head }, write) => {
    const clock = unixMs(Math.min(head.time, detectedTime));
    const unsound: LeftOut[] = [];
    const invoices = await findOverdue(tx, network, { clock, limit: BATCH, without }, unsound);
    const changes = invoices.map((invoice) => ({
      invoice,
      change: { kind: 'clock-passed', clock } as const,
      transaction: null,
      transferId: null,
    }));
    const refused = await write(tx, changes, (some) => recordChanges(watching, tx, [...some], head.number));
    const reasons = new Map([
      ...unsound.map(({ row, error }) => [String(row['id']), error.message] as const),
      ...refused.map(({ item, error }) => [item.invoice.id, reasonOf(error)] as const),
    ]);
    return {
      tried: [...invoices.map(({ id }) => id), ...unsound.map(({ row }) => String(row['id']))],
      failed: reasons,
    };
  });
  const isFull = tried.length === BATCH;
  held.note(failed, tried, !isFull);
  const expired = tried.length - failed.size;
  return { expired, isMoreLeft: isFull && expired > 0 };
}

/**
 * Orders (UUIDs) that can't expire because their row fails its check or because the database refuses the change. Each is retried after a
 * pause.
 */
export type HeldBack = {
  /** Returns the orders that aren't due for a retry yet. */
  resting(): string[];
  list(): { invoiceId: string; reason: string }[];
  /** Records which of the orders that a round attempted have failed. `isWhole` means that no other orders were overdue. */
  note(failed: ReadonlyMap<string, string>, tried: readonly string[], isWhole: boolean): void;
};

/** With more orders than this, each round finds the oldest of them again, so other orders expire more slowly. */
const MAX_HELD_BACK = 10_000;
const HELD_BACK_PAUSES = { firstMs: 5000, longestMs: 300_000 };

export function createHeldBack(nowMs = () => performance.now()): HeldBack {
  const held = new Map<string, { reason: string; failures: number; untilMs: number }>();
  const isResting = ({ untilMs }: { untilMs: number }) => untilMs > nowMs();
  return {
    resting: () => [...held].flatMap(([id, entry]) => (isResting(entry) ? [id] : [])),
    list: () => [...held].map(([invoiceId, { reason }]) => ({ invoiceId, reason })),
    note: (failed, tried, isWhole) => {
      const gone = isWhole ? [...held].flatMap(([id, entry]) => (isResting(entry) ? [] : [id])) : tried;
      for (const id of gone) if (!failed.has(id)) held.delete(id);
      for (const [id, reason] of failed) {
        const failures = (held.get(id)?.failures ?? 0) + 1;
        keepNewest(
          held,
          id,
          { reason, failures, untilMs: nowMs() + backoffMs(failures, HELD_BACK_PAUSES) },
          MAX_HELD_BACK,
        );
      }
    },
  };
}
