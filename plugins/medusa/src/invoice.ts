import type { BigNumber } from '@medusajs/framework/utils';
import { type InvoiceWithPayment, Quittance, type QuittanceError } from '@quittance/sdk';

export type QuittanceOptions = {
  /** The URL of your Quittance, such as `https://pay.example.com`. */
  url: string;
  /** The secret key of the project of this shop. */
  apiKey: string;
  /** The secret of the webhook endpoint; two during a rotation. */
  webhookSecrets: readonly string[];
  /** The project (`prj_…`): webhooks of another one are refused. */
  projectId?: string;
};

const TIMEOUT_MS = 5_000;

export function createClient({ url, apiKey }: QuittanceOptions): Quittance {
  return new Quittance({ baseUrl: url, apiKey, timeoutMs: TIMEOUT_MS, maxRetries: 1 });
}

/** Currencies whose amounts are taken as USDT. Quittance converts all others. */
const AS_USDT = ['USD', 'USDT'];
/** Decimals of USDT, and of currencies that Intl doesn't know. */
const MICRO_DIGITS = 6;
/** An amount of the main unit: "25", "25.5". */
const AMOUNT = /^(?:0|[1-9]\d{0,11})(?:\.\d{1,6})?$/;

/** What an invoice is created for: an amount of USDT, or a price in `currency`. */
export type Asked = { amount: string; currency?: string };

/** What to ask for, rounded like prices in the currency, because Medusa doesn't round totals. Throws a RangeError if it isn't an amount. */
export function readAmount(amount: BigNumber, currency: string): Asked {
  const code = currency.toUpperCase();
  const text = amount.bigNumber?.decimalPlaces(countDecimals(code)).toFixed() ?? '';
  if (!AMOUNT.test(text) || /^[0.]+$/.test(text))
    throw new RangeError(`${text.slice(0, 40)} is not an amount that can be paid`);
  return AS_USDT.includes(code) ? { amount: text } : { amount: text, currency: code };
}

/** Medusa rounds captures in the same way. */
function countDecimals(code: string): number {
  try {
    const { maximumFractionDigits } = new Intl.NumberFormat('en', {
      style: 'currency',
      currency: code,
    }).resolvedOptions();
    return maximumFractionDigits ?? MICRO_DIGITS;
  } catch {
    return MICRO_DIGITS;
  }
}

/** The members of a request that creates such an invoice. */
export function toInput({ amount, currency }: Asked) {
  return currency === undefined ? { amount } : { price: { amount, currency } };
}

/**
 * The external id of a session's invoice, such as `payses_01:25:EUR`, or `payses_01:25:EUR:3` for its third. Each change of the amount or
 * currency makes another invoice, because the earlier ones are withdrawn.
 */
export function externalIdOf(sessionId: string, { amount, currency }: Asked, attempt = 1): string {
  return [sessionId, amount, ...(currency === undefined ? [] : [currency]), ...(attempt === 1 ? [] : [attempt])].join(
    ':',
  );
}

/** From such an id back; null for one that this shop did not make. */
export function readExternalId(externalId: string): ({ sessionId: string; attempt: number } & Asked) | null {
  const form = /^(payses_[A-Za-z0-9]{1,60}):([\d.]{1,20})(?::([A-Z]{3,5}))?(?::([1-9]\d{0,4}))?$/;
  const [, sessionId, amount, currency, attempt = '1'] = form.exec(externalId) ?? [];
  if (sessionId === undefined || amount === undefined) return null;
  return { sessionId, attempt: Number(attempt), amount, ...(currency !== undefined && { currency }) };
}

/**
 * Whether the invoice is the one that was asked for by this external id, which holds its amount or price. A price is compared with the
 * invoice's price, never with its USDT.
 */
export function isAsked(invoice: InvoiceWithPayment, externalId: string): boolean {
  const asked = readExternalId(externalId);
  if (asked === null || invoice.externalId !== externalId) return false;
  const { requestedAmount, price } = invoice.payment;
  if (asked.currency === undefined) return toMicro(requestedAmount) === toMicro(asked.amount);
  return price?.currency === asked.currency && toMicro(price.amount) === toMicro(asked.amount);
}

/** Says what happened and what to do. A missing rate is for the merchant: trying again doesn't help the customer. */
export function describeRefusal({ code, errors }: QuittanceError, currency: string | undefined): string {
  if (errors.some((each) => each.code === 'NO_RATE')) {
    return `You cannot pay this order in USDT, because Quittance has no rate for ${currency}. The operator can set a rate with: quittance adapter enable --kind price --currency ${currency} --rate …`;
  }
  const reason = code === 'RATE_UNAVAILABLE' ? ', because Quittance has no current rate' : '';
  return `quittance: ${code}${reason}. Please try again.`;
}

function toMicro(amount: string): bigint {
  const [whole = '', decimals = ''] = amount.split('.');
  return BigInt(whole + decimals.padEnd(MICRO_DIGITS, '0'));
}
