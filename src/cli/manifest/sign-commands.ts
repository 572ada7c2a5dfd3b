import type { Command } from '@commander-js/extra-typings';
import type { Print } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

const PASSPHRASE_OPTION = ['--passphrase-file <file>', 'a file with the passphrase; else it is asked for'] as const;

export function addKeyCommand(group: Command, terminal: Terminal, print: Print): void {
  group
    .command('key')
    .description('make a signing key, sealed by a passphrase; on a machine that is not the server')
    .argument('<file>', 'the new file for the key')
    .option(...PASSPHRASE_OPTION)
    .action(async (file, options) => print((await import('./sign.ts')).printNewKey(terminal, file, options)));
}

export function addSignCommand(group: Command, terminal: Terminal, print: Print): void {
  group
    .command('sign')
    .description('look through a draft and sign it; needs no database and no network')
    .argument('<draft>', 'the file of "quittance manifest draft", or one that others have signed already')
    .option('--key <file>', 'the file of "quittance manifest key"')
    .option(...PASSPHRASE_OPTION)
    .option('--previous <file>', 'the manifest that you signed before; what differs is shown')
    .option('--head <file>', 'instead of a key: write what "ssh-keygen -Y sign" signs')
    .option('--signature <file>', 'instead of a key: take what "ssh-keygen -Y sign" wrote')
    .option('--output <file>', 'the file to write', 'addresses.manifest')
    .option('--yes', 'you have seen what changes')
    .action(async (draft, options) => print((await import('./sign.ts')).printSigned(terminal, draft, options)));
}
