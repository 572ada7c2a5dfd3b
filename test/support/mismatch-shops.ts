import type { Suspect } from '../../src/core/domain/mismatch/finding.ts';
import { microUsdt } from '../../src/core/domain/money.ts';
import { codeWords, type Policy, wordRange } from '../../src/core/domain/policy.ts';
import { type UnixMs, unixMs } from '../../src/core/domain/time.ts';
import type { Random } from './random.ts';

/** A shop at one moment, with its invoices of the last days. */
export type Shop = {
  name: ShopName;
  policy: Policy;
  addresses: string[];
  now: UnixMs;
  invoices: Suspect[];
};

export const SHOP_NAMES = ['one invoice', 'fifty', 'six hundred of one price', 'mixed prices', 'exact'] as const;
export type ShopName = (typeof SHOP_NAMES)[number];

export const NOW = unixMs(Date.UTC(2026, 8, 1, 12));
export const SURCHARGE_MICRO = 10_000n;
const MINUTE_MS = 60_000;
const LIFETIME_MS = 30 * MINUTE_MS;
const PRICES = ['9.99', '12.50', '19.00', '24.00', '25.00', '49.90', '99.00', '130.00', '249.95', '1200.00'].map(
  (price) => BigInt(Math.round(Number(price) * 1e6)),
);

export function pick<Item>(random: Random, items: readonly Item[]): Item {
  return items[Math.floor(random() * items.length)] as Item;
}

export function below(random: Random, bound: number): number {
  return Math.floor(random() * bound);
}

export function randomAddress(random: Random): string {
  const alphabet = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
  return `T${Array.from({ length: 33 }, () => alphabet.charAt(below(random, alphabet.length))).join('')}`;
}

/** A price that no one else in a list has: any with two decimals between 2 and 500. */
function anyPrice(random: Random): bigint {
  return BigInt(200 + below(random, 49_800)) * 10_000n;
}

/** Creates a shop with open, expired and paid invoices within its `policy`, so that no (address, amount) occurs twice. */
export function makeShop(random: Random, name: ShopName): Shop {
  const policy = name === 'exact' ? 'exact' : 'tail';
  const addresses = Array.from({ length: { 'mixed prices': 3, exact: 12 }[name as string] ?? 1 }, () =>
    randomAddress(random),
  );
  const shop: Shop = { name, policy, addresses, now: NOW, invoices: [] };
  const onePrice = random() < 0.5 ? 25_000_000n : anyPrice(random);
  const price = () =>
    name === 'six hundred of one price' || name === 'one invoice'
      ? onePrice
      : random() < 0.6
        ? pick(random, PRICES)
        : anyPrice(random);
  const open = { 'one invoice': 1, fifty: 50, 'six hundred of one price': 600, 'mixed prices': 120, exact: 40 }[name];
  const past = name === 'one invoice' ? 0 : 100;
  // Most attentive payers have already paid; those with open invoices pay less attention.
  for (let i = 0; i < open; i++) addInvoice(random, shop, price(), below(random, 25) * MINUTE_MS, null);
  for (let i = 0; i < past; i++) {
    const ageMs = LIFETIME_MS + below(random, 2 * 24 * 60) * MINUTE_MS;
    addInvoice(random, shop, price(), ageMs, random() < 0.8 ? ageMs - below(random, 20) * MINUTE_MS : null);
  }
  return shop;
}

/** Adds an invoice of this age, or returns `null` if the amount isn't available. */
export function addInvoice(
  random: Random,
  shop: Shop,
  requestedMicro: bigint,
  ageMs: number,
  paidAgoMs: number | null,
  payableMicro = freeAmount(random, shop, requestedMicro),
): Suspect | null {
  if (payableMicro === null) return null;
  const taken = new Set(shop.invoices.filter((i) => i.payableMicro === payableMicro).map(({ address }) => address));
  const address = shop.addresses.find((candidate) => !taken.has(candidate));
  if (address === undefined) return null;
  const createdAt = unixMs(shop.now - ageMs);
  const number = shop.invoices.length + 1;
  const invoice: Suspect = {
    id: `00000000-0000-7000-8000-${String(number).padStart(12, '0')}`,
    externalId: `order-${number}`,
    status: paidAgoMs !== null ? 'PAID' : ageMs > LIFETIME_MS ? 'EXPIRED' : 'PENDING',
    requestedMicro: microUsdt(requestedMicro),
    payableMicro: microUsdt(payableMicro),
    address,
    createdAt,
    payableAfter: unixMs(createdAt - 3000),
    expiresAt: unixMs(createdAt + LIFETIME_MS),
    paid: paidAgoMs === null ? null : { at: unixMs(shop.now - paidAgoMs), from: randomAddress(random) },
  };
  shop.invoices.push(invoice);
  return invoice;
}

/** The code words of a price, calculated once because that takes longer than everything else. */
const wordsOf = new Map<bigint, bigint[]>();

function freeAmount(random: Random, shop: Shop, requestedMicro: bigint): bigint | null {
  if (shop.policy === 'exact') return requestedMicro;
  const words = wordsOf.get(requestedMicro) ?? codeWords(wordRange(microUsdt(requestedMicro), SURCHARGE_MICRO));
  wordsOf.set(requestedMicro, words);
  const taken = new Set<bigint>(shop.invoices.map(({ payableMicro }) => payableMicro));
  const free = words.filter((word) => !taken.has(word));
  return free.length === 0 ? null : pick(random, free);
}
