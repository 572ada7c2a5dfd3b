import type { Command } from '@commander-js/extra-typings';
import { collect, type Print } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

const IDENTITY_OPTION = ['--identity <file>', 'a file with a secret key of age, for an encrypted backup'] as const;

const BY_OPTION = ['--by <name>', 'who does it, for the record; else your user name'] as const;

export function addBackupCommands(program: Command, terminal: Terminal, print: Print): void {
  const backup = program
    .command('backup')
    .description('write the whole ledger to a file while the service runs, or check such a file')
    .option('--to <file>', 'the file to write; else quittance-<time>.backup in this directory')
    .option('--final', 'the ledger moves: close it here for ever, so that the restored one keeps its addresses')
    .option('--verify <file>', 'restore a backup to a scratch database, and compare it with the ledger and the chain')
    .option('--recipient <age1…>', 'encrypt to this public key; else to QUITTANCE_BACKUP_RECIPIENT', collect)
    .option('--no-chain', 'with --verify: do not read the chain since the backup')
    .option('--unauthenticated', 'with --verify: examine also what no master key vouches for')
    .option(...IDENTITY_OPTION)
    .action(async (options) => {
      if (options.verify === undefined) return print((await import('./backup.ts')).printBackup(terminal, options));
      await print((await import('./verify.ts')).printVerified(terminal, options.verify, options));
    });
  backup
    .command('keygen')
    .description('make a pair of keys for encrypted backups; any machine will do')
    .argument('<file>', 'the new file for the secret key')
    .action(async (file) => print((await import('./backup.ts')).printNewBackupKey(terminal, file)));
  const restore = program
    .command('restore')
    .description('load a backup into an empty database; stop the service first')
    .argument('<file>', 'a file that "quittance backup" wrote')
    .option(...IDENTITY_OPTION)
    .option('--unauthenticated', 'take also what no master key vouches for')
    .option('--reason <text>', 'with --unauthenticated: why, for the record')
    .option(...BY_OPTION)
    .action(async (file, options) => print((await import('./restore.ts')).printRestored(terminal, file, options)));
  restore
    .command('accept')
    .description('go on with a database that was copied or restored by other means')
    .option('--retire-addresses', 'invoices may have been created elsewhere since it was copied')
    .option('--nothing-created-since', 'you know that no invoice was created elsewhere since it was copied')
    .option(...BY_OPTION)
    .action(async (options) => print((await import('./restore.ts')).printAcceptedRestore(terminal, options)));
}
