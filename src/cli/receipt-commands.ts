import type { Command } from 'commander';
import type { Print } from './option-parts.ts';
import type { RotateOptions } from './receipt/rotate.ts';
import type { VerifyOptions } from './receipt/verify.ts';
import type { Terminal } from './terminal.ts';

export function addReceiptCommands(program: Command, terminal: Terminal, print: Print): void {
  const group = program.command('receipt').description('signed receipts of paid invoices');
  group
    .command('verify')
    .description('check a signed receipt, offline, and say what it proves; exits 1 if it was changed')
    .argument('<file>', 'the receipt as it was downloaded; "-" reads standard input')
    .option('--keys <file>', 'the issuer’s keys, saved from its /.well-known/quittance-receipt-keys.json')
    .action(async (file: string, options: VerifyOptions) =>
      print((await import('./receipt/verify.ts')).verifyReceipt(terminal, file, options)),
    );
  group
    .command('rotate')
    .description('sign receipts with a new key from now on; those that were handed out stay valid')
    .option('--key-is-lost', 'the master key that sealed the former signing key is lost for ever')
    .action(async (options: RotateOptions) =>
      print((await import('./receipt/rotate.ts')).rotateReceipts(terminal, options)),
    );
}
