import type { Command } from '@commander-js/extra-typings';
import type { Print } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

export function addSetupCommand(program: Command, terminal: Terminal, print: Print): void {
  program
    .command('setup')
    .description('write the .env of compose.yaml: the secrets of a new installation, and what is yours to fill in')
    .requiredOption('--site <host>', 'the name that payers see, as in pay.example.com; its DNS record leads here')
    .option('--output <file>', 'the file to write; "-" shows it instead', '.env')
    .action(async (options) => print((await import('./setup.ts')).printSetup(terminal, options)));
}
