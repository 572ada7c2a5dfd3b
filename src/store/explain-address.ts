import type { InvoiceStatus } from '../domain/invoice.ts';
import { type MicroUsdt, microUsdt } from '../domain/money.ts';
import type { Network } from '../domain/network.ts';
import type { Policy } from '../domain/policy.ts';
import type { UnixMs } from '../domain/time.ts';
import type { AccountHex, TronAddress } from '../tron/address.ts';
import { addressColumn } from './address-column.ts';
import type { Sql } from './database.ts';
import {
  ANNULMENT_COLUMNS,
  type Annulment,
  annulmentColumns,
  outgoingAnnulment,
  outgoingStands,
  stands,
  toAnnulment,
} from './standing.ts';
import { type Row, statement } from './statement.ts';

/** An address of ours with how it came to be and how its books were last. UUIDs. */
export type ExplainedAddress = {
  id: string;
  projectId: string;
  projectName: string;
  network: Network;
  address: TronAddress;
  policy: Policy;
  position: number;
  createdAt: UnixMs;
  retiredAt: UnixMs | null;
  derived: { xpub: string; index: number } | null;
  balance: {
    balanceMicro: bigint;
    expectedMicro: bigint;
    checkedBlock: number;
    goodBlock: number;
    node: string;
    checkedAt: UnixMs;
  } | null;
};

const columns = {
  id: 'uuid',
  project_id: 'uuid',
  project_name: 'text',
  network: 'text',
  address: 'address',
  policy: 'text',
  position: 'int4',
  created_at: 'timestamptz',
  retired_at: 'timestamptz?',
  xpub: 'text?',
  derivation_index: 'int4?',
  balance_micro: 'numeric?',
  expected_micro: 'numeric?',
  checked_block: 'int8?',
  good_block: 'int8?',
  node: 'text?',
  checked_at: 'timestamptz?',
} as const;

const select = statement(
  'explain-address-select',
  columns,
  `select a.id, a.project_id, p.name as project_name, a.network, ${addressColumn('a')} as address, a.policy, a.position, a.created_at, a.retired_at,
     k.xpub, a.derivation_index, b.balance_micro, b.expected_micro, b.checked_block, b.good_block, b.node, b.checked_at
   from addresses a
   join projects p on p.id = a.project_id
   left join account_keys k on k.id = a.account_key_id
   left join balance_checks b on b.address_id = a.id
   where a.network in ('mainnet', 'nile', 'devnet') and a.account = decode($1, 'hex')
     and ($2::uuid is null or a.project_id = $2)
   order by a.network`,
);

/** The address with this account: one a network at most. */
export async function findExplainedAddresses(
  db: Sql,
  account: AccountHex,
  projectId: string | null,
): Promise<ExplainedAddress[]> {
  return (await db.run(select, [account, projectId])).map((row) => ({
    id: row.id,
    projectId: row.project_id,
    projectName: row.project_name,
    network: row.network as Network,
    address: row.address,
    policy: row.policy as Policy,
    position: row.position,
    createdAt: row.created_at,
    retiredAt: row.retired_at,
    derived:
      row.xpub === null || row.derivation_index === null ? null : { xpub: row.xpub, index: row.derivation_index },
    balance: toBalance(row),
  }));
}

function toBalance(row: Row<typeof columns>): ExplainedAddress['balance'] {
  const { balance_micro, expected_micro, checked_block, good_block, node, checked_at } = row;
  if (balance_micro === null || expected_micro === null || checked_block === null) return null;
  if (good_block === null || node === null || checked_at === null) return null;
  return {
    balanceMicro: balance_micro,
    expectedMicro: expected_micro,
    checkedBlock: Number(checked_block),
    goodBlock: Number(good_block),
    node,
    checkedAt: checked_at,
  };
}

const countInvoices = statement(
  'explain-address-invoices',
  { status: 'text', count: 'int8' },
  `select status, count(*) as count from (select status from invoices where address_id = $1 limit $2) i group by status`,
);

/** How many invoices an address has by status, counting at most `limit` of them. */
export async function countInvoicesOfAddress(
  db: Sql,
  addressId: string,
  limit: number,
): Promise<Map<InvoiceStatus, number>> {
  const rows = await db.run(countInvoices, [addressId, limit]);
  return new Map(rows.map(({ status, count }) => [status as InvoiceStatus, Number(count)]));
}

const countTransfers = statement(
  'explain-address-transfers',
  { incoming: 'int8', outgoing: 'int8' },
  `select
     (select count(*) from (
       select from transfers t where address_id = $1 and block_number > $3 and ${stands('t')} limit $2) t) as incoming,
     (select count(*) from (
       select from outgoing_transfers o where address_id = $1 and block_number > $3 and ${outgoingStands('o')} limit $2) t) as outgoing`,
);

/** How many transfers an address received and sent above a block (-1 for all), counting at most `limit` of each. */
export async function countTransfersOfAddress(
  db: Sql,
  addressId: string,
  aboveBlock: number,
  limit: number,
): Promise<{ incoming: number; outgoing: number }> {
  const [row] = await db.run(countTransfers, [addressId, limit, aboveBlock]);
  return { incoming: Number(row?.incoming ?? 0n), outgoing: Number(row?.outgoing ?? 0n) };
}

/** A transfer that left one of our addresses. */
export type ExplainedOutgoing = {
  projectId: string;
  network: Network;
  address: TronAddress;
  to: string;
  txId: string;
  logIndex: number;
  blockNumber: number;
  blockId: string;
  blockTime: UnixMs;
  amountMicro: MicroUsdt;
  verified: string;
  nodes: string[];
  annulment: Annulment | null;
};

const outgoingColumns = {
  project_id: 'uuid',
  network: 'text',
  address: 'address',
  to_address: 'text',
  tx_id: 'text',
  log_index: 'int4',
  block_number: 'int8',
  block_id: 'text',
  block_time: 'timestamptz',
  amount_micro: 'numeric',
  verified: 'text',
  nodes: 'text[]',
  ...annulmentColumns,
} as const;
const OUTGOING = `select o.project_id, o.network, ${addressColumn('a')} as address, o.to_address, encode(o.tx_id, 'hex') as tx_id, o.log_index,
     o.block_number, encode(o.block_id, 'hex') as block_id, o.block_time, o.amount_micro, o.verified, o.nodes, ${ANNULMENT_COLUMNS}`;
const WITH_ANNULMENT = `left join outgoing_annulments n on ${outgoingAnnulment('o')}`;

const outgoingOfTransaction = statement(
  'explain-outgoing-of-transaction',
  outgoingColumns,
  `${OUTGOING} from outgoing_transfers o join addresses a on a.id = o.address_id ${WITH_ANNULMENT}
   where o.network in ('mainnet', 'nile', 'devnet') and o.tx_id = decode($1, 'hex')
     and ($2::uuid is null or o.project_id = $2)
   order by o.network, o.log_index limit $3`,
);

/** Transfers of a transaction that left our addresses, on any network. */
export async function findOutgoingOfTransaction(
  db: Sql,
  txId: string,
  projectId: string | null,
  limit: number,
): Promise<ExplainedOutgoing[]> {
  return (await db.run(outgoingOfTransaction, [txId, projectId, limit])).map(toOutgoing);
}

const outgoingOfAddress = statement(
  'explain-outgoing-of-address',
  outgoingColumns,
  `${OUTGOING} from outgoing_transfers o join addresses a on a.id = o.address_id ${WITH_ANNULMENT}
   where o.address_id = $1 order by o.block_number desc, o.log_index desc limit $2`,
);

/** The newest transfers that left an address. */
export async function findOutgoingOfAddress(db: Sql, addressId: string, limit: number): Promise<ExplainedOutgoing[]> {
  return (await db.run(outgoingOfAddress, [addressId, limit])).map(toOutgoing);
}

const outgoingTo = statement(
  'explain-outgoing-to',
  outgoingColumns,
  `${OUTGOING} from projects s
   cross join lateral (
     select * from outgoing_transfers where project_id = s.id and to_address = $1 order by block_number desc limit $3) o
   join addresses a on a.id = o.address_id ${WITH_ANNULMENT}
   where $2::uuid is null or s.id = $2 order by o.block_time desc, tx_id, o.log_index limit $3`,
);

/** The newest transfers that left our addresses for an address of somebody else. */
export async function findOutgoingTo(
  db: Sql,
  recipient: TronAddress,
  projectId: string | null,
  limit: number,
): Promise<ExplainedOutgoing[]> {
  return (await db.run(outgoingTo, [recipient, projectId, limit])).map(toOutgoing);
}

function toOutgoing(row: Row<typeof outgoingColumns>): ExplainedOutgoing {
  return {
    projectId: row.project_id,
    network: row.network as Network,
    address: row.address,
    to: row.to_address,
    txId: row.tx_id,
    logIndex: row.log_index,
    blockNumber: Number(row.block_number),
    blockId: row.block_id,
    blockTime: row.block_time,
    amountMicro: microUsdt(row.amount_micro),
    verified: row.verified,
    nodes: row.nodes,
    annulment: toAnnulment(row),
  };
}
