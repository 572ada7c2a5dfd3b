import type { Command } from '@commander-js/extra-typings';
import type { Print } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

export function addReceiptCheck(group: Command, terminal: Terminal, print: Print): void {
  group
    .command('verify')
    .description('verify a signed receipt offline and show what it proves; exits 1 if it was changed')
    .argument('<file>', 'receipt file, as downloaded; "-" reads standard input')
    .option('--keys <file>', 'the issuer’s keys, saved from its /.well-known/quittance-receipt-keys.json')
    .action(async (file, { keys }) => print((await import('./receipt.ts')).printVerified(terminal, file, keys)));
}
