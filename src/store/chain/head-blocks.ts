import type { ChainBlock } from '../../domain/chain-block.ts';
import type { Network } from '../../domain/network.ts';
import type { Sql } from '../db/database.ts';
import { type Row, statement } from '../db/statement.ts';

const idAt = statement(
  'head-block-id',
  { blockId: 'text' },
  "select encode(block_id, 'hex') as block_id from head_blocks where network = $1 and number = $2",
);

/** The id of the examined block at a height above the solid one, or `null`. */
export async function findHeadBlockId(db: Sql, network: Network, number: number): Promise<string | null> {
  const [row] = await db.run(idAt, [network, number]);
  return row?.blockId ?? null;
}

const insert = statement(
  'head-block-insert',
  {},
  `insert into head_blocks (network, number, block_id, block_time)
   select $1, (b->>'number')::int8, decode(b->>'id', 'hex'), (b->>'time')::timestamptz
   from jsonb_array_elements($2::text::jsonb) b
   where not exists (
     select from head_blocks h
     where h.network = $1 and h.number = (b->>'number')::int8 and h.block_id = decode(b->>'id', 'hex'))`,
);

/** Those that are there already stay. Fails at a height that has another block. */
export async function insertHeadBlocks(tx: Sql, network: Network, blocks: ChainBlock[]): Promise<void> {
  const rows = blocks.map(({ number, id, time }) => ({ number, id, time: new Date(time).toISOString() }));
  await tx.run(insert, [network, JSON.stringify(rows)]);
}

const INVOICE_KEY = { projectId: 'uuid', invoiceId: 'uuid' } as const;

/** The primary key of an invoice. */
export type InvoiceKey = Row<typeof INVOICE_KEY>;

const detectedAbove = statement(
  'sightings-above',
  INVOICE_KEY,
  'select distinct project_id, invoice_id from sightings where network = $1 and block_number > $2',
);

/** Invoices with a sighting above a height. */
export function findInvoicesDetectedAbove(tx: Sql, network: Network, number: number): Promise<InvoiceKey[]> {
  return tx.run(detectedAbove, [network, number]);
}

const detectedUpTo = statement(
  'sightings-up-to',
  INVOICE_KEY,
  'select distinct project_id, invoice_id from sightings where network = $1 and block_number <= $2',
);

/** Invoices with a sighting at or below a height. */
export function findInvoicesDetectedUpTo(tx: Sql, network: Network, number: number): Promise<InvoiceKey[]> {
  return tx.run(detectedUpTo, [network, number]);
}

const removeAbove = statement(
  'head-block-delete-above',
  {},
  'select from forget_head_blocks_above($1, $2, $3::text::jsonb)',
);

/** Forgets examined blocks above a height, with their sightings, save those of `kept`: they were orphaned, or are written anew. */
export async function deleteHeadBlocksAbove(
  tx: Sql,
  network: Network,
  number: number,
  kept: readonly { number: number; id: string }[],
): Promise<void> {
  const blocks = kept.map((block) => ({ number: block.number, id: block.id }));
  await tx.run(removeAbove, [network, number, JSON.stringify(blocks)]);
}

const removeUpTo = statement('head-block-delete-up-to', {}, 'select from forget_head_blocks_up_to($1, $2)');

/** Forgets examined blocks up to a height, with their sightings: the solid chain speaks for them now. */
export async function deleteHeadBlocksUpTo(tx: Sql, network: Network, number: number): Promise<void> {
  await tx.run(removeUpTo, [network, number]);
}

export type Sighting = {
  blockNumber: number;
  /** Rises in the order of the transfers in a block. */
  position: number;
  txId: string;
  logIndex: number;
  projectId: string;
  invoiceId: string;
  fromAddress: string;
  amountMicro: bigint;
};

const insertSighting = statement(
  'sighting-insert',
  {},
  `insert into sightings (network, block_number, position, tx_id, log_index, project_id, invoice_id, from_address, amount_micro)
   select $1, (s->>'blockNumber')::int8, (s->>'position')::int4, decode(s->>'txId', 'hex'), (s->>'logIndex')::int4, (s->>'projectId')::uuid,
     (s->>'invoiceId')::uuid, s->>'fromAddress', (s->>'amountMicro')::int8
   from jsonb_array_elements($2::text::jsonb) s
   on conflict do nothing`,
);

/** Those that are there already stay: of a block that was kept. */
export async function insertSightings(tx: Sql, network: Network, sightings: Sighting[]): Promise<void> {
  const rows = sightings.map((sighting) => ({ ...sighting, amountMicro: sighting.amountMicro.toString() }));
  await tx.run(insertSighting, [network, JSON.stringify(rows)]);
}

const stillDetected = statement(
  'sightings-of-invoices',
  { invoiceId: 'uuid' },
  'select distinct invoice_id from sightings where network = $1 and invoice_id = any($2::uuid[])',
);

/** Those of the invoices that have a sighting. */
export async function findDetected(tx: Sql, network: Network, invoiceIds: string[]): Promise<Set<string>> {
  const rows = await tx.run(stillDetected, [network, invoiceIds]);
  return new Set(rows.map((row) => row.invoiceId));
}
