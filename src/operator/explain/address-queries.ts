import type { InvoiceStatus } from '../../domain/invoice.ts';
import type { MicroUsdt } from '../../domain/money.ts';
import type { Network } from '../../domain/network.ts';
import type { Policy } from '../../domain/policy.ts';
import { addressColumn } from '../../store/db/address-column.ts';
import { ANY_NETWORK } from '../../store/db/any-network.ts';
import { answerOf, rowsOf } from '../../store/db/rows-of.ts';
import { count, maybe, maybeText, micro, type Row, text } from '../../store/db/statement.ts';
import type { Freeze } from '../../store/ledger/addresses.ts';
import {
  ANNULMENT_COLUMNS,
  annulmentShape,
  outgoingAnnulment,
  outgoingStands,
  stands,
} from '../../store/ledger/standing.ts';
import { joinRefundOf, refundOfShape } from '../../store/ledger/transfer-refunds.ts';
import type { AccountHex, TronAddress } from '../../tron/address.ts';
import type { Actor } from '../actor.ts';

const selectShape = {
  id: 'uuid',
  projectId: 'uuid',
  projectName: 'text',
  network: text<Network>(),
  address: 'address',
  policy: text<Policy>(),
  position: 'int4',
  createdAt: 'timestamptz',
  retiredAt: 'timestamptz?',
  freezeState: maybeText<Freeze>(),
  derived: maybe({ xpub: 'text', index: 'int4' }),
  balance: maybe({
    chainMicro: 'numeric',
    expectedMicro: 'numeric',
    checkedBlock: count,
    goodBlock: count,
    node: 'text',
    checkedAt: 'timestamptz',
  }),
} as const;
/** An address of ours with how it came to be and how its books were last. UUIDs. */
export type ExplainedAddress = Row<typeof selectShape>;

/** The address with this account: one a network at most. */
export const findExplainedAddresses = rowsOf(
  'explain-address-select',
  selectShape,
  `select a.id, a.project_id, p.name as project_name, a.network, ${addressColumn('a')} as address, a.policy, a.position, a.created_at, a.retired_at, a.freeze_state,
     k.xpub as derived_xpub, a.derivation_index as derived_index, b.balance_micro as balance_chain_micro,
     b.expected_micro as balance_expected_micro, b.checked_block as balance_checked_block,
     b.good_block as balance_good_block, b.node as balance_node, b.checked_at as balance_checked_at
   from addresses a
   join projects p on p.id = a.project_id
   left join account_keys k on k.id = a.account_key_id
   left join balance_checks b on b.address_id = a.id
   where a.network in ${ANY_NETWORK} and a.account = decode($1, 'hex')
     and ($2::uuid[] is null or a.project_id = any($2))
   order by a.network`,
  (account: AccountHex, projects: Actor['projects']) => [account, projects],
);

/** How many invoices an address has by status, counting at most `limit` of them. */
export const countInvoicesOfAddress = rowsOf(
  'explain-address-invoices',
  { status: text<InvoiceStatus>(), count },
  `select status, count(*) as count from (select status from invoices where address_id = $1 limit $2) i group by status`,
  (addressId: string, limit: number) => [addressId, limit],
);

/** How many transfers an address received and sent above a block (-1 for all), counting at most `limit` of each. */
export const countTransfersOfAddress = answerOf(
  'explain-address-transfers',
  { incoming: count, outgoing: count },
  `select
     (select count(*) from (
       select from transfers t where address_id = $1 and block_number > $3 and ${stands('t')} limit $2) t) as incoming,
     (select count(*) from (
       select from outgoing_transfers o where address_id = $1 and block_number > $3 and ${outgoingStands('o')} limit $2) t) as outgoing`,
  (addressId: string, aboveBlock: number, limit: number) => [addressId, limit, aboveBlock],
  ([row]) => row ?? { incoming: 0, outgoing: 0 },
);

const outgoingShape = {
  projectId: 'uuid',
  network: text<Network>(),
  address: 'address',
  to: 'text',
  txId: 'text',
  logIndex: 'int4',
  blockNumber: count,
  blockId: 'text',
  blockTime: 'timestamptz',
  amountMicro: micro<MicroUsdt>(),
  verified: 'text',
  nodes: 'text[]',
  ...annulmentShape,
  /** What it sent back. */
  ...refundOfShape,
} as const;
/** A transfer that left one of our addresses. */
export type ExplainedOutgoing = Row<typeof outgoingShape>;

const OUTGOING = `select o.project_id, o.network, ${addressColumn('a')} as address, o.to_address as "to", encode(o.tx_id, 'hex') as tx_id, o.log_index,
     o.block_number, encode(o.block_id, 'hex') as block_id, o.block_time, o.amount_micro, o.verified, o.nodes, ${ANNULMENT_COLUMNS},
     r.transfer_id as refund_of_transfer_id, r.is_sound as refund_of_is_sound`;
const WITH_STANDING = `left join outgoing_annulments n on ${outgoingAnnulment('o')} ${joinRefundOf('o')}`;

/** Transfers of a transaction that left our addresses, on any network. */
export const findOutgoingOfTransaction = rowsOf(
  'explain-outgoing-of-transaction',
  outgoingShape,
  `${OUTGOING} from outgoing_transfers o join addresses a on a.id = o.address_id ${WITH_STANDING}
   where o.network in ${ANY_NETWORK} and o.tx_id = decode($1, 'hex')
     and ($2::uuid[] is null or o.project_id = any($2))
   order by o.network, o.log_index limit $3`,
  (txId: string, projects: Actor['projects'], limit: number) => [txId, projects, limit],
);

/** The newest transfers that left an address. */
export const findOutgoingOfAddress = rowsOf(
  'explain-outgoing-of-address',
  outgoingShape,
  `${OUTGOING} from outgoing_transfers o join addresses a on a.id = o.address_id ${WITH_STANDING}
   where o.address_id = $1 order by o.block_number desc, o.log_index desc limit $2`,
  (addressId: string, limit: number) => [addressId, limit],
);

/** The newest transfers that left our addresses for an address of somebody else. */
export const findOutgoingTo = rowsOf(
  'explain-outgoing-to',
  outgoingShape,
  `${OUTGOING} from projects s
   cross join lateral (
     select * from outgoing_transfers where project_id = s.id and to_address = $1 order by block_number desc limit $3) o
   join addresses a on a.id = o.address_id ${WITH_STANDING}
   where $2::uuid[] is null or s.id = any($2) order by o.block_time desc, tx_id, o.log_index limit $3`,
  (recipient: TronAddress, projects: Actor['projects'], limit: number) => [recipient, projects, limit],
);
