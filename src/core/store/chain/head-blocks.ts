import type { ChainBlock } from '../../domain/chain-block.ts';
import type { Network } from '../../domain/network.ts';
import { answerOf, commandOf, rowsOf } from '../db/rows-of.ts';
import { count, hex, jsonRows, type Row } from '../db/statement.ts';

/** Returns the id of the examined block at a height above the solid one, or `null`. */
export const findHeadBlockId = answerOf(
  'head-block-id',
  { blockId: 'text' },
  "select encode(block_id, 'hex') as block_id from head_blocks where network = $1 and number = $2",
  (network: Network, number: number) => [network, number],
  ([row]) => row?.blockId ?? null,
);

const blocks = jsonRows({ number: count, id: hex(), time: 'timestamptz' });

/** Inserts examined blocks. Existing ones stay unchanged. Fails if a different block exists at the same height. */
export const insertHeadBlocks = commandOf(
  'head-block-insert',
  `insert into head_blocks (network, number, block_id, block_time)
   select $1, t.number, t.id, t.time from ${blocks.table('$2')}
   where not exists (
     select from head_blocks h where h.network = $1 and h.number = t.number and h.block_id = t.id)`,
  (network: Network, added: ChainBlock[]) => [network, blocks.bind(added)],
);

const INVOICE_KEY = { projectId: 'uuid', invoiceId: 'uuid' } as const;

export type InvoiceKey = Row<typeof INVOICE_KEY>;

/** Returns invoices with a sighting above a height. */
export const findInvoicesDetectedAbove = rowsOf(
  'sightings-above',
  INVOICE_KEY,
  'select distinct project_id, invoice_id from sightings where network = $1 and block_number > $2',
  (network: Network, number: number) => [network, number],
);

/** Returns invoices with a sighting at or below a height. */
export const findInvoicesDetectedUpTo = rowsOf(
  'sightings-up-to',
  INVOICE_KEY,
  'select distinct project_id, invoice_id from sightings where network = $1 and block_number <= $2',
  (network: Network, number: number) => [network, number],
);

/**
 * Deletes the examined blocks above a height, and their sightings, because they were orphaned or will be written again. Keeps the blocks in
 * `kept`.
 */
export const deleteHeadBlocksAbove = commandOf(
  'head-block-delete-above',
  'select from forget_head_blocks_above($1, $2, $3::text::jsonb)',
  (network: Network, above: number, kept: readonly { number: number; id: string }[]) => [
    network,
    above,
    JSON.stringify(kept.map(({ number, id }) => ({ number, id }))),
  ],
);

/** Deletes the examined blocks up to and including a height, and their sightings, because the solid chain replaces them. */
export const deleteHeadBlocksUpTo = commandOf(
  'head-block-delete-up-to',
  'select from forget_head_blocks_up_to($1, $2)',
  (network: Network, number: number) => [network, number],
);

const sighting = {
  blockNumber: count,
  /** Increases in the order of the transfers within a block. */
  position: 'int4',
  txId: hex(),
  logIndex: 'int4',
  projectId: 'uuid',
  invoiceId: 'uuid',
  fromAddress: 'text',
  amountMicro: 'int8',
} as const;

export type Sighting = Row<typeof sighting>;

const rows = jsonRows(sighting);

/** Inserts sightings. Existing sightings, which belong to a block that was kept, stay unchanged. */
export const insertSightings = commandOf(
  'sighting-insert',
  `insert into sightings (network, ${rows.columns}) select $1, ${rows.columns} from ${rows.table('$2')} on conflict do nothing`,
  (network: Network, sightings: Sighting[]) => [network, rows.bind(sightings)],
);

/** Returns which of these invoices have been sighted. */
export const findDetected = answerOf(
  'sightings-of-invoices',
  { invoiceId: 'uuid' },
  'select distinct invoice_id from sightings where network = $1 and invoice_id = any($2::uuid[])',
  (network: Network, invoiceIds: string[]) => [network, invoiceIds],
  (found) => new Set(found.map(({ invoiceId }) => invoiceId)),
);
