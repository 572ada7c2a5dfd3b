import type { Command } from '@commander-js/extra-typings';
import type { Print, Terminal } from '../terminal/terminal.ts';

const PASSPHRASE_OPTION = ['--passphrase-file <file>', 'file with the passphrase (default: ask)'] as const;

export function addKeyCommand(group: Command, terminal: Terminal, print: Print): void {
  group
    .command('key')
    .description('generate a signing key, encrypted with a passphrase; do this on a machine other than the server')
    .argument('<file>', 'new file for the key')
    .option(...PASSPHRASE_OPTION)
    .action(async (file, options) => print((await import('./sign.ts')).printNewKey(terminal, file, options)));
}

export function addSignCommand(group: Command, terminal: Terminal, print: Print): void {
  group
    .command('sign')
    .description('review and sign a draft; requires no database and no network')
    .argument('<draft>', 'draft written by "quittance manifest draft", or a draft that others have already signed')
    .option('--key <file>', 'key file written by "quittance manifest key"')
    .option(...PASSPHRASE_OPTION)
    .option('--previous <file>', 'manifest you signed before, to show the differences')
    .option('--head <file>', 'instead of --key: write a file that you then sign with "ssh-keygen -Y sign"')
    .option('--signature <file>', 'instead of --key: use the signature written by "ssh-keygen -Y sign"')
    .option('--output <file>', 'output file', 'addresses.manifest')
    .option('--yes', 'confirm that you have reviewed the changes')
    .action(async (draft, options) => print((await import('./sign.ts')).printSigned(terminal, draft, options)));
}
