import { decodeId, encodeId, firstIdOf } from '../../domain/ids.ts';
import { INVOICE_STATUSES } from '../../domain/invoice.ts';
import { formatAmount, type MicroUsdt, parseAmount } from '../../domain/money.ts';
import { POLICIES } from '../../domain/policy.ts';
import { toIso } from '../../domain/time.ts';
import type { Database } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';
import { clip } from '../input/clip.ts';
import { FieldError } from '../input/field-error.ts';
import { readChoice } from '../input/read-choice.ts';
import { readPeriod } from '../input/read-period.ts';
import { limitTime } from '../limit-time.ts';
import { findInvoiceId } from '../select-invoice.ts';
import { selectProject } from '../select-project.ts';
import { type DeskInvoice, findDeskInvoice, findDeskInvoices, type InvoiceFilter } from './invoice-desk.ts';
import type { InvoiceListView, InvoiceView } from './views.ts';

export type InvoiceDeps = { db: Database; publicUrl(): string };
type FilterField = 'status' | 'policy' | 'amount' | 'from' | 'to' | 'before';
export type InvoiceFilterInput = { [Field in FilterField]?: string | undefined };

/** Looked through for a page at most: a few hundredths of a second. */
const WINDOW = 10_000;
/** Mostly holds a page of what is looked for. */
const FIRST_WINDOW = 500;
const TIMEOUT_MS = 5000;

/** Reads which invoices are meant. Errors: `INVALID_ARGUMENT`. */
export function readInvoiceFilter(input: InvoiceFilterInput): InvoiceFilter {
  const { from, until } = readPeriod(input);
  const given = input.before === undefined ? null : readInvoiceId('before', input.before);
  const until7 = until === null ? null : firstIdOf(until);
  return {
    status: readChoice('status', input.status, INVOICE_STATUSES),
    policy: readChoice('policy', input.policy, POLICIES),
    amountMicro: input.amount === undefined ? null : readAmount('amount', input.amount),
    notBefore: from === null ? null : firstIdOf(from),
    before: given !== null && until7 !== null && until7 < given ? until7 : (given ?? until7),
  };
}

/** An amount of USDT as the API takes it. Errors: `INVALID_ARGUMENT`. */
export function readAmount(field: string, text: string): MicroUsdt {
  const parsed = parseAmount(text);
  if (parsed.kind === 'ok') return parsed.amountMicro;
  throw new FieldError(field, `is ${clip(text)}: it ${parsed.reason}`);
}

function readInvoiceId(field: string, text: string): string {
  const id = decodeId('inv', text);
  if (id !== null) return id;
  throw new FieldError(field, `is ${clip(text)}: an invoice id is "inv_" and 26 characters`);
}

/** The invoices of a project that fit, the newest first. At most 10,000 are looked through for a page. */
export async function listInvoices(
  { db, publicUrl }: InvoiceDeps,
  actor: Actor,
  { projectId, limit, ...filter }: InvoiceFilter & { projectId: string | undefined; limit: number },
): Promise<InvoiceListView> {
  const project = await selectProject(db, actor, projectId);
  const { window, ...found } = await db.snapshot(async (tx) => {
    await limitTime(tx, TIMEOUT_MS);
    const look = async (window: number) => {
      const page = { limit: limit + 1, window, isFirst: filter.before === null };
      return { window, ...(await findDeskInvoices(tx, project.id, filter, page)) };
    };
    const widest = windowOf(filter, limit + 1);
    // An amount is found beyond the window too, which must then be as wide as it will be.
    if (filter.amountMicro !== null || widest <= FIRST_WINDOW) return look(widest);
    const first = await look(FIRST_WINDOW);
    return first.invoices.length > limit || first.looked < FIRST_WINDOW ? first : look(widest);
  });
  const data = found.invoices.slice(0, limit);
  const { looked } = found;
  // The next page goes on behind the last one shown or, where too few fit, behind the last one looked at.
  const last = found.invoices.length > limit ? (data.at(-1)?.id ?? null) : looked === window ? found.last : null;
  return {
    data: data.map((invoice) => viewInvoice(invoice, publicUrl())),
    looked,
    nextBefore: last === null ? null : encodeId('inv', last),
  };
}

/** How many must be looked through to find so many: all that are looked at fit where only their time matters. */
export function windowOf({ status, policy, amountMicro }: InvoiceFilter, wanted: number): number {
  return status === null && policy === null && amountMicro === null ? wanted : WINDOW;
}

/** One invoice of a project, by its id (`inv_…`) or its order id, with the link for its payer. Errors: `NOT_FOUND`. */
export async function showInvoice(
  { db, publicUrl }: InvoiceDeps,
  actor: Actor,
  { projectId, invoiceId }: { projectId: string | undefined; invoiceId: string },
): Promise<InvoiceView> {
  const project = await selectProject(db, actor, projectId);
  const found = await findDeskInvoice(db, project.id, await findInvoiceId(db, project.id, invoiceId));
  if (found === null) throw new Error(`invoice ${invoiceId} is gone, though invoices are never deleted`);
  return viewInvoice(found, publicUrl());
}

export function viewInvoice(invoice: DeskInvoice, publicUrl: string): InvoiceView {
  const { externalId, status, address, policy, paid } = invoice;
  return {
    ...{ invoiceId: encodeId('inv', invoice.id), projectId: encodeId('prj', invoice.projectId), externalId, status },
    ...{ requestedAmount: formatAmount(invoice.requestedMicro), payableAmount: formatAmount(invoice.payableMicro) },
    ...{ address, policy, createdAt: toIso(invoice.createdAt), expiresAt: toIso(invoice.expiresAt) },
    checkoutUrl: `${publicUrl}/c/${invoice.checkoutToken}`,
    paid: paid && { txId: paid.txId, time: toIso(paid.blockTime) },
  };
}
