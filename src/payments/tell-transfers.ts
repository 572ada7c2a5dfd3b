import { AppError } from '../domain/errors.ts';
import { describeTransfer, newEvent } from '../domain/event.ts';
import { encodeId, NIL_UUID } from '../domain/ids.ts';
import { type Cause, describeLikeliest } from '../domain/mismatch.ts';
import type { Loop } from '../runtime/loop.ts';
import { lockCursor } from '../store/chain/cursor.ts';
import { insertEvents } from '../store/outbox/events.ts';
import { findUntold, forgetTold, readUntold, type UntoldTransfer } from '../store/outbox/untold-transfers.ts';
import { diagnoseTransfers } from './mismatch/diagnose-transfers.ts';
import { guardWhileLeading, type Leading, takeEach, whileLeading } from './watching.ts';

type Telling = Leading & { random(bytes: number): Uint8Array };

/** As many are judged together as are compared with the same invoices. */
const PAGE = 50;

/**
 * Tells of transfers that paid nothing, by an event each with the likeliest reason, while this process follows the network. What cannot be
 * judged is told without a reason, and what cannot be told holds up no other. Never ends by itself.
 */
export function startTelling(options: Telling): Loop {
  const { network, isLeader } = options;
  const telling = { ...options, db: whileLeading(options.db, network, isLeader) };
  let after = NIL_UUID;
  return guardWhileLeading(options, { name: 'untold transfers' }, async (shouldEnd) => {
    do {
      const ids = (await findUntold(telling.db, network, after, PAGE)).map(({ id }) => id);
      // Moved first: the next look goes on behind what fails, and comes back to it from the start.
      after = (ids.length === PAGE ? ids.at(-1) : undefined) ?? NIL_UUID;
      if (ids.length > 0) await tellAll(telling, ids);
    } while (after !== NIL_UUID && !shouldEnd());
  });
}

/** Together; if that fails, each by itself. */
async function tellAll(telling: Telling, ids: readonly string[]): Promise<void> {
  await tell(telling, ids).catch((error: unknown) => {
    if (ids.length === 1 || passesByItself(error)) throw error;
    return takeEach(ids.map((id) => () => tell(telling, [id])));
  });
}

/**
 * Judges the transfers, then writes their events in a transaction of its own that holds the cursor's lock, so that of two processes one
 * tells. After a crash anywhere each is told once.
 */
async function tell(telling: Telling, ids: readonly string[]): Promise<void> {
  const { db, network, now, random } = telling;
  const causes = await judge(telling, ids);
  await db.transaction(async (tx) => {
    await lockCursor(tx, network);
    const untold = (await readUntold(tx, ids)).filter(({ isSound }) => isSound);
    const timestamp = now();
    const events = untold.map((transfer, index) =>
      newEvent(draftOf(transfer, causes.get(transfer.id)), { timestamp, random, index }),
    );
    await insertEvents(tx, network, events, timestamp);
    await forgetTold(tx, ids);
  });
}

async function judge({ db, log }: Telling, ids: readonly string[]): Promise<Map<string, Cause[]>> {
  try {
    return await diagnoseTransfers(db, ids);
  } catch (error) {
    const [id] = ids;
    if (id === undefined || ids.length > 1 || passesByItself(error)) throw error;
    log.error(
      { err: error, transferId: encodeId('trf', id) },
      'a transfer cannot be judged, and is told without a reason',
    );
    return new Map();
  }
}

function passesByItself(error: unknown): boolean {
  return error instanceof AppError && error.retryable;
}

function draftOf({ kind, fromAddress, ...transfer }: UntoldTransfer, causes: Cause[] | undefined) {
  return {
    type: kind === 'duplicate' ? 'transfer.duplicate' : 'transfer.unmatched',
    projectId: transfer.projectId,
    invoiceId: null,
    transferId: transfer.id,
    sequence: 1,
    data: { ...describeTransfer({ ...transfer, from: fromAddress }), ...describeLikeliest(causes) },
  } as const;
}
