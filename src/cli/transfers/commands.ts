import { type Command, Option } from '@commander-js/extra-typings';
import { PROJECT_OPTION, type Print } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

const FROM_OPTION = ['--from <date>', 'from this day or moment on (2026-09-01, UTC; a time needs its zone)'] as const;
const TO_OPTION = ['--to <date>', 'to the end of this day, or until before this moment'] as const;

export function addTransferCommands(program: Command, terminal: Terminal, print: Print): void {
  const group = program
    .command('transfers')
    .description('what arrived at your addresses, and the money that fits nothing');
  group
    .command('list')
    .description('list transfers that pay no invoice and wait for your decision, the newest first')
    .option(...PROJECT_OPTION)
    .option('--kind <kind>', 'unmatched, duplicate, matched or all; else those that pay nothing')
    .addOption(
      new Option('--open', 'only those without a resolution (the default, unless --kind is matched or all)').conflicts([
        'resolved',
        'all',
      ]),
    )
    .addOption(new Option('--resolved', 'only those with a resolution').conflicts('all'))
    .option('--all', 'whether resolved or not')
    .option(...FROM_OPTION)
    .option(...TO_OPTION)
    .option('--limit <count>', 'how many at most, 1 to 500', '50')
    .option('--before <trf_…>', 'the page after this transfer: those that were recorded before it')
    .action(async ({ project: projectId, open, resolved, all, ...filter }) => {
      const state = open === true ? 'open' : resolved === true ? 'resolved' : all === true ? 'all' : undefined;
      await print((await import('./transfers.ts')).printTransfers(terminal, { projectId, state, ...filter }));
    });
  group
    .command('show')
    .description('show a transfer: evidence, likely causes, webhooks, and what was done about it')
    .argument('<transfer>', 'trf_…, or the transaction id (or its Tronscan link) for all transfers to you in it')
    .action(async (reference) => print((await import('./show.ts')).printShown(terminal, reference)));
  addDecisions(group, terminal, print);
  group
    .command('export')
    .description('write the ledger of transfers for your books, whatever its size')
    .option(...PROJECT_OPTION)
    .option('--format <format>', 'csv or json; else csv, or json with --json')
    .option('--direction <direction>', 'in, out (what left your addresses), or both: in, then out', 'in')
    .option('--kind <kind>', 'of what came in: unmatched, duplicate, matched or all', 'all')
    .option(...FROM_OPTION)
    .option(...TO_OPTION)
    .option('--output <file>', 'a file, written whole or not at all; else standard output')
    .action(async ({ project: projectId, ...options }) => {
      const { printExport } = await import('./export.ts');
      const result = await printExport(terminal, { projectId, ...options });
      if (result !== null) terminal.print(result);
    });
}

/** What somebody did about a transfer. */
function addDecisions(group: Command, terminal: Terminal, print: Print): void {
  group
    .command('resolve')
    .description('note what you did about transfers that paid nothing; it never changes an invoice')
    .argument('<transfers...>', 'trf_…; all of them are resolved or, if one cannot be, none')
    .requiredOption('--as <resolution>', 'refunded, credited-outside, own-deposit or ignored')
    .option('--note <text>', 'what you want to remember, for example the transaction of the refund')
    .option('--invoice <invoice>', 'what the money was for: inv_… or the externalId')
    .option('--by <name>', 'who decided; else the user of the operating system')
    .action(async (transfers, { as: resolution, ...options }) =>
      print((await import('./transfers.ts')).printResolved(terminal, { transfers, resolution, ...options })),
    );
  group
    .command('refund')
    .description('note that you sent a transfer back, by the transaction that the ledger has; your shop is told')
    .argument('<transfer>', 'trf_…, which paid nothing')
    .requiredOption(
      '--tx <transaction>',
      'by which you sent all of it back to its sender, from an address of the project',
    )
    .option('--note <text>', 'what you want to remember beside the transaction')
    .option('--invoice <invoice>', 'what the money was for: inv_… or the externalId')
    .option('--by <name>', 'who decided; else the user of the operating system')
    .action(async (transferId, options) =>
      print((await import('./transfers.ts')).printRefunded(terminal, { transferId, ...options })),
    );
}
