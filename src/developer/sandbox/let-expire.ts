import { setTimeout } from 'node:timers/promises';
import { AppError } from '../../core/domain/errors.ts';
import { unixMs } from '../../core/domain/time.ts';
import { systemClock } from '../../core/runtime/clock.ts';
import type { Database } from '../../core/store/db/database.ts';
import type { Payable } from './find-payable.ts';
import { bringDeadlineForward } from './sandbox-project.ts';

const POLL_MS = 50;

/** There is a block at least every minute, and the watcher reads it a moment later. */
const EXPIRY_TIMEOUT_MS = 150_000;

/**
 * Brings an invoice's deadline forward to now and waits until the next block makes it EXPIRED. Throws `CONFLICT` if the invoice already has
 * its payment, or `SANDBOX_REFUSED` if it doesn't expire.
 */
export async function letExpire(db: Database, { checkoutToken, reference, readStatus }: Payable): Promise<void> {
  await bringDeadlineForward(db, checkoutToken, unixMs(systemClock.now()));
  const deadlineMs = performance.now() + EXPIRY_TIMEOUT_MS;
  for (; performance.now() < deadlineMs; await setTimeout(POLL_MS)) {
    const status = await readStatus();
    if (status === 'EXPIRED') return;
    if (status !== 'PENDING') {
      throw new AppError('CONFLICT', `${reference} already has a payment (${status}), so it cannot be paid late`);
    }
  }
  throw new AppError('SANDBOX_REFUSED', `${reference} did not expire within ${EXPIRY_TIMEOUT_MS / 1000} seconds`);
}
