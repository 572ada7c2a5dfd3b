import type { TronAddress } from '@quittance/tron/address';
import { microUsdt } from '../../src/core/domain/money.ts';
import { type UnixMs, unixMs } from '../../src/core/domain/time.ts';
import type { Brand, CheckoutInvoice } from '../../src/core/store/ledger/checkout.ts';
import type { PayingTransfer } from '../../src/core/store/ledger/payments.ts';
import {
  PAGE_STATES,
  type Page,
  type PageState,
  type SuspendedPage,
} from '../../src/faces/checkout/page/page-state.ts';
import type { Language } from '../../src/faces/checkout/words/languages.ts';
import { type Words, wordsOf } from '../../src/faces/checkout/words/words.ts';

/** A little over 12 minutes before the invoice expires. */
const NOW = Date.parse('2026-09-01T12:17:30.000Z');

/** Everything a merchant can set. */
export const FULL_BRAND: Brand = {
  name: 'Café “Zur Post” & Söhne',
  supportContact: 'help@shop.example',
  returnUrl: 'https://shop.example/orders/1234567890?thanks=1',
  accent: '#7a1fa2',
  logoId: '0123456789abcdef0123456789abcdef',
};

const PLAIN_BRAND: Brand = { name: 'Test shop', supportContact: null, returnUrl: null, accent: null, logoId: null };

export const USDT = 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t' as TronAddress;

const TRANSFER: PayingTransfer = {
  txId: '0ca1'.repeat(16),
  logIndex: 0,
  blockNumber: 68_123_456,
  blockId: `${'00'.repeat(28)}68123456`,
  blockTime: unixMs(NOW - 60_000),
  from: 'TJRabPrwbZy45sbavfcjinPJC18kjpRTv8',
};

const LONG_AGO = { number: TRANSFER.blockNumber + 6, time: unixMs(NOW - 90_000) };
const SEEN = { status: 'CONFIRMING', transfer: TRANSFER } as const;
const PAID = { status: 'PAID', transfer: TRANSFER } as const;
const EXPIRED = { status: 'EXPIRED', expiresAt: unixMs(NOW - 60_000) } as const;

/** The changes that turn a waiting invoice into one of each state. */
const STATES: Readonly<Record<PageState, Partial<CheckoutInvoice>>> = {
  waiting: {},
  seen: SEEN,
  replaced: { hadPayment: true },
  paid: PAID,
  expired: EXPIRED,
  withdrawn: { withdrawnAt: unixMs(NOW - 60_000) },
  settled: { isSettled: true },
  claimed: { claimedMicro: microUsdt(123_455_990_007n) },
  suspended: { isFrozen: true },
  blind: { head: LONG_AGO },
};

/** Variants that a page can show within a state. */
const VARIANTS = {
  'second payment': { ...PAID, secondTxId: 'c7'.repeat(32) },
  'second payment, not final': { ...SEEN, secondTxId: 'c7'.repeat(32) },
  'expired and blind': { ...EXPIRED, head: LONG_AGO },
  'seen and blind': { ...SEEN, head: LONG_AGO },
  'replaced and blind': { hadPayment: true, head: LONG_AGO },
  'withdrawn and blind': { withdrawnAt: unixMs(NOW - 60_000), head: LONG_AGO },
  'claimed, withdrawn and expired': {
    ...{ ...EXPIRED, claimedMicro: microUsdt(123_455_990_007n), withdrawnAt: unixMs(NOW - 60_000) },
  },
  paused: { isPaused: true },
} satisfies Record<string, Partial<CheckoutInvoice>>;

export type PageView = PageState | keyof typeof VARIANTS;

/** Every view of an invoice that a payer can see. */
export const PAGE_VIEWS: readonly PageView[] = [...PAGE_STATES, ...(Object.keys(VARIANTS) as PageView[])];

/** `invoice` and `brand` replace only the members that they name; the others replace the page's own. */
export type PageOverrides = Partial<Omit<Page, 'invoice' | 'words'>> & {
  language?: Language;
  words?: Words;
  invoice?: Partial<CheckoutInvoice>;
  brand?: Partial<Brand>;
};

/** Builds a page as the server does, of a mainnet invoice with everything that a page can show. */
export function checkoutPage(view: PageView, overrides: PageOverrides = {}): Page {
  const { language = 'en', words = wordsOf(language), invoice, brand, ...rest } = overrides;
  return {
    words,
    isLanguageAsked: false,
    now: unixMs(NOW),
    site: {
      publicUrl: () => 'https://pay.example',
      usdt: { mainnet: USDT, nile: USDT, devnet: USDT },
      proofOf: () => null,
    },
    ...rest,
    invoice: {
      id: '0198e1c2-0000-7000-8000-000000000001',
      network: 'mainnet',
      status: 'PENDING',
      checkoutToken: '1111111111111111111111',
      expiresAt: unixMs(NOW + 12 * 60_000 + 30_000),
      requestedMicro: microUsdt(123_456_990_000n),
      payableMicro: microUsdt(123_456_990_007n),
      address: 'TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZY' as TronAddress,
      genesisId: '00000000000000001ebf88508a03865c71d452e25f4d51194196a1d22b6653dc',
      hadPayment: false,
      withdrawnAt: null,
      isSettled: false,
      claimedMicro: null,
      embedOrigins: null,
      secondTxId: null,
      isDenied: false,
      energyPrice: { sun: 100, at: NOW - 60_000 },
      isFrozen: false,
      isPaused: false,
      solidNumber: TRANSFER.blockNumber,
      head: { number: TRANSFER.blockNumber + 6, time: unixMs(NOW - 1000) },
      transfer: null,
      description: null,
      price: null,
      ...{ ...STATES, ...VARIANTS }[view],
      ...invoice,
      brand: { ...PLAIN_BRAND, ...brand },
    },
  };
}

/** Builds the page of the same link while nothing about its invoice may be shown. */
export function suspendedPage(language: Language = 'en'): SuspendedPage & { now: UnixMs } {
  return {
    words: wordsOf(language),
    isLanguageAsked: false,
    now: unixMs(NOW),
    invoice: { checkoutToken: '1111111111111111111111', suspended: 'unconfirmed' },
  };
}
