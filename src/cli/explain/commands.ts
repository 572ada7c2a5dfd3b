import type { Command } from '@commander-js/extra-typings';
import type { Print } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

export function addExplainCommand(program: Command, terminal: Terminal, print: Print): void {
  program
    .command('explain')
    .description('tell everything that is known about an invoice, a transaction or an address, by time')
    .argument('<subject>', 'inv_…, your externalId, a transaction id (or its Tronscan link), or an address T…')
    .option('--project <prj_…>', 'only what belongs to this project; else to any')
    .action(async (subject, options) => print((await import('./explain.ts')).explain(terminal, subject, options)));
}
