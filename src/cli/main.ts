import type { Command } from '@commander-js/extra-typings';
import { readVersion } from '../core/runtime/package.ts';
import type { LocalOperation } from '../faces/operator/operation.ts';
import {
  addBackupCommands,
  addDatabaseCommands,
  addDoctorCommand,
  addEventsCommands,
  addExplainCommand,
  addLedgerCommands,
  addManifestCommands,
  addMasterKeyRotation,
  addReceiptCheck,
  addReplay,
  addReportCommand,
  addSetupCommand,
} from './commands.ts';
import { addDeveloperCommands } from './developer/commands.ts';
import { addOperations, type Ways } from './terminal/add-operations.ts';
import type { ExitCode } from './terminal/describe-error.ts';
import { JSON_OPTION, programOf, runProgram } from './terminal/run-program.ts';
import { chooseServer, SERVER_OPTION } from './terminal/server-option.ts';
import type { Print, Surroundings, Terminal } from './terminal/terminal.ts';

/**
 * Runs the `quittance` command and returns its exit code. The process exits on its own once nothing is open any more. A command's module is
 * loaded only when the command runs, so that --help and usage errors appear at once.
 */
export function main(args: readonly string[], surroundings: Surroundings = process): Promise<ExitCode> {
  return runProgram(args, surroundings, (terminal) => createProgram(terminal, args));
}

async function createProgram(terminal: Terminal, args: readonly string[]): Promise<Command> {
  const program = programOf('quittance', terminal);
  program
    .description('Self-hosted, non-custodial invoicing for USDT on TRON.')
    .version(readVersion(), '-V, --version')
    .option(...JSON_OPTION)
    .option(...SERVER_OPTION)
    .hook('preAction', (program, command) => chooseServer(terminal, program, command))
    .addHelpText('after', HELP);
  await addCommands(program, terminal, (group) => args.includes(group));
  return program;
}

const HELP = `
Environment:
  Commands read the same variables as the service. They use the database in DATABASE_URL
  or, if it isn't set, the embedded database in QUITTANCE_DATA_DIR (default: .quittance).
  docs/reference/configuration.md lists all variables.

Exit codes:
  0  done
  1  failed
  2  wrong arguments or configuration
  3  not found: no such project, key or database
  4  conflict: the object already exists, or belongs to another project
  5  unavailable: the database does not respond, or a directory or port is in use

Output:
  Results go to standard output, everything else to standard error. With --json, the
  result is one object. An error is {"error": {"code", "message", "errors"?}}, also on
  standard output: check the exit code to detect errors.`;

/**
 * Declares every command. Only types are imported here so that showing help stays fast. A subject's commands are loaded with its operations
 * if `isWanted` returns true for their group. All other modules are loaded only when their action runs.
 */
export async function addCommands(
  program: Command,
  terminal: Terminal,
  isWanted: (group: string) => boolean,
): Promise<void> {
  const print: Print = async (result) => terminal.print(await result);
  // `addFirst` adds the commands that the help lists before the group's operations.
  const add = async (
    name: string,
    about: string,
    load: () => Promise<{ operations: readonly LocalOperation[] }>,
    { addFirst, ways }: { addFirst?: (group: Command) => void; ways?: Ways } = {},
  ) => {
    const group = program.command(name).description(about);
    addFirst?.(group);
    if (isWanted(name)) addOperations(group, terminal, print, (await load()).operations, ways);
    return group;
  };
  // Adds a command without a group. If the command isn't needed, a placeholder is added, which looks the same in the overall help.
  const addAlone = async (
    name: string,
    about: string,
    load: () => Promise<{ operations: readonly LocalOperation[] }>,
  ) => {
    if (isWanted(name)) addOperations(program, terminal, print, (await load()).operations);
    else program.command(`${name} [options]`).description(about);
  };

  program
    .command('start')
    .description('run the service, or the sandbox if no network is configured')
    .action(async () => (await import('./start.ts')).start(terminal));
  program
    .command('migrate')
    .description('update the database schema to this release')
    .action(async () => print((await import('./migrate.ts')).runMigrations(terminal)));

  addSetupCommand(program, terminal, print);
  addDoctorCommand(program, terminal, print);
  addBackupCommands(program, terminal, print);
  addDatabaseCommands(program, terminal, print);
  await add(
    'project',
    'manage projects; each permanently belongs to one network',
    () => import('../faces/operator/subjects/projects.ts'),
  );
  await add('key', 'manage API keys', () => import('../faces/operator/subjects/keys.ts'));
  await add(
    'admin-key',
    'manage admin API keys, for --server and for programs',
    () => import('../faces/operator/subjects/admin-keys.ts'),
  );
  await add('address', "manage your wallet's receiving addresses (never private keys)", loadAddresses, {
    ways: { 'address derive': async (...given) => (await import('./address/derive.ts')).printDerived(...given) },
  });
  await add('webhook', 'manage webhook endpoints', async () => {
    const { operations } = await import('../faces/operator/subjects/webhooks.ts');
    return {
      operations: [...operations, ...(await import('../faces/operator/subjects/webhook-sending.ts')).operations],
    };
  });
  await add(
    'adapter',
    'connect shops that use the epusdt, BEpusdt or EPay API',
    () => import('../faces/operator/subjects/adapters.ts'),
  );
  addReplay(
    await add(
      'deliveries',
      'show and replay webhook deliveries',
      () => import('../faces/operator/subjects/deliveries.ts'),
    ),
    terminal,
    print,
  );
  await add('notify', 'manage notification channels for alarms', () => import('../faces/operator/subjects/notify.ts'));
  await add(
    'request',
    'show API requests from the last 30 days',
    () => import('../faces/operator/subjects/requests.ts'),
  );
  await add(
    'receipt',
    'verify signed receipts of paid invoices, and rotate the signing key',
    () => import('../faces/operator/subjects/receipts.ts'),
    {
      addFirst: (group) => addReceiptCheck(group, terminal, print),
    },
  );
  addMasterKeyRotation(
    await add(
      'master-key',
      'manage the master keys that encrypt secrets in the database',
      () => import('../faces/operator/subjects/master-keys.ts'),
    ),
    terminal,
    print,
  );
  addLedgerCommands(program, terminal, print);
  addManifestCommands(program, terminal, print);
  addEventsCommands(program, terminal);
  addExplainCommand(program, terminal, print);
  await add('chain', "check the service's chain data, and repair it", loadChain);
  await addAlone(
    'reconcile',
    'compare the on-chain balances of your addresses with the ledger; exits 1 if a balance differs',
    () => import('../faces/operator/subjects/balances.ts'),
  );
  await add('invoice', "manage your shops' invoices", () => import('../faces/operator/subjects/invoices.ts'));
  await add('transfers', 'show transfers to your addresses, and resolve unmatched ones', async () => {
    const subjects = await Promise.all([
      import('../faces/operator/subjects/transfers.ts'),
      import('../faces/operator/subjects/transfer-decisions.ts'),
      import('../faces/operator/subjects/transfer-export.ts'),
    ]);
    return { operations: subjects.flatMap(({ operations }): readonly LocalOperation[] => operations) };
  });
  addReportCommand(program, terminal, print);
  await add('user', 'manage console users', () => import('../faces/operator/subjects/people.ts'));
  await add('session', 'show and end console sessions', () => import('../faces/operator/subjects/sessions.ts'));
  await add('audit', 'read and verify the audit log', () => import('../faces/operator/subjects/audit.ts'));
  await addDeveloperCommands(program, terminal, print, isWanted);
}

/** Loads the operations in the order in which the help lists them. */
async function loadAddresses() {
  const [{ operations: own }, derivation, changes, capacity] = await Promise.all([
    import('../faces/operator/subjects/addresses.ts'),
    import('../faces/operator/subjects/address-derivation.ts'),
    import('../faces/operator/subjects/address-changes.ts'),
    import('../faces/operator/subjects/capacity.ts'),
  ]);
  const [add, list, ...others] = own;
  return {
    operations: [add, ...derivation.operations, ...changes.operations, list, ...capacity.operations, ...others],
  };
}

async function loadChain() {
  const [{ operations: own }, ranges, repair, producers] = await Promise.all([
    import('../faces/operator/subjects/chain.ts'),
    import('../faces/operator/subjects/chain-ranges.ts'),
    import('../faces/operator/subjects/chain-repair.ts'),
    import('../faces/operator/subjects/chain-producers.ts'),
  ]);
  const [status, ...decisions] = own;
  const [pass, ...ofProducers] = producers.operations;
  return {
    operations: [status, ...ranges.operations, ...repair.operations, pass, ...decisions, ...ofProducers],
  };
}
