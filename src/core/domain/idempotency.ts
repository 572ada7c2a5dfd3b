import { differingOptions, isPriced } from './invoice-options.ts';
import type { MicroUsdt } from './money.ts';

/**
 * The contents of a request to create an invoice (for `options`, see `formatOptions`). The asset and the network aren't part of the
 * request, because each project has exactly one of each.
 */
export type Asked = { requestedMicro: MicroUsdt; externalId: string; options: string | null };

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
