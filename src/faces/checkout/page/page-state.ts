import { type ContractState, STATE_EFFECTS } from '../../../core/domain/contract-event.ts';
import { AppError, type ErrorCode } from '../../../core/domain/errors.ts';
import type { InvoiceStatus } from '../../../core/domain/invoice.ts';
import type { AddressProof } from '../../../core/domain/manifest/manifest.ts';
import { asTyped, formatAmount } from '../../../core/domain/money.ts';
import type { Network } from '../../../core/domain/network.ts';
import { toIso, type UnixMs } from '../../../core/domain/time.ts';
import type { CheckoutInvoice } from '../../../core/store/ledger/checkout.ts';
import { type Html, html } from '../../web/html.ts';
import type { TextKey, Words } from '../words/words.ts';

/**
 * `usdt` contains the USDT contract for each network that this process knows. `proofOf` returns the proof that an address is in the signed
 * manifest.
 */
export type Site = {
  publicUrl(): string;
  usdt: Partial<Record<Network, string>>;
  proofOf(network: Network, address: string): AddressProof | null;
};

/** A page as a reader sees it at one moment. */
export type Page = {
  invoice: CheckoutInvoice;
  words: Words;
  /** Whether the reader chose the language explicitly, in which case links keep it. */
  isLanguageAsked: boolean;
  now: UnixMs;
  site: Site;
};

/**
 * Why the page must not ask for payment. `unconfirmed`: someone else changed a row or an address, or the address isn't in the signed
 * manifest. The others are states that the USDT contract can be in: `frozen` concerns the address, and `paused` all transfers.
 */
export type Suspension = 'unconfirmed' | (typeof STATE_EFFECTS)[ContractState]['page'];

/** A link whose invoice can't be relied on, so the page shows nothing from the invoice. */
type SuspendedLink = { checkoutToken: string; suspended: Suspension };

/** The invoice behind a link, or what is shown instead of it. */
export type LinkedInvoice = CheckoutInvoice | SuspendedLink;

/** A page for an invoice that can't be relied on. */
export type SuspendedPage = Pick<Page, 'words' | 'isLanguageAsked'> & { invoice: SuspendedLink };

export type LinkPage = Page | SuspendedPage;

/** Returns the page's URL, or the URL of a path below it. It keeps a language that was chosen explicitly. */
export function pageUrl(
  { invoice, words, isLanguageAsked }: LinkPage,
  below: '' | '/ask' | '/receipt' | '/receipt.json' | '/address-proof.json' = '',
): string {
  return `/c/${invoice.checkoutToken}${below}${isLanguageAsked ? `?lang=${words.language}` : ''}`;
}

/** Whether the page has an invoice to show. */
export function isReadable(page: LinkPage): page is Page {
  return 'id' in page.invoice;
}

const UNCONFIRMED: readonly ErrorCode[] = ['ADDRESS_DAMAGED', 'ADDRESS_NOT_VOUCHED', 'ROW_CHANGED'];

/**
 * Decides for every page, stream and response below a link whether payment is suspended, and why. `read` is the invoice, or the error that
 * occurred when it was read. Returns `null` if payment isn't suspended.
 */
export function suspensionOf(read: LinkedInvoice | Error): Suspension | null {
  if (read instanceof Error) return read instanceof AppError && UNCONFIRMED.includes(read.code) ? 'unconfirmed' : null;
  if ('suspended' in read) return read.suspended;
  if (read.isFrozen) return STATE_EFFECTS.frozen.page;
  return read.isPaused ? STATE_EFFECTS.paused.page : null;
}

/** Every state of an invoice that a payer can see. */
export const PAGE_STATES = [
  ...(['waiting', 'seen', 'replaced', 'paid', 'expired', 'withdrawn', 'settled', 'claimed', 'suspended'] as const),
  /** The invoice is waiting, even after the deadline, because Quittance can't see the network. */
  'blind',
] as const;

export type PageState = (typeof PAGE_STATES)[number];

/** How a state is presented. */
type Look = {
  heading: TextKey;
  /** The paragraphs below the heading. `notice` is another one, in a box. */
  texts: readonly TextKey[];
  notice: TextKey | null;
  /** The window title. If it is `null`, the title is the heading and the merchant. */
  title: 'titlePay' | 'titleFound' | 'titlePaid' | null;
  /** Whether the page shows how to pay: immediately, or after one more click. */
  pay: 'open' | 'folded' | null;
  /** The label for the transaction look-up form. If it is `null`, the page doesn't have this form. */
  question: TextKey | null;
  /** Whether the payer is waiting for the network; in that case, the page says if Quittance can't see it. */
  waits: boolean;
  /**
   * The state for `/status` and for a shop that embeds the page. It's `confirming` while a payment is expected to reappear, so
   * that no shop asks for the money again. After the deadline, both this and `waiting` become `expired`, as in the API.
   */
  shopState: 'waiting' | 'expired' | 'withdrawn' | 'settled' | 'claimed' | 'suspended' | 'confirming' | 'paid';
  drawing: Html;
};

const CLOCK = html`<path d="M12 7v5l3 2"/>`;
const DASH = html`<path d="M8 12h8"/>`;
const CHECK = html`<path d="m7.5 12.5 3 3 6-6.5"/>`;
const DOTS = html`<path d="M7.5 12h.01M12 12h.01M16.5 12h.01"/>`;
const MARK = html`<path d="M12 7v6m0 3.5h.01"/>`;

const OPEN = { texts: [], notice: null, title: 'titlePay', pay: 'open', question: 'findTitle', waits: true } as const;
const CLOSED = { texts: [], notice: null, title: null, pay: null, question: 'findOther', waits: false } as const;

export const STATES = {
  waiting: { ...OPEN, heading: 'waiting', shopState: 'waiting', drawing: CLOCK },
  blind: { ...OPEN, heading: 'waiting', shopState: 'waiting', drawing: CLOCK },
  expired: { ...OPEN, heading: 'expired', texts: ['expiredText'], shopState: 'expired', drawing: CLOCK },
  replaced: {
    ...{ ...OPEN, heading: 'gone', notice: 'goneText', title: null, pay: 'folded' },
    ...{ shopState: 'confirming', drawing: CLOCK },
  },
  seen: {
    ...{ ...CLOSED, heading: 'found', texts: ['foundText'], title: 'titleFound', waits: true },
    ...{ shopState: 'confirming', drawing: DOTS },
  },
  paid: {
    ...{ ...CLOSED, heading: 'paid', texts: ['paidText'], title: 'titlePaid' },
    ...{ shopState: 'paid', drawing: CHECK },
  },
  settled: { ...CLOSED, heading: 'settled', texts: ['settledText'], shopState: 'settled', drawing: CHECK },
  claimed: { ...CLOSED, heading: 'claimed', texts: ['claimedText'], shopState: 'claimed', drawing: CHECK },
  withdrawn: {
    ...{ ...CLOSED, heading: 'withdrawn', texts: ['withdrawnText'], question: 'findTitle', waits: true },
    ...{ shopState: 'withdrawn', drawing: DASH },
  },
  suspended: { ...CLOSED, heading: 'suspended', question: null, shopState: 'suspended', drawing: MARK },
} as const satisfies Record<PageState, Look>;

/** The texts for each reason for a suspension. */
const SUSPENDED: Readonly<Record<Suspension, Pick<Look, 'heading' | 'texts'>>> = {
  unconfirmed: { heading: 'suspended', texts: ['suspendedText', 'suspendedPaid'] },
  frozen: { heading: 'suspended', texts: ['frozenText', 'suspendedPaid'] },
  paused: { heading: 'paused', texts: ['pausedText'] },
};

const OF_STATUS = {
  PENDING: 'waiting',
  EXPIRED: 'expired',
  CONFIRMING: 'seen',
  PAID: 'paid',
} as const satisfies Record<InvoiceStatus, PageState>;

/** 20 blocks on the main network. */
const BLIND_AFTER_MS = 60_000;

/** Whether the newest examined block is too old. Then Quittance can't see the network, and the page pauses its countdown. */
export function isBlind({ head }: Pick<CheckoutInvoice, 'head'>, now: UnixMs): boolean {
  return head === null || now - head.time > BLIND_AFTER_MS;
}

/** Combines everything that was read about a link into one state. */
export function stateOf(page: LinkPage): PageState {
  if (!isReadable(page)) return 'suspended';
  const { invoice, now } = page;
  const state = OF_STATUS[invoice.status];
  if (state === 'seen' || state === 'paid') return state;
  if (invoice.isSettled) return 'settled';
  if (invoice.claimedMicro !== null) return 'claimed';
  if (invoice.withdrawnAt !== null) return 'withdrawn';
  if (suspensionOf(invoice) !== null) return 'suspended';
  if (invoice.hadPayment) return 'replaced';
  return isBlind(invoice, now) ? 'blind' : state;
}

/** `isShownBlind` means that the page says that Quittance can't see the network. `values` are inserted into the heading. */
export type PageLook = Look & { state: PageState; isShownBlind: boolean; values: Readonly<Record<string, string>> };

/** Returns how a page is presented: its state, with the text for a suspension reason or for a deadline that has passed. */
export function lookOf(page: LinkPage): PageLook {
  const state = stateOf(page);
  const look: Look = state === 'blind' && isExpired(page) ? STATES.expired : STATES[state];
  const suspended = state === 'suspended' ? suspensionOf(page.invoice) : null;
  const isShownBlind = look.waits && isReadable(page) && isBlind(page.invoice, page.now);
  const values: PageLook['values'] =
    isReadable(page) && page.invoice.claimedMicro !== null
      ? { amount: asTyped(formatAmount(page.invoice.claimedMicro)) }
      : {};
  return { ...look, ...(suspended && SUSPENDED[suspended]), state, isShownBlind, values };
}

const isExpired = (page: LinkPage) => isReadable(page) && page.invoice.status === 'EXPIRED';

/** Returns the state under the name that shops know. */
export function shopStateOf(page: LinkPage): Look['shopState'] {
  const state = stateOf(page);
  const { shopState } = STATES[state];
  return (shopState === 'waiting' || state === 'replaced') && isExpired(page) ? 'expired' : shopState;
}

/**
 * The response of `/status`. It contains amount and address only while a transfer is wanted, so that no payer sends the money twice. It
 * contains neither the invoice id nor the external id.
 */
export type CheckoutStatus = {
  state: Look['shopState'];
  amount: string | null;
  address: string | null;
  /** Why payment is suspended in the state `suspended`; otherwise `null`. */
  suspended: Suspension | null;
  /** These two are `null` if none of the invoice may be shown. */
  projectName: string | null;
  expiresAt: string | null;
  blind: boolean;
  transaction: null | { txId: string; blockNumber: number; blockTime: string; confirmations: number; amount: string };
};

export function statusOf(page: LinkPage): CheckoutStatus {
  const state = stateOf(page);
  const suspended = state === 'suspended' ? suspensionOf(page.invoice) : null;
  const common = { state: shopStateOf(page), suspended };
  if (!isReadable(page)) {
    return {
      ...{ ...common, amount: null, address: null, projectName: null, expiresAt: null },
      ...{ blind: false, transaction: null },
    };
  }
  const { invoice, now } = page;
  const { transfer } = invoice;
  const amount = asTyped(formatAmount(invoice.payableMicro));
  const wanted = STATES[state].pay === 'open' ? { amount, address: invoice.address } : { amount: null, address: null };
  return {
    ...common,
    ...wanted,
    ...{ projectName: invoice.brand.name, expiresAt: toIso(invoice.expiresAt), blind: isBlind(invoice, now) },
    transaction: transfer && {
      ...{ txId: transfer.txId, blockNumber: transfer.blockNumber, blockTime: toIso(transfer.blockTime) },
      ...{ confirmations: confirmationsOf(invoice), amount },
    },
  };
}

/**
 * Whether a reader may have the proof of the invoice's address, which contains the address: while the page shows the address, and once a
 * payment was found.
 */
export function isProofShown(page: Page): boolean {
  const state = stateOf(page);
  return STATES[state].pay !== null || state === 'seen' || state === 'paid';
}

/** The number of confirmations, including the payment's own block. */
export function confirmationsOf({ transfer, head }: CheckoutInvoice): number {
  return transfer === null ? 0 : Math.max(1, (head?.number ?? transfer.blockNumber) - transfer.blockNumber + 1);
}
