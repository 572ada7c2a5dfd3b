import type { Command } from '@commander-js/extra-typings';
import type { Print } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

export function addExplainCommand(program: Command, terminal: Terminal, print: Print): void {
  program
    .command('explain')
    .description('show the history of an invoice, a transaction or an address')
    .argument('<subject>', 'inv_…, your externalId, a transaction id (or its Tronscan link), or an address T…')
    .option('--project <prj_…>', 'only entries of this project (default: all projects)')
    .action(async (subject, options) => print((await import('./explain.ts')).explain(terminal, subject, options)));
}
