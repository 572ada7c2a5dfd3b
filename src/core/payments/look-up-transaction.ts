import type { AccountHex } from '@quittance/tron/address';
import type { InvoiceStatus } from '../domain/invoice.ts';
import {
  answerLookup,
  type LedgerFacts,
  type LookupAnswer,
  type LookupInvoice,
  type TransactionFacts,
} from '../domain/lookup/lookup.ts';
import { readTransactionReference } from '../domain/lookup/pasted.ts';
import type { MicroUsdt } from '../domain/money.ts';
import type { Network } from '../domain/network.ts';
import { addressColumn } from '../store/db/address-column.ts';
import type { Sql } from '../store/db/database.ts';
import { rowOf } from '../store/db/rows-of.ts';
import { sealColumn } from '../store/db/seal.ts';
import {
  SEALED_EVENT,
  SEALED_INVOICE,
  SEALED_PAID,
  SEALED_STATUS,
  SEALED_TRANSFER,
} from '../store/db/sealed-tables.ts';
import {
  count,
  group,
  hex,
  listColumns,
  maybe,
  maybeCount,
  maybeHex,
  micro,
  sealed,
  sealedBefore,
  text,
} from '../store/db/statement.ts';
import { notAnnulled, payableAfter } from '../store/ledger/annulments.ts';
import { requestClaim } from '../store/ledger/checkout.ts';
import { chainHead, HEAD, JOIN_HEAD } from '../store/ledger/payments.ts';

/** The invoice that a payer is asking about, and the ledger's records of the transaction that belong to this invoice. */
const columns = {
  network: text<Network>(),
  seal: sealed(SEALED_INVOICE),
  paidSeal: sealed(SEALED_PAID),
  statusSeal: sealed(SEALED_STATUS),
  payingSeal: sealedBefore(SEALED_TRANSFER, { isOfOther: true }),
  sightingSeal: sealedBefore(SEALED_EVENT, { isOfOther: true }),
  /** The statement selects this only to check its integrity. */
  address: 'address',
  invoice: group({
    account: hex<AccountHex>(),
    requestedMicro: micro<MicroUsdt>('int8'),
    payableMicro: micro<MicroUsdt>('int8'),
    status: text<InvoiceStatus>(),
    createdAt: 'timestamptz',
    payableAfter: 'timestamptz',
    firstSeenAt: 'timestamptz?',
    payingTxId: maybeHex,
    wasSighted: 'bool',
    solidNumber: maybeCount,
    head: maybe(chainHead),
    isPaused: 'bool',
  }),
  ledger: maybe({
    ...{ kind: text<LedgerFacts['kind']>(), txId: hex(), blockNumber: count, blockTime: 'timestamptz' },
    seal: sealedBefore(SEALED_TRANSFER),
  }),
} as const;

// This is a single statement, so that the cursor and the recorded transfers are consistent. Rows of the transaction that belong to another
// invoice, or to none, are left out, because the answer must not depend on them. `offset 0` makes PostgreSQL read only the transaction's
// few transfers; otherwise it would read all of the project's transfers as long as it thinks the table is small.
/**
 * Finds the data for a look-up, given the checkout token. `txId` is 64 hex characters, or `null` if the payer gave no id. Returns `null` if
 * the link is unknown.
 */
const findLookup = rowOf(
  'lookup-select',
  columns,
  `select ${listColumns(columns, 'i.', {
    address: addressColumn('a'),
    invoice: {
      account: `encode(a.account, 'hex')`,
      payingTxId: `encode(coalesce(paid.tx_id, first.tx_id), 'hex')`,
      payableAfter: payableAfter('i.'),
      firstSeenAt: `(select min(r.first_time) from arrivals r
         where r.network = i.network and r.tx_id = decode($2, 'hex') and r.address_id = i.address_id and r.amount_micro = i.payable_micro)`,
      // When a block is deleted, its sightings are deleted as well, but the events about them aren't.
      wasSighted: 'e.seal is not null',
      solidNumber: 'c.solid_number',
      head: HEAD,
      isPaused: 'coalesce(c.pause_state is not null, false)',
    },
    payingSeal: `case when paid.id is not null then ${sealColumn(SEALED_TRANSFER, 'paid.')} end`,
    sightingSeal: 'e.seal',
    ledger: 't.',
  })}
   from invoices i
   join addresses a on a.id = i.address_id
   ${JOIN_HEAD}
   left join transfers paid on paid.id = i.paid_transfer_id
   left join lateral (
     select ${sealColumn(SEALED_EVENT, 'e.')} as seal from events e
     where e.project_id = i.project_id and e.invoice_id = i.id and e.type = 'invoice.confirming' and position($2 in e.body) > 0
     limit 1) e on true
   left join lateral (
     select s.tx_id from sightings s
     where s.project_id = i.project_id and s.invoice_id = i.id and i.status = 'CONFIRMING'
     order by s.block_number, s.position, s.tx_id, s.log_index limit 1) first on true
   left join lateral (
     (select t.kind, t.tx_id, t.block_number, t.block_time, ${sealColumn(SEALED_TRANSFER, 't.')} as seal
      from (
        select * from transfers r where network = i.network and tx_id = decode($2, 'hex') and ${notAnnulled('r')} offset 0) t
      where t.project_id = i.project_id and t.invoice_id = i.id
      order by t.kind = 'matched' desc limit 1)
     union all
     (select 'sighted', s.tx_id, s.block_number, b.block_time, null
      from sightings s join head_blocks b on b.network = s.network and b.number = s.block_number
      where s.network = i.network and s.tx_id = decode($2, 'hex')
        and s.project_id = i.project_id and s.invoice_id = i.id
      limit 1)
     limit 1) t on true
   where i.checkout_token = $1`,
  (checkoutToken: string, txId: string | null) => [checkoutToken, txId],
);

export type TransactionQuestion = {
  txId: string;
  /** The checkout token from the payer's link. */
  askedFor: string;
  /** The network of the client that is asking. */
  client: string;
} & Pick<LookupInvoice, 'solidNumber' | 'head'>;

/** Reads a transaction from the chain. Never rejects. */
export type ReadTransaction = (question: TransactionQuestion) => Promise<TransactionFacts>;

export type LookUpDeps = {
  db: Sql;
  /** One reader for each network whose nodes are configured in this process. */
  readTransaction: Partial<Record<Network, ReadTransaction>>;
};

/**
 * Compares the transaction that a payer pasted with a checkout link's invoice. Returns `null` if the link doesn't exist. The ledger is
 * checked first, but only for transfers that belong to this invoice, because no other transfer may be revealed. Throws
 * `DATABASE_UNAVAILABLE`.
 */
export async function lookUpTransaction(
  { db, readTransaction }: LookUpDeps,
  checkoutToken: string,
  pasted: string,
  client: string,
): Promise<LookupAnswer | null> {
  const reference = readTransactionReference(pasted);
  const txId = reference.kind === 'id' ? reference.txId : null;
  const found = await findLookup(db, checkoutToken, txId);
  if (found === null) return null;
  if (reference.kind === 'not-tron') return { code: 'not_tron', looksLike: reference.looksLike };
  if (reference.kind === 'none') {
    return { code: 'not_a_transaction_id', looksLike: reference.looksLike, characters: reference.characters };
  }
  const { invoice, network, ledger } = found;
  if (ledger !== null) return answerLookup(invoice, ledger);
  if (reference.linkTo !== null && reference.linkTo !== network && network !== 'devnet') {
    return { code: 'other_network', network: reference.linkTo };
  }
  const { solidNumber, head } = invoice;
  const read = readTransaction[network];
  const question = { txId: reference.txId, askedFor: checkoutToken, client, solidNumber, head };
  const facts = read === undefined ? ({ kind: 'unavailable', why: 'for-now' } as const) : await read(question);
  const answer = answerLookup(invoice, facts);
  if (answer.code === 'short' || answer.code === 'over') await requestClaim(db, checkoutToken, reference.txId);
  return answer;
}
