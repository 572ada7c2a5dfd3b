import type { MicroUsdt } from '../../domain/money.ts';
import type { Network } from '../../domain/network.ts';
import { addressColumn } from '../db/address-column.ts';
import { answerOf, commandOf, rowsOf } from '../db/rows-of.ts';
import { sealColumn } from '../db/seal.ts';
import { SEALED_EVENT, SEALED_TRANSFER } from '../db/sealed-tables.ts';
import { count, hex, isAsSealed, listColumns, maybe, micro, type Row, text } from '../db/statement.ts';

/** Transfers (UUIDs) behind `after` that are to be told of, the oldest first. */
export const findUntold = rowsOf(
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
export type UntoldTransfer = Row<typeof transfer>;

/** Whoever makes up so many beside the true one lets nobody tell of it again and again. */
const MOST_EVENTS = 20;

/**
 * Of transfers (UUIDs) those that are sound and not told of, in chain order, also where they were taken back meanwhile; and the ids of those
 * that an event tells of which is as it was sealed. What somebody made up, an annulment or an event, hides nothing.
 */
export const readUntold = answerOf(
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

/** Forgets transfers that an event tells of. */
export const forgetTold = commandOf(
  'untold-forget',
  'select from forget_told_transfers($1, $2)',
  (network: Network, ids: readonly string[]) => [network, ids],
);
