import type { Command } from '@commander-js/extra-typings';
import { PROJECT_OPTION, type Print } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

const STATUS_OPTION = ['--status <status>', 'PENDING, CONFIRMING, EXPIRED or PAID'] as const;
const AMOUNT_OPTION = ['--amount <usdt>', 'that ask for exactly this amount, or have it to pay'] as const;
const FROM_OPTION = ['--from <date>', 'made on this day or later (2026-09-01, UTC; a time needs its zone)'] as const;
const TO_OPTION = ['--to <date>', 'made until the end of this day, or before this moment'] as const;

export function addInvoiceCommands(program: Command, terminal: Terminal, print: Print): void {
  const group = program.command('invoice').description('the invoices of your shops');
  group
    .command('list')
    .description('list invoices, the newest first')
    .option(...PROJECT_OPTION)
    .option(...STATUS_OPTION)
    .option(...AMOUNT_OPTION)
    .option(...FROM_OPTION)
    .option(...TO_OPTION)
    .option('--limit <count>', 'how many at most, 1 to 500', '50')
    .option('--before <inv_…>', 'the page after this invoice: those that were made before it')
    .action(async ({ project: projectId, ...input }) =>
      print((await import('./invoice.ts')).printInvoices(terminal, { projectId, ...input })),
    );
  group
    .command('show')
    .description('show an invoice, with the link for its payer')
    .argument('<invoice>', 'its id (inv_…) or your order id')
    .option(...PROJECT_OPTION)
    .action(async (invoiceId, { project: projectId }) =>
      print((await import('./invoice.ts')).printInvoice(terminal, { projectId, invoiceId })),
    );
  group
    .command('create')
    .description('make an invoice as the API does, for a shop without a program; it stands in the audit log')
    .requiredOption('--amount <usdt>', 'what is asked for, such as 25.00')
    .requiredOption('--external-id <id>', 'your id of the order, 1 to 200 characters, unique in the project')
    .option('--note <text>', 'what you want to remember; payers do not see it')
    .option('--idempotency-key <key>', 'a repeat with the same key gives the same invoice, 1 to 200 characters')
    .option('--by <name>', 'who made it; else the user of the operating system')
    .option(...PROJECT_OPTION)
    .action(async ({ project: projectId, ...input }) =>
      print((await import('./invoice.ts')).printCreated(terminal, { projectId, ...input })),
    );
  group
    .command('withdraw')
    .description('let its page say that the shop withdrew it; a payment that comes all the same still pays')
    .argument('<invoice>', 'its id (inv_…) or your order id')
    .option('--by <name>', 'who did it; else the user of the operating system')
    .option(...PROJECT_OPTION)
    .action(async (invoiceId, { project: projectId, by }) =>
      print((await import('./invoice.ts')).printWithdrawn(terminal, { projectId, invoiceId, by })),
    );
  group
    .command('export')
    .description('write invoices for your books, the newest first, whatever their number')
    .option(...PROJECT_OPTION)
    .option(...STATUS_OPTION)
    .option(...AMOUNT_OPTION)
    .option(...FROM_OPTION)
    .option(...TO_OPTION)
    .option('--format <format>', 'csv or json; else csv, or json with --json')
    .option('--output <file>', 'a file, written whole or not at all; else standard output')
    .action(async ({ project: projectId, ...input }) => {
      const result = await (await import('./invoice.ts')).printInvoiceExport(terminal, { projectId, ...input });
      if (result !== null) terminal.print(result);
    });
}
