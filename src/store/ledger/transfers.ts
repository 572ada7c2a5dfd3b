import type { Verified } from '../../domain/chain-block.ts';
import type { Network } from '../../domain/network.ts';
import type { AccountHex } from '../../tron/address.ts';
import { jsonRows } from '../db/json-rows.ts';
import { commandOf } from '../db/rows-of.ts';
import { count, hex, micro, type Row, text } from '../db/statement.ts';

/** An irreversible transfer, to or from one of our addresses. */
export const recorded = {
  projectId: 'uuid',
  addressId: 'uuid',
  txId: hex(),
  logIndex: 'int4',
  blockNumber: count,
  blockId: hex(),
  blockTime: 'timestamptz',
  amountMicro: micro(),
  /** How it was verified, and the origins of the nodes that showed it. */
  verified: text<Verified>(),
  nodes: 'text[]',
} as const;

const incoming = {
  ...recorded,
  id: 'uuid',
  fromAddress: 'text',
  kind: text<'matched' | 'duplicate' | 'unmatched'>(),
  invoiceId: 'uuid?',
  /** The account that made the block. */
  producer: hex<AccountHex>(),
} as const;

/** A transfer to one of our addresses as the ledger keeps it. */
export type NewTransfer = Row<typeof incoming>;

const rows = jsonRows(incoming);

/**
 * Records transfers. The caller has left out those that the ledger has; a second record of one is refused by constraint, unless
 * those of before were taken back.
 */
export const insertTransfers = commandOf(
  'transfer-insert',
  `insert into transfers (network, reserved_micro, correction, ${rows.columns})
   select $1, case when t.kind <> 'unmatched' then t.amount_micro::int8 end,
     (select count(*) from transfers r join transfer_annulments n on n.transfer_id = r.id
      where r.network = $1 and r.tx_id = t.tx_id and r.log_index = t.log_index), ${rows.columns}
   from ${rows.table('$2')}`,
  (network: Network, transfers: NewTransfer[]) => [network, rows.bind(transfers)],
);
