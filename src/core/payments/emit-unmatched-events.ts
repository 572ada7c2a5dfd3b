import { describeTransfer, newEvent } from '../domain/event.ts';
import { encodeId, NIL_UUID } from '../domain/ids.ts';
import { type Cause, describeLikeliest } from '../domain/mismatch.ts';
import type { MicroUsdt } from '../domain/money.ts';
import type { Network } from '../domain/network.ts';
import type { Loop } from '../runtime/loop.ts';
import { lockCursor } from '../store/chain/cursor.ts';
import { addressColumn } from '../store/db/address-column.ts';
import { answerOf, commandOf, rowsOf } from '../store/db/rows-of.ts';
import { sealColumn } from '../store/db/seal.ts';
import { SEALED_EVENT, SEALED_TRANSFER } from '../store/db/sealed-tables.ts';
import { count, hex, isAsSealed, listColumns, maybe, micro, type Row, text } from '../store/db/statement.ts';
import { isOfStatement, isTimeout } from '../store/db/unavailable.ts';
import { insertEvents } from '../store/outbox/events.ts';
import { diagnoseTransfers } from './mismatch/diagnose-transfers.ts';
import { guardWhileLeading, type Leading, takeEach, whileLeading } from './watching.ts';

type Telling = Leading & { random(bytes: number): Uint8Array };

const PAGE = 500;
/** This many transfers are judged together and compared with the same invoices. */
const GROUP = 50;
/** How soon a failed notification is retried, together with any transfers that have arrived in the meantime. */
const MAX_PAUSE_MS = 2000;

/**
 * Writes an event for each unmatched or duplicate transfer, with the likeliest reason, while this process follows the network. If a
 * transfer can't be judged, its event has no reason. If an event can't be written, the others aren't delayed. Runs until it's stopped.
 */
export function startEmitting(options: Telling): Loop {
  const { network, isLeader } = options;
  const telling = { ...options, db: whileLeading(options.db, network, isLeader) };
  const how = { name: 'untold transfers', maxPauseMs: MAX_PAUSE_MS };
  return guardWhileLeading(options, how, async (shouldEnd, progress) => {
    const failures: unknown[] = [];
    for (let after = NIL_UUID; ; ) {
      const ids = (await findUntold(telling.db, network, after, PAGE)).map(({ id }) => id);
      const { untold, told } = ids.length === 0 ? { untold: [], told: [] } : await readUntold(telling.db, ids);
      if (told.length > 0) await forgetTold(telling.db, network, told);
      for (let first = 0; first < untold.length; first += GROUP) {
        const group = untold.slice(first, first + GROUP).map(({ id }) => id);
        await tellAll(telling, group, shouldEnd).catch((error: unknown) => {
          // If the cause is only that the database is unavailable, later transfers must not be reported before these.
          if (hasOtherCause(error)) throw error;
          failures.push(error);
        });
        if (shouldEnd()) return;
        if (failures.length === 0) progress();
      }
      const last = ids.at(PAGE - 1);
      if (last === undefined) break;
      after = last;
    }
    if (failures.length > 0) throw failures[0];
  });
}

/** Writes all events together. If that fails, writes each of them separately. */
async function tellAll(telling: Telling, ids: readonly string[], shouldEnd: () => boolean): Promise<void> {
  await tell(telling, ids).catch((error: unknown) => {
    if (ids.length === 1 || hasOtherCause(error)) throw error;
    return takeEach(ids.map((id) => async () => (shouldEnd() ? undefined : tell(telling, [id]))));
  });
}

/** Whether the error has a cause other than the statement itself. A statement that times out counts as the cause. */
function hasOtherCause(error: unknown): boolean {
  return !isOfStatement(error) && !isTimeout(error);
}

/**
 * Judges the transfers, then writes their events in another transaction that holds the cursor's lock, so that only one of two processes
 * writes them. Even after a crash, each event is written exactly once.
 */
async function tell(telling: Telling, ids: readonly string[]): Promise<void> {
  const { db, network, now, random } = telling;
  const causes = await judge(telling, ids);
  await db.transaction(async (tx) => {
    await lockCursor(tx, network);
    const { untold } = await readUntold(tx, ids);
    const timestamp = now();
    const events = untold.map((transfer, index) =>
      newEvent(draftOf(transfer, causes.get(transfer.id)), { timestamp, random, index }),
    );
    await insertEvents(tx, network, events, timestamp);
    await forgetTold(tx, network, ids);
  });
}

async function judge({ db, log }: Telling, ids: readonly string[]): Promise<Map<string, Cause[]>> {
  try {
    return await diagnoseTransfers(db, ids);
  } catch (error) {
    const [id] = ids;
    if (id === undefined || ids.length > 1 || hasOtherCause(error)) throw error;
    log.error(
      { err: error, transferId: encodeId('trf', id) },
      'could not diagnose a transfer, so its event has no reason',
    );
    return new Map();
  }
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

/** Returns transfers (UUIDs) after `after` that have no event, oldest first. */
const findUntold = rowsOf(
  'untold-ids',
  { id: 'uuid' },
  'select transfer_id as id from untold_transfers where network = $1 and transfer_id > $2 order by transfer_id limit $3',
  (network: Network, after: string, limit: number) => [network, after, limit],
);

const transfer = {
  id: 'uuid',
  projectId: 'uuid',
  kind: text<'unmatched' | 'duplicate'>(),
  txId: hex(),
  logIndex: 'int4',
  blockNumber: count,
  blockTime: 'timestamptz',
  fromAddress: 'text',
  to: 'address',
  amountMicro: micro<MicroUsdt>(),
  invoiceId: 'uuid?',
  isSound: isAsSealed(SEALED_TRANSFER),
} as const;
const withEvents = { ...transfer, event: maybe({ id: 'uuid', isSound: isAsSealed(SEALED_EVENT) }) } as const;
type UntoldTransfer = Row<typeof transfer>;

/**
 * If there are this many forged events in addition to the real one, the transfer counts as reported, so that its event isn't written again
 * and again.
 */
const MOST_EVENTS = 20;

/**
 * Finds out which of these transfers (UUIDs) have a valid seal but no event (in chain order, including annulled ones), and which have a
 * sealed event. This way, a forged annulment or event can't hide a transfer.
 */
const readUntold = answerOf(
  'untold-transfers',
  withEvents,
  `select ${listColumns(withEvents, 't.', {
    to: addressColumn('a'),
    isSound: sealColumn(SEALED_TRANSFER, 't.'),
    event: { id: 'e.id', isSound: sealColumn(SEALED_EVENT, 'e.') },
  })}
   from transfers t join addresses a on a.id = t.address_id
   left join lateral (
     select * from events
     where transfer_id = t.id and project_id = t.project_id and type in ('transfer.unmatched', 'transfer.duplicate')
     limit ${MOST_EVENTS}) e on true
   where t.id = any($1::uuid[]) and t.kind <> 'matched'
   order by t.id`,
  (ids: readonly string[]) => [ids],
  (rows) => {
    const [untold, told] = [new Map<string, UntoldTransfer>(), new Set<string>()];
    const events = new Map<string, number>();
    for (const { event, ...found } of rows) {
      const { id } = found;
      events.set(id, (events.get(id) ?? 0) + 1);
      if (event?.isSound === true || events.get(id) === MOST_EVENTS) told.add(id);
      else if (found.isSound) untold.set(id, found);
    }
    return { untold: [...untold.values()].filter(({ id }) => !told.has(id)), told: [...told] };
  },
);

/** Removes the transfers that already have an event from the list of transfers to report. */
const forgetTold = commandOf(
  'untold-forget',
  'select from forget_told_transfers($1, $2)',
  (network: Network, ids: readonly string[]) => [network, ids],
);
