import { conflict } from '../../core/domain/errors.ts';
import { fillSandbox, MOST_FILLED } from '../../developer/sandbox/fill/fill-sandbox.ts';
import { type PayOptions, payInvoice } from '../../developer/sandbox/pay-invoice.ts';
import { type InvoiceOptions, readTrigger, trigger } from '../../developer/trigger/trigger.ts';
import { clip, FieldError, printableJson } from '../../faces/operator/input/problems.ts';
import { loadConfig } from '../terminal/load-config.ts';
import { cliActor, type Result, type Terminal } from '../terminal/terminal.ts';
import { withDatabase } from '../terminal/with-database.ts';

export async function printPayment(terminal: Terminal, options: PayOptions): Promise<Result> {
  const data = await payInvoice(() => loadConfig(terminal).dataDir, options);
  const { sent, invoices, outcome } = data;
  return {
    data,
    text: [
      ...sent.map(({ txId, to, amount }) => `sent ${amount} to ${to} in transaction ${txId}`),
      ...invoices.slice(1).map((reference) => `the second invoice is ${reference}`),
      outcome,
    ].join('\n'),
  };
}

const MOST_DAYS = 3650;
/** Prints progress each time this many invoices have been created. */
const NOTE_EVERY = 10_000;

export async function printFilled(
  terminal: Terminal,
  input: { invoices: string; days: string; seed: string },
): Promise<Result> {
  const wanted = {
    invoices: readNumber('invoices', input.invoices, MOST_FILLED),
    days: readNumber('days', input.days, MOST_DAYS),
    seed: readNumber('seed', input.seed, Number.MAX_SAFE_INTEGER),
  };
  if (!loadConfig(terminal).sandbox)
    throw conflict`a network is configured here, but this command fills only a sandbox's ledger`;
  const onProgress = (filled: number) => {
    if (filled % NOTE_EVERY === 0) terminal.note(`${filled} of ${wanted.invoices} invoices`);
  };
  const data = await withDatabase(terminal, (deps) =>
    fillSandbox({ ...deps, note: terminal.note, onProgress }, cliActor(terminal), wanted),
  );
  return {
    data,
    text: `filled ${data.projectId} with ${data.invoices} invoices on ${data.addresses} addresses, and ${data.transfers} transfers`,
    next: `try: "quittance transfers list --project ${data.projectId}", "quittance explain order-0000001"`,
  };
}

function readNumber(field: string, text: string, most: number): number {
  const number = /^[1-9]\d{0,15}$/.test(text) ? Number(text) : 0;
  if (number >= 1 && number <= most) return number;
  throw new FieldError(field, `is ${clip(text)}: use 1 to ${most}`);
}

export async function printTriggered(terminal: Terminal, name: string, options: InvoiceOptions): Promise<Result> {
  const type = readTrigger(name, options);
  const { id, body } = await trigger({ config: loadConfig(terminal), note: terminal.note }, type, options);
  return { data: { id, type, event: JSON.parse(body) }, text: `${id}\n${printableJson(body)}` };
}
