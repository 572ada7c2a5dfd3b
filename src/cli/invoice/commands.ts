import type { Command } from '@commander-js/extra-typings';
import { PROJECT_OPTION, type Print } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

const STATUS_OPTION = ['--status <status>', 'PENDING, CONFIRMING, EXPIRED or PAID'] as const;
const AMOUNT_OPTION = ['--amount <usdt>', 'only invoices with exactly this requested or payable amount'] as const;
const FROM_OPTION = ['--from <date>', 'created on or after this day (2026-09-01, UTC) or time with its zone'] as const;
const TO_OPTION = ['--to <date>', 'created by the end of this day, or before this time'] as const;

export function addInvoiceCommands(program: Command, terminal: Terminal, print: Print): void {
  const group = program.command('invoice').description('manage the invoices of your shops');
  group
    .command('list')
    .description('list invoices, newest first')
    .option(...PROJECT_OPTION)
    .option(...STATUS_OPTION)
    .option(...AMOUNT_OPTION)
    .option(...FROM_OPTION)
    .option(...TO_OPTION)
    .option('--limit <count>', 'maximum number of rows, 1 to 500', '50')
    .option('--before <inv_…>', 'show invoices created before this one')
    .action(async ({ project: projectId, ...input }) =>
      print((await import('./invoice.ts')).printInvoices(terminal, { projectId, ...input })),
    );
  group
    .command('show')
    .description('show an invoice with its payment link')
    .argument('<invoice>', 'invoice id (inv_…) or your order id')
    .option(...PROJECT_OPTION)
    .action(async (invoiceId, { project: projectId }) =>
      print((await import('./invoice.ts')).printInvoice(terminal, { projectId, invoiceId })),
    );
  group
    .command('create')
    .description('create an invoice by hand, for a shop that does not use the API; recorded in the audit log')
    .requiredOption('--amount <usdt>', 'amount in USDT, such as 25.00')
    .requiredOption('--external-id <id>', 'your order id, 1 to 200 characters, unique in the project')
    .option('--note <text>', 'private note, which payers do not see')
    .option('--idempotency-key <key>', 'a repeat with the same key returns the same invoice; 1 to 200 characters')
    .option('--by <name>', 'who creates it (default: your user name)')
    .option(...PROJECT_OPTION)
    .action(async ({ project: projectId, ...input }) =>
      print((await import('./invoice.ts')).printCreated(terminal, { projectId, ...input })),
    );
  group
    .command('withdraw')
    .description('withdraw an invoice: its page says so, but a payment that still arrives pays it')
    .argument('<invoice>', 'invoice id (inv_…) or your order id')
    .option('--by <name>', 'who withdraws it (default: your user name)')
    .option(...PROJECT_OPTION)
    .action(async (invoiceId, { project: projectId, by }) =>
      print((await import('./invoice.ts')).printWithdrawn(terminal, { projectId, invoiceId, by })),
    );
  group
    .command('export')
    .description('export all invoices for your bookkeeping, newest first')
    .option(...PROJECT_OPTION)
    .option(...STATUS_OPTION)
    .option(...AMOUNT_OPTION)
    .option(...FROM_OPTION)
    .option(...TO_OPTION)
    .option('--format <format>', 'csv or json (default: csv, or json with --json)')
    .option('--output <file>', 'output file, written completely or not at all (default: standard output)')
    .action(async ({ project: projectId, ...input }) => {
      const result = await (await import('./invoice.ts')).printInvoiceExport(terminal, { projectId, ...input });
      if (result !== null) terminal.print(result);
    });
}
