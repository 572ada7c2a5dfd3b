import type { Command } from '@commander-js/extra-typings';
import type { Print } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

export function addLedgerCommands(program: Command, terminal: Terminal, print: Print): void {
  const group = program.command('ledger').description('the seals of the rows: whether somebody changed one unseen');
  group
    .command('seal')
    .description('seal the rows that are older than the seals, in batches while services run; exits 1 on a changed row')
    .option('--check', 'change nothing: count the rows with a seal, without one, and those that were changed')
    .option('--accept <TABLE:ID>', 'seal anew one row that was changed, once you have put it right by hand')
    .option('--yes', 'you have compared the ledger with the chain and your addresses, or looked at the row')
    .option('--by <name>', 'who does it, for the record; else your user name')
    .action(async (options) => print((await import('./seal.ts')).printSealed(terminal, options)));
}
