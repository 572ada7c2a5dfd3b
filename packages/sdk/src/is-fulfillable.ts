/**
 * Whether you may fulfil the order with this `externalId`, as you stored it: the invoice is `PAID` and belongs to that order. Pass an
 * invoice that you have just read from the API. Compares without any conversion, and never throws.
 */
export function isFulfillable(
  invoice: { readonly status: string; readonly externalId: string } | null | undefined,
  externalId: string,
): boolean {
  if (typeof invoice !== 'object' || invoice === null) return false;
  if (typeof externalId !== 'string' || externalId === '') return false;
  return invoice.status === 'PAID' && invoice.externalId === externalId;
}
