import { type UnixMs, unixMs } from '../domain/time.ts';
import { findOverdue } from '../store/ledger/invoice-changes.ts';
import { recordChanges } from './record-changes.ts';
import { type Watching, withCursor } from './watching.ts';

/** A transaction expires at most this many, so that a long backlog does not hold the cursor's lock for seconds. */
const BATCH = 500;

/**
 * Expires pending invoices by the chain's clock: those whose deadline is at or before the newest examined block. While
 * no block is examined the clock stands still, so nothing expires. Returns how many expired; call again at `BATCH`.
 * `sightedTime`: time of the newest block whose transfers are all known and sighted; nothing expires past it. Error: `LEASE_LOST`.
 */
export async function expireInvoices(
  watching: Watching,
  detectedTime: UnixMs,
): Promise<{ expired: number; isMoreLeft: boolean }> {
  // Most blocks expire nothing, and then nothing is locked.
  const overdue = await findOverdue(watching.db, watching.network, detectedTime, 1);
  if (overdue.length === 0) return { expired: 0, isMoreLeft: false };
  return withCursor(watching, async (tx, { head }) => {
    const clock = unixMs(Math.min(head.time, detectedTime));
    const invoices = await findOverdue(tx, watching.network, clock, BATCH);
    const changes = invoices.map((invoice) => ({
      invoice,
      change: { kind: 'clock-passed', clock } as const,
      transaction: null,
      transferId: null,
    }));
    await recordChanges(watching, tx, changes, head.number);
    return { expired: invoices.length, isMoreLeft: invoices.length === BATCH };
  });
}
