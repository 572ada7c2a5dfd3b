import type { Json } from '../support/service.ts';
import { type ListOperation, type Model, type ModelTransfer, type Outcome, toMicro } from './model.ts';

type Page = NonNullable<Outcome['page']>;

/** Returns why a page of a project's list is wrong, or `null`. The model learns the ids of transfers from it. */
export function judgePage(model: Model, project: number, operation: ListOperation, page: Page): string | null {
  return operation.kind === 'list'
    ? judgeInvoices(model, project, operation, page)
    : judgeTransfers(model, project, operation, page);
}

function judgeInvoices(
  { invoices }: Model,
  project: number,
  { status, createdAfterMs, after, limit }: Extract<ListOperation, { kind: 'list' }>,
  { data, next }: Page,
): string | null {
  const fitting = [...invoices.values()]
    .filter((each) => each.project === project && (status === null || each.status === status))
    .filter((each) => each.createdMs >= (createdAfterMs ?? 0) && each.invoiceId > (after ?? ''))
    .map(({ invoiceId, externalId, status: known }) => ({
      id: invoiceId,
      shown: `${invoiceId} ${externalId} ${known}`,
    }))
    .sort((a, b) => (a.id < b.id ? -1 : 1));
  const shown = data.map(({ invoiceId, externalId, status: told }: Json) => `${invoiceId} ${externalId} ${told}`);
  const isRight = `${shown}` === `${fitting.slice(0, limit).map((each) => each.shown)}`;
  if (!isRight) return 'the page holds other invoices, or in another order';
  return next === nextOf(fitting, limit) ? null : 'the cursor leads elsewhere';
}

function judgeTransfers(
  { transfers, invoices }: Model,
  project: number,
  { only, after, limit }: Extract<ListOperation, { kind: 'transfers' }>,
  { data, next }: Page,
): string | null {
  const own = transfers[project] ?? [];
  const behind = after === null ? 0 : own.findIndex(({ id }) => id === after) + 1;
  const fitting = own.slice(behind).filter(({ kind }) => (only === null ? kind !== 'matched' : kind === only));
  const expected = fitting.slice(0, limit);
  if (data.length !== expected.length) return `${data.length} transfers are listed, not ${expected.length}`;
  for (const [index, transfer] of expected.entries()) {
    if (!isTold(transfer, data[index])) return 'the page holds other transfers, or in another order';
    transfer.id = data[index].transferId;
  }
  const isForeign = ({ nearestInvoice }: Json) =>
    nearestInvoice !== null && invoices.get(nearestInvoice.invoiceId)?.project !== project;
  if (data.some(isForeign)) return 'the nearest invoice is of another project';
  return next === nextOf(fitting, limit) ? null : 'the cursor leads elsewhere';
}

function isTold({ kind, txId, to, amountMicro, invoiceId, id }: ModelTransfer, told: Json): boolean {
  return (
    (id === null || id === told.transferId) &&
    `${kind} ${txId} ${to} ${amountMicro}` === `${told.kind} ${told.txId} ${told.to} ${toMicro(told.amount)}` &&
    invoiceId === (told.invoice?.invoiceId ?? null) &&
    (told.reason === null) === (kind === 'matched')
  );
}

/** Returns the cursor of the next page: the last item shown, if there are more. */
function nextOf(fitting: readonly { id: string | null }[], limit: number): string | null {
  return fitting.length > limit ? (fitting[limit - 1]?.id ?? null) : null;
}
