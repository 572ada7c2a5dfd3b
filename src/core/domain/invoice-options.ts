import type { MicroUsdt } from './money.ts';
import type { ConvertedPrice, Price } from './price.ts';

/**
 * An invoice's optional fields. `returnUrl` is for example `https://shop.example/orders/{invoiceId}`; `description` is shown to the payer;
 * `metadata` holds the shop's private values; `price` was converted to the amount. A price has no rate in a request, because only the
 * created invoice has one.
 */
export type InvoiceOptions = {
  returnUrl?: string;
  expiresInSeconds?: number;
  description?: string;
  metadata?: Readonly<Record<string, string>>;
  price?: Price | ConvertedPrice;
};

export const OPTION_NAMES = ['returnUrl', 'expiresInSeconds', 'description', 'metadata', 'price'] as const;

/**
 * Returns the options as canonical text that doesn't depend on their order, or `null` if there are none. This text is stored, sealed and
 * compared.
 */
export function formatOptions(options: InvoiceOptions): string | null {
  const { metadata = {}, ...rest } = options;
  const pairs = Object.entries(metadata).toSorted(([one], [other]) => (one < other ? -1 : 1));
  const said = { ...rest, ...(pairs.length > 0 && { metadata: Object.fromEntries(pairs) }) };
  const entries = OPTION_NAMES.flatMap((name) => (said[name] === undefined ? [] : [[name, said[name]] as const]));
  return entries.length === 0 ? null : JSON.stringify(Object.fromEntries(entries));
}

/**
 * Parses such a text. If a value has the wrong type, someone wrote it directly to the database. Such a value is dropped, because pages must
 * show only text.
 */
export function readOptions(text: string | null): InvoiceOptions {
  if (text === null) return {};
  const { returnUrl, expiresInSeconds, description, metadata, price } = JSON.parse(text) as Record<string, unknown>;
  return {
    ...(typeof returnUrl === 'string' && { returnUrl }),
    ...(typeof expiresInSeconds === 'number' && { expiresInSeconds }),
    ...(typeof description === 'string' && { description }),
    ...(isTexts(metadata) && { metadata }),
    ...(isPrice(price) && { price }),
  };
}

function isTexts(value: unknown): value is Record<string, string> {
  return (
    typeof value === 'object' && value !== null && Object.values(value).every((member) => typeof member === 'string')
  );
}

function isPrice(value: unknown): value is Price {
  if (typeof value !== 'object' || value === null) return false;
  const { amount, currency } = value as Record<string, unknown>;
  return typeof amount === 'string' && typeof currency === 'string';
}

/** Returns the price that an invoice was created for, together with the rate, or `null` if it was created for an amount. */
export function convertedPriceOf(options: string | null): ConvertedPrice | null {
  const { price } = readOptions(options);
  if (price === undefined || !('rate' in price)) return null;
  const { amount, currency, rate, rateAt, rateSource } = price;
  const isKnown = typeof rate === 'string' && typeof rateSource === 'string' && typeof (rateAt ?? '') === 'string';
  return isKnown ? { amount, currency, rate, rateAt, rateSource } : null;
}

/** Whether an invoice was created for a price, so that its amount depends on the rate at that moment. */
function isPriced(options: string | null): boolean {
  return readOptions(options).price !== undefined;
}

/** The options without the price's rate, which the shop didn't specify. */
function said({ price, ...others }: InvoiceOptions): InvoiceOptions {
  return price === undefined ? others : { ...others, price: { amount: price.amount, currency: price.currency } };
}

/** Returns the names of the options that differ between two such texts. */
function differingOptions(one: string | null, other: string | null): string[] {
  if (one === other) return [];
  const [ours, theirs] = [said(readOptions(one)), said(readOptions(other))];
  return OPTION_NAMES.filter(
    (name) => formatOptions({ [name]: ours[name] }) !== formatOptions({ [name]: theirs[name] }),
  );
}

/**
 * The contents of a request to create an invoice (for `options`, see `formatOptions`). The asset and the network aren't part of the
 * request, because each project has exactly one of each.
 */
type Asked = { requestedMicro: MicroUsdt; externalId: string; options: string | null };

/** An invoice that has a request's idempotency key, its external id, or both. */
export type Holder = Asked & { hasKey: boolean };

export type Repeated<Invoice extends Holder> =
  | { kind: 'replayed'; invoice: Invoice }
  | { kind: 'conflict'; rule: 'idempotencyKey' | 'externalId'; fields: string[]; existing: Invoice };

/**
 * Compares a request with its project's invoices that have its key or external id. Returns `null` if there are none. If the key was used
 * before, the request must be identical; otherwise it's a conflict. An external id that was used with a different key is always a conflict.
 * `fields` are the fields whose meaning differs. The key has precedence.
 */
export function judgeRepeat<Invoice extends Holder>(
  holders: readonly Invoice[],
  asked: Asked,
): Repeated<Invoice> | null {
  const sameKey = holders.find(({ hasKey }) => hasKey);
  const existing = sameKey ?? holders[0];
  if (existing === undefined) return null;
  const fields = differingFields(existing, asked);
  if (sameKey !== undefined && fields.length === 0) return { kind: 'replayed', invoice: sameKey };
  return { kind: 'conflict', rule: sameKey === undefined ? 'externalId' : 'idempotencyKey', fields, existing };
}

function differingFields(existing: Asked, asked: Asked): string[] {
  const fields: string[] = [];
  // If both were created for a price, don't compare the amounts, because the rate may have changed since. The comparison of the options
  // covers the price.
  const isByRate = isPriced(existing.options) && isPriced(asked.options);
  if (!isByRate && existing.requestedMicro !== asked.requestedMicro) fields.push('amount');
  if (existing.externalId !== asked.externalId) fields.push('externalId');
  return [...fields, ...differingOptions(existing.options, asked.options)];
}
