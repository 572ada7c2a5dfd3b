import { type Command, Option } from 'commander';
import { addAddressCommands } from './address-commands.ts';
import { addBackupCommands } from './backup-commands.ts';
import { addChainCommands } from './chain-commands.ts';
import { addDeliveriesCommands } from './deliveries-commands.ts';
import type { DevnetOptions } from './devnet.ts';
import { addEventsCommands } from './events-commands.ts';
import { addExplainCommand } from './explain-command.ts';
import type { CreateKeyOptions } from './key.ts';
import { addListenCommands } from './listen-commands.ts';
import { addMasterKeyCommands } from './master-key-commands.ts';
import { collect, NETWORK_OPTION, PROJECT_OPTION, type Print, type ProjectOption } from './option-parts.ts';
import { addProjectCommands } from './project-commands.ts';
import { addReceiptCommands } from './receipt-commands.ts';
import type { ReconcileOptions } from './reconcile.ts';
import { addSandboxCommands } from './sandbox-commands.ts';
import type { Result, Terminal } from './terminal.ts';
import { addTransferCommands } from './transfer-commands.ts';
import { addTriggerCommand } from './trigger-command.ts';
import { addWebhookCommands } from './webhook-commands.ts';

/** Declares every command. Only types are imported here; the modules are loaded by the actions. */
export function addCommands(program: Command, terminal: Terminal): void {
  const print = async (result: Promise<Result>) => terminal.print(await result);

  program
    .command('start')
    .description('run the service; with no network configured, the sandbox')
    .action(async () => (await import('./start.ts')).start(terminal));
  program
    .command('migrate')
    .description('bring the database schema up to this release')
    .action(async () => print((await import('./migrate.ts')).runMigrations(terminal)));

  addBackupCommands(program, terminal, print);
  addProjectCommands(program, terminal, print);
  addKeyCommands(program, terminal, print);
  addAddressCommands(program, terminal, print);
  addWebhookCommands(program, terminal, print);
  addDeliveriesCommands(program, terminal, print);
  addReceiptCommands(program, terminal, print);
  addMasterKeyCommands(program, terminal, print);
  addEventsCommands(program, terminal);
  addExplainCommand(program, terminal, print);
  addChainCommands(program, terminal, print);
  addReconcileCommand(program, terminal, print);
  addTransferCommands(program, terminal, print);
  addListenCommands(program, terminal);
  addTriggerCommand(program, terminal, print);
  addSandboxCommands(program, terminal);
  addDevnetCommand(program, terminal);
}

function addKeyCommands(program: Command, terminal: Terminal, print: Print): void {
  const group = program.command('key').description('secret keys of the API');
  group
    .command('create')
    .description('make a secret key and show it, once')
    .option(...PROJECT_OPTION)
    .option('--name <name>', 'what you call it, 1 to 100 characters', 'default')
    .option('--expires <when>', 'a duration (12h, 90d) or a date (2027-01-31, UTC); else never')
    .option('--allow-ip <cidr…>', 'IP addresses or CIDR blocks that may use it; else all', collect)
    .action(async (options: CreateKeyOptions) => print((await import('./key.ts')).createKey(terminal, options)));
  group
    .command('list')
    .description('list keys, without their secrets')
    .option(...PROJECT_OPTION)
    .action(async (options: ProjectOption) => print((await import('./key.ts')).listKeys(terminal, options)));
  group
    .command('revoke')
    .description('revoke a key at once and for ever')
    .argument('<keyId>', 'key_…')
    .action(async (keyId: string) => print((await import('./key.ts')).revokeKey(terminal, keyId)));
}

function addReconcileCommand(program: Command, terminal: Terminal, print: Print): void {
  program
    .command('reconcile')
    .description('compare what your addresses hold on the chain with the ledger now; exits 1 on a difference')
    .option('--address <T…>', 'only these, several separated by commas', collect)
    .option(...NETWORK_OPTION)
    .action(async (options: ReconcileOptions) =>
      print((await import('./reconcile.ts')).reconcileNow(terminal, options)),
    );
}

function addDevnetCommand(program: Command, terminal: Terminal): void {
  program
    .command('devnet')
    .description('run the local TRON network alone')
    .option('--port <port>', 'where its node listens; 0 takes any free port', '9090')
    .option('--host <host>', 'the interface it listens on', '127.0.0.1')
    .option('--block-ms <ms>', 'milliseconds between two blocks, 100 to 60000; else QUITTANCE_DEVNET_BLOCK_MS or 1000')
    .option('--producers <count>', 'block producers, 1 to 27; else QUITTANCE_DEVNET_PRODUCERS or 5')
    .addOption(new Option('--dir <path>', 'where the chain is kept; else devnet-alone in QUITTANCE_DATA_DIR'))
    .addOption(new Option('--in-memory', 'forget the chain at the end').conflicts('dir'))
    .action(async (options: DevnetOptions) => (await import('./devnet.ts')).runDevnet(terminal, options));
}
