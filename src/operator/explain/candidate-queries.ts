import { firstIdOf } from '../../domain/ids.ts';
import type { MicroUsdt } from '../../domain/money.ts';
import { ANY_NETWORK } from '../../store/db/any-network.ts';
import { answerOf, rowsOf } from '../../store/db/rows-of.ts';
import { count, micro, type Row } from '../../store/db/statement.ts';
import { stands } from '../../store/ledger/standing.ts';
import type { Actor } from '../actor.ts';
import type { ExplainedInvoice } from './invoice-queries.ts';

/** Counting more would take seconds. */
export const MAX_COUNTED = 100_000;

/** The newest duplicates of an invoice, and how many it has, counting at most 100,000. */
export const findDuplicates = answerOf(
  'explain-duplicates',
  { id: 'uuid', total: count },
  `select id, (select count(*) from (
       select from transfers t
       where project_id = $1 and kind = 'duplicate' and invoice_id = $2 and ${stands('t')} limit ${MAX_COUNTED}) d) as total
   from transfers t where project_id = $1 and kind = 'duplicate' and invoice_id = $2 and ${stands('t')}
   order by id desc limit $3`,
  (invoice: Pick<ExplainedInvoice, 'id' | 'projectId'>, limit: number) => [invoice.projectId, invoice.id, limit],
  (rows) => ({ ids: rows.map(({ id }) => id), total: rows[0]?.total ?? 0 }),
);

/** An address may get dust for years: so many transfers that paid nothing are looked at from each end. */
const READ = 2000;
/** A row is written after its block. The clock of the chain and ours may differ by so much. */
const CLOCK_ERROR_MS = 600_000;

// A payment that went wrong comes soon after its invoice, or near its amount, and an operator asks about transfers of today.
/**
 * Unmatched transfers that may have been meant for an invoice: later than what could not pay it, to its address or of its amounts. The first
 * and the last `limit`, the `limit` nearest in amount, and how many there are; `isAll` is false if there may be more, as only the
 * first and the last 2,000 of the project are looked at.
 */
export const findCandidates = answerOf(
  'explain-candidates',
  { id: 'uuid', total: count, isAll: 'bool' },
  `with first as materialized (
     select id, kind, block_time, address_id, amount_micro from transfers t
     where project_id = $1 and kind <> 'matched' and id >= $7 and ${stands('t')} order by id limit ${READ}),
   last as materialized (
     select id, kind, block_time, address_id, amount_micro from transfers t
     where project_id = $1 and kind <> 'matched' and id >= $7 and ${stands('t')} order by id desc limit ${READ}),
   near as materialized (
     select id, amount_micro from (select * from first union select * from last) ends
     where kind = 'unmatched' and block_time > $3 and (address_id = $2 or amount_micro in ($4::int8, $5::int8)))
   select id, (select count(*) from near) as total, (select count(*) from first) < ${READ} as is_all
   from ((select id from near order by id limit $6) union (select id from near order by id desc limit $6)
     union (select id from near order by abs(amount_micro - $4::int8), id limit $6)) ends
   order by id`,
  (
    invoice: Pick<
      ExplainedInvoice,
      'projectId' | 'createdAt' | 'payableAfter' | 'requestedMicro' | 'payableMicro' | 'addressId'
    >,
    limit: number,
  ) => [
    invoice.projectId,
    invoice.addressId,
    new Date(invoice.payableAfter),
    invoice.payableMicro,
    invoice.requestedMicro,
    limit,
    firstIdOf(invoice.createdAt - CLOCK_ERROR_MS),
  ],
  (rows) => ({ ids: rows.map(({ id }) => id), total: rows[0]?.total ?? 0, isAll: rows[0]?.isAll ?? true }),
);

/** Transfers that an operator's resolution, the newest ones, linked to an invoice. */
export const findLinkedTransfers = answerOf(
  'explain-linked-transfers',
  { transferId: 'uuid' },
  `select distinct transfer_id from (
     select transfer_id from transfer_resolutions l
     where invoice_id = $2 and project_id = $1
       and not exists (select from transfer_annulments n where n.transfer_id = l.transfer_id)
     order by id desc limit $3) r`,
  (invoice: Pick<ExplainedInvoice, 'id' | 'projectId'>, limit: number) => [invoice.projectId, invoice.id, limit],
  (rows) => rows.map((row) => row.transferId),
);

const sightingShape = {
  projectId: 'uuid',
  invoiceId: 'uuid',
  externalId: 'text',
  network: 'text',
  blockNumber: count,
  blockId: 'text',
  blockTime: 'timestamptz',
  txId: 'text',
  logIndex: 'int4',
  from: 'text',
  amountMicro: micro<MicroUsdt>('int8'),
} as const;
/** An exact transfer in a block that is not irreversible yet. */
export type ExplainedSighting = Row<typeof sightingShape>;

const SIGHTINGS = `select s.project_id, s.invoice_id, i.external_id, s.network, s.block_number,
     encode(h.block_id, 'hex') as block_id, h.block_time, encode(s.tx_id, 'hex') as tx_id, s.log_index, s.from_address as "from",
     s.amount_micro
   from sightings s
   join head_blocks h on h.network = s.network and h.number = s.block_number
   join invoices i on i.project_id = s.project_id and i.id = s.invoice_id`;
const SIGHTINGS_ORDER = 'order by s.block_number, s.position, s.tx_id, s.log_index';

/** The sightings of an invoice that stand now, in chain order. */
export const findSightingsOfInvoice = rowsOf(
  'explain-sightings-of-invoice',
  sightingShape,
  `${SIGHTINGS} where s.project_id = $1 and s.invoice_id = $2 ${SIGHTINGS_ORDER} limit $3`,
  (invoice: Pick<ExplainedInvoice, 'id' | 'projectId'>, limit: number) => [invoice.projectId, invoice.id, limit],
);

/** The sightings of a transaction that stand now, in chain order. */
export const findSightingsOfTransaction = rowsOf(
  'explain-sightings-of-transaction',
  sightingShape,
  `${SIGHTINGS} where s.network in ${ANY_NETWORK} and s.tx_id = decode($1, 'hex')
     and ($2::uuid[] is null or s.project_id = any($2)) ${SIGHTINGS_ORDER} limit $3`,
  (txId: string, projects: Actor['projects'], limit: number) => [txId, projects, limit],
);
