import { lifetimeOf, type Model, type ModelInvoice, type Outcome, wordsFor } from './model.ts';

type New = Pick<ModelInvoice, 'project' | 'externalId' | 'idempotencyKey' | 'amountMicro' | 'said'>;

/** Returns why a new invoice's reservation is wrong, or adds the invoice to the model and returns `null`. */
export function reserve(
  model: Model,
  created: New,
  { invoiceId, expiresAt }: NonNullable<Outcome['invoice']>,
  { address, payableMicro, createdMs: storedMs }: NonNullable<Outcome['reserved']>,
): string | null {
  const { project, amountMicro } = created;
  const owner = model.addresses.get(address);
  if (owner?.project !== project) return 'the address is of another project';
  if (owner.isRetired) return 'the address is retired';
  if (!wordsFor(model, project, amountMicro).includes(payableMicro)) return `${payableMicro} is no payable amount`;
  const isTaken = [...model.invoices.values()].some(
    (each) => each.address === address && each.payableMicro === payableMicro,
  );
  if (isTaken) return `${payableMicro} on ${address} is another invoice's`;
  const expiresMs = Date.parse(expiresAt);
  const createdMs = expiresMs - lifetimeOf(created.said);
  if (storedMs !== undefined && storedMs !== createdMs) return `it waits until ${expiresAt}`;
  model.invoices.set(invoiceId, {
    ...{ ...created, invoiceId, status: 'PENDING', createdMs, expiresMs },
    ...{ withdrawnAt: null, address, payableMicro },
  });
  return null;
}
