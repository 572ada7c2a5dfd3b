import type { Command } from '@commander-js/extra-typings';
import type { Print } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

export function addMasterKeyCommands(program: Command, terminal: Terminal, print: Print): void {
  const group = program
    .command('master-key')
    .description('the keys that seal what must not be readable in the database');
  group
    .command('status')
    .description('which keys there are, where they come from, and how many secrets each seals')
    .action(async () => print((await import('./master-key.ts')).printMasterKeys(terminal)));
  group
    .command('rotate')
    .description(
      'seal everything under a new key, or under the first of QUITTANCE_MASTER_KEY; services go on meanwhile',
    )
    .action(async () => print((await import('./master-key.ts')).printRotatedKey(terminal)));
}
