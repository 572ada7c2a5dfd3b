import type { AccountHex } from '@quittance/tron/address';
import type { ChainTransfer } from '../../domain/chain-block.ts';
import type { InvoiceStatus } from '../../domain/invoice.ts';
import type { Network } from '../../domain/network.ts';
import { toIso, type UnixMs } from '../../domain/time.ts';
import { addressColumn } from '../db/address-column.ts';
import type { Sql } from '../db/database.ts';
import { commandOf, rowsOf } from '../db/rows-of.ts';
import type { LeftOut } from '../db/seal.ts';
import { count, hex, jsonRows, maybe, type Row, statement, text } from '../db/statement.ts';
import { notAnnulled } from '../ledger/annulments.ts';

/** The statement that finds transfers to our addresses. */
export const INCOMING_TRANSFERS = 'incoming-select';

const INCOMING = {
  /** The transfer's position in the given list. */
  index: count,
  projectId: 'uuid',
  addressId: 'uuid',
  address: 'address',
  addressCreatedAt: 'timestamptz',
  invoice: maybe({ id: 'uuid', status: text<InvoiceStatus>() }),
} as const;

/**
 * A transfer to one of our addresses. `invoice` is the invoice that it may pay, if an older invoice reserves exactly this address and
 * amount.
 */
export type Incoming = Row<typeof INCOMING>;

const MAX_INT8 = 2n ** 63n - 1n;

// Retired addresses are included, because they are still watched. A transfer that is already in the ledger is left out, so blocks can
// safely be replayed. An annulled transfer is left out as well, unless $7 reinstates it. However an invoice becomes `PAID`, this statement
// alone decides whether the transfer was later than the invoice. A trigger refuses to link an invoice to an earlier transfer.
const select = statement(
  INCOMING_TRANSFERS,
  INCOMING,
  `select t.index - 1 as index, a.project_id, a.id as address_id, ${addressColumn('a')} as address, a.created_at as address_created_at,
     i.id as invoice_id, i.status as invoice_status
   from rows from (unnest($2::text[]), unnest($3::int8[]), unnest($4::text[]), unnest($5::int8[]),
     unnest($6::text[]), unnest($8::timestamptz[])) with ordinality as t(account, amount, tx_id, log_index, block_id, block_time, index)
   join addresses a on a.network = $1 and a.account = decode(t.account, 'hex')
   left join invoices i on i.address_id = a.id and i.payable_micro = t.amount
     and may_pay(i.payable_after, i.created_at, $1, decode(t.tx_id, 'hex'), t.log_index::int4, t.block_time)
   where not exists (
     select from transfers r where r.network = $1 and r.tx_id = decode(t.tx_id, 'hex') and r.log_index = t.log_index
       and (${notAnnulled('r')} or not $7::bool and r.address_id = a.id and (t.amount is null or r.amount_micro = t.amount)
         and r.block_id = decode(t.block_id, 'hex')))
   order by t.index`,
);

/** A transfer with its block's id and time. */
export type PlacedTransfer = ChainTransfer & { blockId: string; blockTime: UnixMs };

/**
 * Finds, in a single join, the transfers to our addresses and the invoice that each of them would pay. Keeps the order. `isAgain` includes
 * annulled transfers. `leftOut` receives the rows whose address fails its integrity check, with their `index`.
 */
export async function findIncoming(
  tx: Sql,
  network: Network,
  transfers: readonly PlacedTransfer[],
  isAgain = false,
  leftOut?: LeftOut[],
): Promise<Incoming[]> {
  if (transfers.length === 0) return [];
  const parameters = [
    network,
    transfers.map(({ to }) => to),
    // An amount beyond int8 can't match any reservation, and a transfer to its own sender doesn't bring in any money, so neither can pay an
    // invoice. Both are still found by their address.
    transfers.map(({ amount, from, to }) => (amount > MAX_INT8 || from === to ? null : amount)),
    transfers.map(({ txId }) => txId),
    transfers.map(({ logIndex }) => BigInt(logIndex)),
    transfers.map(({ blockId }) => blockId),
    isAgain,
    transfers.map(({ blockTime }) => toIso(blockTime)),
  ];
  return tx.run(select, parameters, leftOut);
}

const arrival = {
  txId: hex(),
  logIndex: 'int4',
  addressId: 'uuid',
  amountMicro: 'int8',
  firstTime: 'timestamptz',
} as const;
const arrivals = jsonRows(arrival);

const insertArrivals = commandOf(
  'arrival-insert',
  `insert into arrivals (network, ${arrivals.columns}) select $1, ${arrivals.columns} from ${arrivals.table('$2')} on conflict do nothing`,
  (network: Network, added: Row<typeof arrival>[]) => [network, arrivals.bind(added)],
);

/**
 * Remembers transfers that have just been examined, in any block. As long as a transfer is remembered, no invoice gets its address and
 * amount. If a fork moves the transfer to another block, the first block still counts.
 */
export async function noteArrivals(
  tx: Sql,
  network: Network,
  transfers: readonly PlacedTransfer[],
  incoming: readonly Incoming[],
): Promise<void> {
  const added = incoming.flatMap(({ index, addressId }) => {
    const transfer = transfers[index];
    if (transfer === undefined || transfer.amount === 0n || transfer.amount > MAX_INT8) return [];
    const { txId, logIndex, amount, blockTime } = transfer;
    return [{ txId, logIndex, addressId, amountMicro: amount, firstTime: blockTime }];
  });
  if (added.length > 0) await insertArrivals(tx, network, added);
}

/** A transaction can wait for a block for at most 24 hours. */
const KEPT_MS = 24 * 60 * 60_000;

/** Deletes remembered transfers that were first seen more than a day before a given chain time. */
export const forgetOldArrivals = commandOf(
  'arrival-forget',
  'select from forget_old_arrivals($1, $2)',
  (network: Network, time: UnixMs) => [network, new Date(time - KEPT_MS)],
);

const ourAccounts = rowsOf(
  'incoming-accounts',
  { account: text<AccountHex>() },
  `select encode(account, 'hex') as account from addresses
   where network = $1 and account = any (array(select decode(a, 'hex') from unnest($2::text[]) a))`,
  (network: Network, accounts: readonly AccountHex[]) => [network, accounts],
);

/** Returns which of the accounts are a project's addresses, whether active or retired. */
export async function findOurAccounts(
  db: Sql,
  network: Network,
  accounts: readonly AccountHex[],
): Promise<Set<AccountHex>> {
  const rows = accounts.length === 0 ? [] : await ourAccounts(db, network, accounts);
  return new Set(rows.map(({ account }) => account));
}
