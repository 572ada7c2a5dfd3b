import type { Command } from '@commander-js/extra-typings';
import type { Print } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

export function addLedgerCommands(program: Command, terminal: Terminal, print: Print): void {
  const group = program.command('ledger').description('seal rows against unnoticed changes, and check their seals');
  group
    .command('seal')
    .description('seal rows that have no seal yet, in batches while services run; exits 1 on a changed row')
    .option('--check', 'only count rows with a seal, without a seal, and changed rows')
    .option('--accept <TABLE:ID>', 'seal a changed row again after you corrected it by hand')
    .option('--yes', 'confirm that you compared the ledger with the chain and your addresses, or checked the row')
    .option('--by <name>', 'who does this, for the record (default: your user name)')
    .action(async (options) => print((await import('./seal.ts')).printSealed(terminal, options)));
}
