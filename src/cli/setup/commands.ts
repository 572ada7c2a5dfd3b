import type { Command } from '@commander-js/extra-typings';
import type { Print } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

export function addSetupCommand(program: Command, terminal: Terminal, print: Print): void {
  program
    .command('setup')
    .description(
      'create the .env file for compose.yaml, with the secrets of a new installation and the settings you have to fill in',
    )
    .requiredOption(
      '--site <host>',
      'public host name for payers, such as pay.example.com; its DNS record must point here',
    )
    .option('--output <file>', 'output file; "-" prints it instead', '.env')
    .action(async (options) => print((await import('./setup.ts')).printSetup(terminal, options)));
}
