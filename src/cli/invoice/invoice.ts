import { randomInt, randomUUID } from 'node:crypto';
import { AppError } from '../../domain/errors.ts';
import type { Network } from '../../domain/network.ts';
import { type Column, columnsText, formatFields } from '../../operator/command-text.ts';
import { readLimit, readOneNote } from '../../operator/input/readers.ts';
import {
  createInvoiceByHand,
  exportInvoices,
  INVOICE_COLUMNS,
  type InvoiceDeps,
  type InvoiceFilterInput,
  type InvoiceListView,
  type InvoiceView,
  listInvoices,
  readAmount,
  readDeadlineClock,
  readExternalId,
  readInvoiceFilter,
  showInvoice,
  withdrawInvoiceByHand,
} from '../../operator/subjects/invoices.ts';
import { exportRows, type Output, readFormat } from '../terminal/export-rows.ts';
import { cliActor } from '../terminal/operator.ts';
import { publicUrlOf } from '../terminal/select-network.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';
import { type CommandDatabase, withDatabase } from '../terminal/with-database.ts';

type OfProject = { projectId: string | undefined };

const LIMITS = { least: 1, most: 500 };

export async function printInvoices(
  terminal: Terminal,
  { projectId, limit, ...options }: OfProject & InvoiceFilterInput & { limit: string },
): Promise<Result> {
  const wanted = { ...readInvoiceFilter(options), projectId, limit: readLimit(limit, LIMITS) };
  const data = await withDatabase(terminal, async (database) =>
    listInvoices(await depsOf(database), cliActor(terminal), wanted),
  );
  return { data, text: columnsText(data.data, INVOICES), next: adviceOnList(data) };
}

export async function printInvoice(terminal: Terminal, wanted: OfProject & { invoiceId: string }): Promise<Result> {
  const data = await withDatabase(terminal, async (database) =>
    showInvoice(await depsOf(database), cliActor(terminal), wanted),
  );
  return { data, text: toText(data), next: `all that happened to it: "quittance explain ${data.invoiceId}"` };
}

export async function printWithdrawn(
  terminal: Terminal,
  { by, ...wanted }: OfProject & { invoiceId: string; by: string | undefined },
): Promise<Result> {
  const data = await withDatabase(terminal, (database) =>
    withdrawInvoiceByHand(database, cliActor(terminal, by), wanted),
  );
  return { data, text: `withdrawn since ${data.withdrawnAt}: ${data.invoiceId}` };
}

export type NewInvoiceInput = {
  amount: string;
  externalId: string;
  note?: string;
  idempotencyKey?: string;
  by?: string;
};

export async function printCreated(
  terminal: Terminal,
  { projectId, amount, externalId, note, by, idempotencyKey = randomUUID() }: OfProject & NewInvoiceInput,
): Promise<Result> {
  const wanted = {
    requestedMicro: readAmount('amount', amount.trim()),
    externalId: readExternalId('externalId', externalId.trim()),
    note: readOneNote(note),
    idempotencyKey: `command-${readKey(idempotencyKey)}`,
    projectId,
  };
  const data = await withDatabase(terminal, async (database) => {
    const { config, db, now, random } = database;
    const deadlineClock = await readDeadlineClock(db);
    const networks = Object.keys(config.networks) as Network[];
    const deps = {
      ...(await depsOf(database)),
      networks,
      now,
      deadlineClock,
      random,
      randomBelow: (n: number) => randomInt(n),
    };
    return createInvoiceByHand(deps, cliActor(terminal, by), wanted);
  });
  const next = data.isNew ? 'send the payer the link' : 'it already existed, created with the same key';
  return { data, text: toText(data.invoice), next };
}

/** Errors: `INVALID_ARGUMENT`. */
function readKey(key: string): string {
  if (/^[!-~]{1,200}$/.test(key)) return key;
  throw new AppError(
    'INVALID_ARGUMENT',
    `--idempotency-key must have 1 to 200 visible ASCII characters, without spaces, such as order-1001`,
  );
}

/** Writes the invoices of a project to a file, or to standard output: then `null`. */
export async function printInvoiceExport(
  terminal: Terminal,
  { projectId, format: asked, output, ...options }: OfProject & InvoiceFilterInput & Output,
): Promise<Result | null> {
  const format = readFormat({ format: asked, output }, terminal.json);
  const filter = readInvoiceFilter(options);
  return withDatabase(terminal, async (database) => {
    const batches = await exportInvoices(await depsOf(database), cliActor(terminal), { projectId, ...filter });
    const rows = { columns: INVOICE_COLUMNS, batches, name: 'invoice', plural: 'invoices' };
    return exportRows(terminal, { format, output }, rows);
  });
}

async function depsOf({ db, config }: CommandDatabase): Promise<InvoiceDeps> {
  const publicUrl = await publicUrlOf(config);
  return { db, publicUrl: () => publicUrl };
}

const INVOICES: readonly Column<InvoiceView>[] = [
  ['INVOICE', 'invoiceId'],
  ['CREATED (UTC)', ({ createdAt }) => createdAt.slice(0, 19).replace('T', ' ')],
  ['STATUS', 'status'],
  ['REQUESTED', 'requestedAmount'],
  ['TO PAY', 'payableAmount'],
  ['EXTERNAL ID', 'externalId'],
];

function adviceOnList({ data, nextBefore, looked }: InvoiceListView): string {
  if (nextBefore !== null) {
    const found = data.length === 0 ? `no match in ${looked} invoices; ` : '';
    return `${found}there are more: for the next page, repeat the command with --before ${nextBefore}`;
  }
  return data.length === 0 ? 'no such invoices' : 'see one with "quittance invoice show inv_…"';
}

function toText({ paid, ...invoice }: InvoiceView): string {
  return formatFields([
    ['invoice', invoice.invoiceId],
    ['project', invoice.projectId],
    ['external id', invoice.externalId],
    ['status', invoice.status],
    ['requested', `${invoice.requestedAmount} USDT`],
    ['to pay', `${invoice.payableAmount} USDT`],
    ['to', invoice.address],
    ['policy', invoice.policy],
    ['created', invoice.createdAt],
    ['expires', invoice.expiresAt],
    ['paid', paid && `in transaction ${paid.txId}, ${paid.time}`],
    ['payment link', invoice.checkoutUrl],
  ]);
}
