import type { Command } from '@commander-js/extra-typings';
import type { Print } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

export function addMasterKeyRotation(group: Command, terminal: Terminal, print: Print): void {
  group
    .command('rotate')
    .description(
      'seal everything under a new key, or under the first of QUITTANCE_MASTER_KEY; services go on meanwhile',
    )
    .action(async () => print((await import('./master-key.ts')).printRotatedKey(terminal)));
}
