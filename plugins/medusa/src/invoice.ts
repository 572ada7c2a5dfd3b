import { type InvoiceWithPayment, Quittance } from '@quittance/sdk';

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

const CURRENCIES = ['usd', 'usdt'];
/** As Medusa writes amounts of the main unit: "25", "25.5". */
const AMOUNT = /^(?:0|[1-9]\d{0,11})(?:\.\d{1,6})?$/;

/** The decimal string to ask for. Throws a RangeError for another currency than USD or USDT, and for what is no amount. */
export function readAmount(amount: unknown, currency: string): string {
  if (!CURRENCIES.includes(currency.toLowerCase())) {
    throw new RangeError(`Quittance takes payments in USD or USDT, not in ${currency.toUpperCase()}`);
  }
  const text = String(amount);
  if (!AMOUNT.test(text) || /^[0.]+$/.test(text)) throw new RangeError(`${text.slice(0, 40)} is no amount to pay`);
  return text;
}

/** The external id of a session's invoice. Its amount is in it: another amount is another invoice. */
export function externalIdOf(sessionId: string, amount: string): string {
  return `${sessionId}:${amount}`;
}

/** From such an id back; null for one that this shop did not make. */
export function readExternalId(externalId: string): { sessionId: string; amount: string } | null {
  const [, sessionId, amount] = /^(payses_[A-Za-z0-9]{1,60}):([\d.]{1,20})$/.exec(externalId) ?? [];
  return sessionId === undefined || amount === undefined ? null : { sessionId, amount };
}

/** Whether the invoice is the one that was asked for by this external id, which holds its amount. */
export function isAsked(invoice: InvoiceWithPayment, externalId: string): boolean {
  const asked = readExternalId(externalId);
  if (asked === null || invoice.externalId !== externalId) return false;
  return toMicro(invoice.payment.requestedAmount) === toMicro(asked.amount);
}

function toMicro(amount: string): bigint {
  const [whole = '', decimals = ''] = amount.split('.');
  return BigInt(whole + decimals.padEnd(6, '0'));
}
