import type { Command } from '@commander-js/extra-typings';
import { collect, type Print } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

const IDENTITY_OPTION = ['--identity <file>', 'file with an age secret key, for an encrypted backup'] as const;

const BY_OPTION = ['--by <name>', 'who does this, for the record (default: your user name)'] as const;

export function addBackupCommands(program: Command, terminal: Terminal, print: Print): void {
  const backup = program
    .command('backup')
    .description('back up the whole ledger to a file while the service runs, or verify a backup')
    .option('--to <file>', 'output file (default: quittance-<time>.backup in this directory)')
    .option('--final', 'move the ledger: close it here permanently, so that the restored one can keep its addresses')
    .option('--verify <file>', 'restore a backup to a temporary database, and compare it with the ledger and the chain')
    .option('--recipient <age1…>', 'encrypt to this public key (default: QUITTANCE_BACKUP_RECIPIENT)', collect)
    .option('--no-chain', 'with --verify: do not read the chain since the backup')
    .option('--unauthenticated', 'with --verify: examine also what no master key vouches for')
    .option(...IDENTITY_OPTION)
    .action(async (options) => {
      if (options.verify === undefined) return print((await import('./backup.ts')).printBackup(terminal, options));
      await print((await import('./verify.ts')).printVerified(terminal, options.verify, options));
    });
  backup
    .command('keygen')
    .description('generate a key pair for encrypted backups; works on any machine')
    .argument('<file>', 'new file for the secret key')
    .action(async (file) => print((await import('./backup.ts')).printNewBackupKey(terminal, file)));
  const restore = program
    .command('restore')
    .description('restore a backup into an empty database; stop the service first')
    .argument('<file>', 'file written by "quittance backup"')
    .option(...IDENTITY_OPTION)
    .option('--unauthenticated', 'also accept a backup that no master key authenticates')
    .option('--reason <text>', 'with --unauthenticated: why, for the record')
    .option(...BY_OPTION)
    .action(async (file, options) => print((await import('./restore.ts')).printRestored(terminal, file, options)));
  restore
    .command('accept')
    .description('accept a database that was copied or restored by other means')
    .option(
      '--retire-addresses',
      'retire all addresses, because invoices may have been created elsewhere since the copy',
    )
    .option('--nothing-created-since', 'confirm that no invoice was created elsewhere since the copy')
    .option(...BY_OPTION)
    .action(async (options) => print((await import('./restore.ts')).printAcceptedRestore(terminal, options)));
}
