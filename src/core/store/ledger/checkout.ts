import { hadPayment, type InvoiceStatus } from '../../domain/invoice.ts';
import { readOptions } from '../../domain/invoice-options.ts';
import type { MicroUsdt } from '../../domain/money.ts';
import type { Network } from '../../domain/network.ts';
import type { Price } from '../../domain/price.ts';
import { SETTLING } from '../../domain/resolution.ts';
import { addressColumn } from '../db/address-column.ts';
import { answerOf, commandOf } from '../db/rows-of.ts';
import { sealColumn } from '../db/seal.ts';
import {
  SEALED_ADAPTER_ORDER,
  SEALED_ANNULMENT,
  SEALED_CLAIM,
  SEALED_INVOICE,
  SEALED_PAID,
  SEALED_PROJECT,
  SEALED_RESOLUTION,
  SEALED_STATUS,
  SEALED_TRANSFER,
  SEALED_WITHDRAWN,
} from '../db/sealed-tables.ts';
import {
  group,
  json,
  listColumns,
  maybe,
  maybeCount,
  maybeHex,
  maybeMicro,
  micro,
  type Row,
  sealed,
  sealedBefore,
  text,
} from '../db/statement.ts';
import { notAnnulled, resolutionColumn } from './annulments.ts';
import {
  chainHead,
  HEAD,
  JOIN_HEAD,
  JOIN_HEAD_BLOCK,
  JOIN_PAYING_TRANSFER,
  type PayingTransfer,
  payingTransfer,
} from './payments.ts';

/**
 * The channel for invoice status changes. Each commit sends a notification with the invoice's id (migration 0005), or with `ALL_PAGES`
 * (migration 0034).
 */
export const INVOICES_CHANNEL = 'quittance_invoices';
export const ALL_PAGES = 'all';

/** The merchant's branding. `accent` is a colour such as `#0a6549`; `logoId` is 32 hex characters. */
const brand = {
  name: 'text',
  supportContact: 'text?',
  returnUrl: 'text?',
  accent: 'text?',
  logoId: 'text?',
} as const;

export type Brand = Row<typeof brand>;

const columns = {
  id: 'uuid',
  network: text<Network>(),
  status: text<InvoiceStatus>(),
  checkoutToken: 'text',
  expiresAt: 'timestamptz',
  eventCount: 'int4',
  requestedMicro: micro<MicroUsdt>('int8'),
  payableMicro: micro<MicroUsdt>('int8'),
  seal: sealed(SEALED_INVOICE),
  paidSeal: sealed(SEALED_PAID),
  statusSeal: sealed(SEALED_STATUS),
  withdrawnAt: 'timestamptz?',
  withdrawnSeal: sealed(SEALED_WITHDRAWN),
  /** Whether the current resolution of a transfer refers to the invoice and settles it. */
  isSettled: 'bool',
  settledSeal: sealedBefore(SEALED_RESOLUTION, { isOfOther: true }),
  /** The amount of an unresolved, unmatched transfer that the payer looked up. */
  claimedMicro: maybeMicro<MicroUsdt>(),
  claimSeal: sealedBefore(SEALED_CLAIM, { isOfOther: true }),
  claimedSeal: sealedBefore(SEALED_TRANSFER, { isOfOther: true }),
  options: 'text?',
  address: 'address',
  brand: group(brand),
  /** An adapter order's return link, which is used instead of the project's. */
  orderReturnUrl: 'text?',
  orderSeal: sealedBefore(SEALED_ADAPTER_ORDER, { isOfOther: true }),
  /** The origins that may embed the page, as in the header. */
  embedOrigins: 'text?',
  brandSeal: sealedBefore(SEALED_PROJECT, { isOfOther: true }),
  /** The id of an unresolved second transfer of exactly the payable amount. */
  secondTxId: maybeHex,
  secondSeal: sealedBefore(SEALED_TRANSFER, { isOfOther: true }),
  /** Whether the invoice is `PAID` although its transfer isn't on the chain and was annulled. */
  isDenied: 'bool',
  denialSeal: sealedBefore(SEALED_ANNULMENT, { isOfOther: true }),
  /** The network's block 0, which shows whether a wallet is on another network. `null` if unknown. */
  genesisId: maybeHex,
  /** `null` if no block has been examined yet. */
  head: maybe(chainHead),
  /** The energy price that the watcher wrote last. This row has no seal. */
  energyPrice: json<unknown>(),
  /** Whether Tether froze the invoice's address, and whether it paused all transfers. */
  isFrozen: 'bool',
  isPaused: 'bool',
  /** All blocks up to this height are irreversible, and their transfers are recorded. */
  solidNumber: maybeCount,
  transfer: maybe(payingTransfer),
} as const;

/**
 * An invoice, with everything that the payer's page needs. `hadPayment` means that the invoice wasn't withdrawn, and is waiting again
 * because the block of its payment was orphaned.
 */
export type CheckoutInvoice = Omit<
  Row<typeof columns>,
  | 'eventCount'
  | 'seal'
  | 'paidSeal'
  | 'statusSeal'
  | 'withdrawnSeal'
  | 'settledSeal'
  | 'claimSeal'
  | 'claimedSeal'
  | 'secondSeal'
  | 'denialSeal'
  | 'brandSeal'
  | 'orderReturnUrl'
  | 'orderSeal'
  | 'options'
  | 'transfer'
> & {
  hadPayment: boolean;
  /** How the shop describes the purchase. */
  description: string | null;
  /** The price in another currency, if the requested amount was converted from such a price. */
  price: Price | null;
  transfer: PayingTransfer | null;
};

const SELECT = `select ${listColumns(columns, 'i.', {
  isSettled: 'settled.seal is not null',
  settledSeal: 'settled.seal',
  claimedMicro: 'claim.amount_micro',
  claimSeal: 'claim.seal',
  claimedSeal: 'claim.transfer_seal',
  address: addressColumn('a'),
  brand: 'p.',
  orderReturnUrl: 'o.return_url',
  orderSeal: `case when o.invoice_id is not null then ${sealColumn(SEALED_ADAPTER_ORDER, 'o.')} end`,
  embedOrigins: 'p.embed_origins',
  brandSeal: sealColumn(SEALED_PROJECT, 'p.'),
  secondTxId: `encode(second.tx_id, 'hex')`,
  secondSeal: 'second.seal',
  isDenied: 'n.transfer_id is not null',
  denialSeal: sealColumn(SEALED_ANNULMENT, 'n.'),
  genesisId: `encode(c.genesis_id, 'hex')`,
  head: HEAD,
  energyPrice: `coalesce((select (n.status->'energyPrice')::text from chain_status n where n.network = i.network), 'null')`,
  isFrozen: 'a.freeze_state is not null',
  isPaused: 'coalesce(c.pause_state is not null, false)',
  solidNumber: 'c.solid_number',
  transfer: 't.',
})}
   from invoices i
   join addresses a on a.id = i.address_id
   join projects p on p.id = i.project_id
   left join adapter_orders o on o.project_id = i.project_id and o.invoice_id = i.id
   ${JOIN_HEAD}
   ${JOIN_PAYING_TRANSFER}
   left join transfer_annulments n on n.transfer_id = i.paid_transfer_id
   left join lateral (
     select d.tx_id, ${sealColumn(SEALED_TRANSFER, 'd.')} as seal from transfers d
     where d.project_id = i.project_id and d.invoice_id = i.id and d.kind = 'duplicate' and ${notAnnulled('d')}
       and not exists (select from transfer_resolutions r where r.transfer_id = d.id)
     order by d.id limit 1) second on true
   left join lateral (
     select ${sealColumn(SEALED_RESOLUTION, 'r.')} as seal from transfer_resolutions r
     where r.invoice_id = i.id and ${resolutionColumn('r.')} in (${SETTLING.map((kind) => `'${kind}'`).join()})
       and not exists (select from transfer_resolutions l where l.transfer_id = r.transfer_id and l.id > r.id)
       and not exists (select from transfer_annulments x where x.transfer_id = r.transfer_id)
     order by r.id limit 1) settled on true
   left join lateral (
     select t.amount_micro, ${sealColumn(SEALED_CLAIM, 'm.')} as seal, ${sealColumn(SEALED_TRANSFER, 't.')} as transfer_seal
     from transfer_claims m join transfers t on t.id = m.transfer_id
     where m.project_id = i.project_id and m.invoice_id = i.id and ${notAnnulled('t')}
       and not exists (select from transfer_resolutions r where r.transfer_id = m.transfer_id)
     order by m.claimed_at limit 1) claim on true`;

/** Returns the invoice behind a checkout link. */
export const findCheckoutInvoice = answerOf(
  'checkout-select',
  columns,
  `${SELECT} where i.checkout_token = $1`,
  (checkoutToken: string) => [checkoutToken],
  ([row]) => (row === undefined ? null : toInvoice(row)),
);

/** Returns the invoices behind several links, in any order. At most 500 links per call. */
export const readCheckoutInvoices = answerOf(
  'checkout-select-many',
  columns,
  `${SELECT} where i.checkout_token = any($1::text[])`,
  (checkoutTokens: readonly string[]) => [checkoutTokens],
  (rows) => rows.map(toInvoice),
);

function toInvoice({ eventCount, orderReturnUrl, options, ...invoice }: Row<typeof columns>): CheckoutInvoice {
  const { returnUrl = orderReturnUrl ?? invoice.brand.returnUrl, ...said } = readOptions(options);
  const { description = null, price = null } = said;
  const brand = { ...invoice.brand, returnUrl };
  return {
    ...invoice,
    brand,
    description,
    price,
    hadPayment: invoice.withdrawnAt === null && hadPayment(invoice.status, eventCount),
  };
}

const networkHead = { network: text<Network>(), head: group(chainHead) } as const;

/** Returns the newest examined block of every network that has one. */
export const readChainHeads = answerOf(
  'checkout-heads',
  networkHead,
  `select ${listColumns(networkHead, 'c.', { head: HEAD })} from chain_cursors c ${JOIN_HEAD_BLOCK}`,
  () => [],
  (rows) => new Map(rows.map(({ network, head }) => [network, head])),
);

/** Payers rarely need more than one or two corrections. */
const MAX_OF_INVOICE = 3;
/**
 * Records that a payer asked about a transaction (`txId`: 64 hex characters) on the page behind the link with a token. At most three
 * requests and claims are kept per invoice, and none for a paid one.
 */
export const requestClaim = commandOf(
  'claim-request',
  `insert into claim_requests (project_id, invoice_id, network, tx_id)
   select i.project_id, i.id, i.network, decode($2, 'hex') from invoices i
   where i.checkout_token = $1 and i.status in ('PENDING', 'EXPIRED')
     and (select count(*) from claim_requests r where r.network = i.network and r.project_id = i.project_id and r.invoice_id = i.id)
       + (select count(*) from transfer_claims c where c.project_id = i.project_id and c.invoice_id = i.id) < ${MAX_OF_INVOICE}
     and not exists (
       select from transfer_claims c join transfers t on t.id = c.transfer_id
       where c.project_id = i.project_id and c.invoice_id = i.id and t.tx_id = decode($2, 'hex'))
   on conflict do nothing`,
  (checkoutToken: string, txId: string) => [checkoutToken, txId],
);
