/**
 * Whether the order with `externalId`, as you stored it, may be fulfilled by this invoice: it is `PAID` and it is that order's.
 * Give it an invoice that you have just read from the API. Compares without any conversion, and never throws.
 */
export function isFulfillable(
  invoice: { readonly status: string; readonly externalId: string } | null | undefined,
  externalId: string,
): boolean {
  if (typeof invoice !== 'object' || invoice === null) return false;
  if (typeof externalId !== 'string' || externalId === '') return false;
  return invoice.status === 'PAID' && invoice.externalId === externalId;
}
