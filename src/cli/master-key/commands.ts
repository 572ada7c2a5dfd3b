import type { Command } from '@commander-js/extra-typings';
import type { Print } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

export function addMasterKeyRotation(group: Command, terminal: Terminal, print: Print): void {
  group
    .command('rotate')
    .description(
      'encrypt and seal everything with a new key, or with the first one of QUITTANCE_MASTER_KEY, while services keep running',
    )
    .action(async () => print((await import('./master-key.ts')).printRotatedKey(terminal)));
}
