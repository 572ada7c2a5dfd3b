import { type Command, type CommandUnknownOpts, Option } from '@commander-js/extra-typings';
import { usageError } from '../core/domain/errors.ts';
import { NETWORK_CHOICE } from '../core/domain/network.ts';
import { POLICIES } from '../core/domain/policy.ts';
import { readVersion } from '../core/runtime/package.ts';
import type { LocalOperation } from '../faces/operator/operation.ts';
import { addDeveloperCommands } from './developer/commands.ts';
import { addKeyCommand, addSignCommand } from './manifest/sign-commands.ts';
import { addOperations, runAndPrint, type Ways } from './terminal/add-operations.ts';
import type { ExitCode } from './terminal/describe-error.ts';
import {
  collect,
  JSON_OPTION,
  type Print,
  programOf,
  runProgram,
  type Surroundings,
  type Terminal,
} from './terminal/terminal.ts';

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
export async function addCommands(program: Command, terminal: Terminal, isWanted: (group: string) => boolean) {
  const print: Print = async (result) => terminal.print(await result);
  // `addFirst` adds the commands that the help lists before the group's operations.
  const add = async (
    name: Name,
    about: string,
    { addFirst, ways }: { addFirst?: (group: Command) => void; ways?: Ways } = {},
  ) => {
    const group = program.command(name).description(about);
    addFirst?.(group);
    if (isWanted(name)) addOperations(group, terminal, print, (await SUBJECTS[name]()).operations, ways);
    return group;
  };
  // Adds a command without a group. If the command isn't needed, a placeholder is added, which looks the same in the overall help.
  const addAlone = async (name: Name, about: string, wanted = '') => {
    if (isWanted(name)) addOperations(program, terminal, print, (await SUBJECTS[name]()).operations);
    else program.command(`${name} [options]${wanted}`).description(about);
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
  await add('project', 'manage projects; each permanently belongs to one network');
  await add('key', 'manage API keys');
  await add('admin-key', 'manage admin API keys, for --server and for programs');
  await add('address', "manage your wallet's receiving addresses (never private keys)", {
    ways: { 'address derive': async (...given) => (await import('./address/derive.ts')).printDerived(...given) },
  });
  await add('webhook', 'manage webhook endpoints');
  await add('adapter', 'connect shops that use the epusdt, BEpusdt or EPay API');
  addReplay(await add('deliveries', 'show and replay webhook deliveries'), terminal, print);
  await add('notify', 'manage notification channels for alarms');
  await add('request', 'show API requests from the last 30 days');
  await add('receipt', 'verify signed receipts of paid invoices, and rotate the signing key', {
    addFirst: (group) => addReceiptCheck(group, terminal, print),
  });
  await add('master-key', 'manage the master keys that encrypt secrets in the database');
  addLedgerCommands(program, terminal, print);
  addManifestCommands(program, terminal, print);
  addEventsCommands(program, terminal);
  await addAlone('explain', 'show the history of an invoice, a transaction or an address', ' <subject>');
  await add('chain', "check the service's chain data, and repair it");
  await addAlone(
    'reconcile',
    'compare the on-chain balances of your addresses with the ledger; exits 1 if a balance differs',
  );
  await add('invoice', "manage your shops' invoices");
  await add('transfers', 'show transfers to your addresses, and resolve unmatched ones');
  addReportCommand(program, terminal, print);
  await add('user', 'manage console users');
  await add('session', 'show and end console sessions');
  await add('audit', 'read and verify the audit log');
  await addDeveloperCommands(program, terminal, print, isWanted);
}

type Subject = { operations: readonly LocalOperation[] };

async function together(...subjects: readonly Promise<Subject>[]): Promise<Subject> {
  return { operations: (await Promise.all(subjects)).flatMap(({ operations }) => operations) };
}

/** Loads the operations of each group, in the order in which the help lists them. */
const SUBJECTS = {
  project: () => import('../faces/operator/subjects/projects.ts'),
  key: () => import('../faces/operator/subjects/keys.ts'),
  'admin-key': () => import('../faces/operator/subjects/admin-keys.ts'),
  address: loadAddresses,
  webhook: () =>
    together(import('../faces/operator/subjects/webhooks.ts'), import('../faces/operator/subjects/webhook-sending.ts')),
  adapter: () => import('../faces/operator/subjects/adapters.ts'),
  deliveries: () => import('../faces/operator/subjects/deliveries.ts'),
  notify: () => import('../faces/operator/subjects/notify.ts'),
  request: () => import('../faces/operator/subjects/requests.ts'),
  receipt: () => import('../faces/operator/subjects/receipts.ts'),
  'master-key': () => import('../faces/operator/subjects/master-keys.ts'),
  explain: () => import('../faces/operator/explain/explain.ts'),
  chain: loadChain,
  reconcile: () => import('../faces/operator/subjects/balances.ts'),
  invoice: () => import('../faces/operator/subjects/invoices.ts'),
  transfers: () =>
    together(
      import('../faces/operator/subjects/transfers.ts'),
      import('../faces/operator/subjects/transfer-decisions.ts'),
      import('../faces/operator/subjects/transfer-export.ts'),
    ),
  user: () => import('../faces/operator/subjects/people.ts'),
  session: () => import('../faces/operator/subjects/sessions.ts'),
  audit: () => import('../faces/operator/subjects/audit.ts'),
} satisfies Record<string, () => Promise<Subject>>;

type Name = keyof typeof SUBJECTS;

async function loadAddresses(): Promise<Subject> {
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

async function loadChain(): Promise<Subject> {
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

function addSetupCommand(program: Command, terminal: Terminal, print: Print): void {
  program
    .command('setup')
    .description(
      'create the .env file for compose.yaml, with the secrets of a new installation and the settings you have to fill in',
    )
    .requiredOption(
      '--site <host>',
      'public host name for payers, such as pay.example.com; its DNS record must point here',
    )
    .option('--output <file>', 'output file, or "-" for standard output', '.env')
    .action(async (options) => print((await import('./setup/setup.ts')).printSetup(terminal, options)));
}

function addDoctorCommand(program: Command, terminal: Terminal, print: Print): void {
  program
    .command('doctor')
    .description('check the service and its environment in seconds, and show what to fix; exits 1 if a check fails')
    .action(async () => print((await import('./doctor/doctor.ts')).printDoctor(terminal)));
}

const IDENTITY_OPTION = ['--identity <file>', 'age secret key file of an encrypted backup'] as const;

/** For commands that aren't operations. */
const PROJECT_OPTION = ['--project <prj_…>', 'project (default: the only project)'] as const;
const BY_OPTION = ['--by <name>', 'your name for the audit log (default: your user name)'] as const;

function addBackupCommands(program: Command, terminal: Terminal, print: Print): void {
  const backup = program
    .command('backup')
    .description('back up the whole ledger to a file while the service runs, or verify a backup')
    .option('--to <file>', 'output file (default: quittance-<time>.backup in this directory)')
    .option('--final', 'move the ledger: close it here permanently, so the restored ledger can keep the addresses')
    .option('--verify <file>', 'restore a backup to a temporary database, and compare it with the ledger and the chain')
    .option('--recipient <age1…>', 'encrypt to this public key (default: QUITTANCE_BACKUP_RECIPIENT)', collect)
    .option('--no-chain', 'with --verify: do not read the chain since the backup')
    .option('--unauthenticated', 'with --verify: also verify a backup that no master key authenticates')
    .option(...IDENTITY_OPTION)
    .action(async (options) => {
      const { printBackup, printVerified } = await import('./backup/backup.ts');
      const { verify } = options;
      await print(verify === undefined ? printBackup(terminal, options) : printVerified(terminal, verify, options));
    });
  backup
    .command('keygen')
    .description('generate a key pair for encrypted backups; works on any machine')
    .argument('<file>', 'new file for the secret key')
    .action(async (file) => print((await import('./backup/backup.ts')).printNewBackupKey(terminal, file)));
  const restore = program
    .command('restore')
    .description('restore a backup into an empty database; stop the service first')
    .argument('<file>', 'file written by "quittance backup"')
    .option(...IDENTITY_OPTION)
    .option('--unauthenticated', 'also accept a backup that no master key authenticates')
    .option('--reason <text>', 'with --unauthenticated: your reason (recorded in the audit log)')
    .option(...BY_OPTION)
    .action(async (file, options) =>
      print((await import('./backup/backup.ts')).printRestored(terminal, file, options)),
    );
  restore
    .command('accept')
    .description('accept a database that was copied or restored by other means')
    .option(
      '--retire-addresses',
      'retire all addresses, because invoices may have been created elsewhere since the copy',
    )
    .option('--nothing-created-since', 'confirm that no invoice was created elsewhere since the copy')
    .option(...BY_OPTION)
    .action(async (options) => print((await import('./backup/backup.ts')).printAcceptedRestore(terminal, options)));
}

function addDatabaseCommands(program: Command, terminal: Terminal, print: Print): void {
  const group = program
    .command('database')
    .description(
      'manage embedded databases that Quittance stores outside data directories when it runs as root, including those of deleted checkouts',
    );
  group
    .command('list')
    .description(
      'list the databases with their size, last use and data directory, and whether that directory still exists',
    )
    .action(async () => print((await import('./database/database.ts')).printDatabases(terminal)));
  group
    .command('remove')
    .description('delete databases whose data directory no longer exists; asks first')
    .argument('[directories...]', 'delete only these databases (required for one whose state is unknown or replaced)')
    .option('--yes', 'delete without confirmation; review the list first')
    .action(async (named, options) =>
      print((await import('./database/database.ts')).printRemovedDatabases(terminal, named, options)),
    );
}

/**
 * Adds the command that resends events. The command runs one operation for named events, and a different one for all events in a period.
 */
function addReplay(group: Command, terminal: Terminal, print: Print): void {
  group
    .command('replay')
    .description("replay selected events, or all of an endpoint's events in a period")
    .argument(
      '[events...]',
      'evt_…, at most 500; without --endpoint, sends each event to every endpoint it was scheduled for',
    )
    .option('--endpoint <whe_…>', 'endpoint to send to, even if an event was not scheduled for it')
    .option('--from <date>', 'start of the period: a day (2026-09-01, UTC) or a time with its zone')
    .option('--to <date>', 'end of the period: a day (inclusive) or a time (exclusive)')
    .option(
      '--status <status…>',
      'dead, failing, delivered, missing (never scheduled for the endpoint), or all (default: dead,missing)',
      collect,
    )
    .option('--type <type…>', 'only events of these types, comma-separated', collect)
    .option('--dry-run', 'only count the events')
    .option('--yes', 'confirm a replay of more than 100 events')
    .option(...BY_OPTION)
    .action((events, { by, dryRun: isDryRun, yes: isConfirmed, ...input }) =>
      print(replay(terminal, events, { ...input, isDryRun, isConfirmed }, by)),
    );
}

type Input = {
  [Name in 'endpoint' | 'from' | 'to']?: string | undefined;
} & { [Name in 'status' | 'type']?: string[] | undefined } & {
  [Name in 'isDryRun' | 'isConfirmed']: boolean | undefined;
};

async function replay(terminal: Terminal, events: readonly string[], input: Input, by: string | undefined) {
  const { readReplayedEvents, replayEvents, replayPeriod } = await import(
    '../faces/operator/subjects/delivery-replay.ts'
  );
  const { endpoint, from, isDryRun, isConfirmed } = input;
  if (events.length > 0) {
    readReplayedEvents(events);
    for (const name of ['from', 'to', 'status', 'type'] as const) {
      if (input[name] !== undefined)
        throw usageError`--${name} selects events, but you also gave event ids: use only one of them`;
    }
    return runAndPrint(terminal, replayEvents, { input: { events, endpoint, isDryRun, isConfirmed }, by });
  }
  if (endpoint !== undefined && from !== undefined) return runAndPrint(terminal, replayPeriod, { input, by });
  throw usageError`nothing was replayed: use event ids (evt_…), or --endpoint and --from (and --to) for all events in a period`;
}

function addReceiptCheck(group: Command, terminal: Terminal, print: Print): void {
  group
    .command('verify')
    .description('verify a signed receipt offline and show what it proves; exits 1 if it was changed')
    .argument('<file>', 'receipt file, as downloaded; "-" reads standard input')
    .option('--keys <file>', 'the issuer’s keys, saved from its /.well-known/quittance-receipt-keys.json')
    .action(async (file, { keys }) =>
      print((await import('./receipt/receipt.ts')).printVerified(terminal, file, keys)),
    );
}

function addLedgerCommands(program: Command, terminal: Terminal, print: Print): void {
  const group = program.command('ledger').description('seal rows against unnoticed changes, and check their seals');
  group
    .command('seal')
    .description('seal rows that have no seal yet, in batches while services run; exits 1 on a changed row')
    .option('--check', 'only count the sealed, unsealed and changed rows')
    .option('--accept <TABLE:ID>', 'seal a changed row again after you corrected it by hand')
    .option('--yes', 'confirm that you compared the ledger with the chain and your addresses, or checked the row')
    .option(...BY_OPTION)
    .action(async (options) => print((await import('./ledger/seal.ts')).printSealed(terminal, options)));
}

function addManifestCommands(program: Command, terminal: Terminal, print: Print): void {
  const group = program
    .command('manifest')
    .description('manage the signed list of your addresses; payers see only addresses on this list');
  addKeyCommand(group, terminal, print);
  group
    .command('draft')
    .description('write the addresses in the database to a draft for signing, and show what is new')
    .option('--output <file>', 'output file', 'addresses.draft')
    .option(
      '--network <network>',
      `${NETWORK_CHOICE}, comma-separated (default: the main network, and the networks of the installed manifest)`,
      collect,
    )
    .option('--reserve <count>', 'number of addresses from each account key to sign in advance', '100')
    .option('--days <count>', 'validity in days', '365')
    .option('--project <prj_…>', 'project for --add, --policy and --max-surcharge')
    .option('--add <T…>', 'addresses that you will add to the database later, comma-separated', collect)
    .addOption(new Option('--policy <policy>', 'with --project: policy that you will set later').choices(POLICIES))
    .option('--max-surcharge <usdt>', 'with --project: surcharge limit that you will set later')
    .option('--without <T…>', 'exclude these addresses, which are in the database but are not yours', collect)
    .action(async (options) => print((await import('./manifest/manifest.ts')).printDraft(terminal, options)));
  addSignCommand(group, terminal, print);
  group
    .command('install')
    .description('install a signed manifest; services use it within seconds, without a restart')
    .argument('<file>', 'file written by "quittance manifest sign"')
    .action(async (file) => print((await import('./manifest/manifest.ts')).printInstalled(terminal, file)));
  group
    .command('show')
    .description('show the content and the signers of a manifest')
    .argument('[file]', 'manifest file (default: the installed manifest)')
    .action(async (file) => print((await import('./manifest/manifest.ts')).printManifest(terminal, file)));
  group
    .command('verify')
    .description('verify a manifest with all its derived addresses; exits 1 unless enough pinned keys signed it')
    .argument('[file]', 'manifest file (default: the installed manifest)')
    .option('--keys <keys>', 'pinned keys, as in QUITTANCE_MANIFEST_KEYS, if that variable is not set here')
    .action(async (file, options) =>
      print((await import('./manifest/manifest.ts')).printVerified(terminal, file, options)),
    );
}

function addEventsCommands(program: Command, terminal: Terminal): void {
  const group = program.command('events').description("follow the events in a project's feed and webhooks");
  group
    .command('tail')
    .description(
      'show the newest events, then new events as they arrive; with --json, print their stored bodies, one per line',
    )
    .option(...PROJECT_OPTION)
    .option(
      '--type <type…>',
      'only these event types, comma-separated, such as invoice.paid,transfer.unmatched',
      collect,
    )
    .addOption(new Option('--limit <count>', 'number of recent events to start with, 0 to 1000').default('10'))
    .addOption(new Option('--after <evt_…>', 'start after this event instead').conflicts('limit'))
    .option('--no-follow', 'exit after showing the existing events')
    .action(async (options) => {
      const { printEvents } = await import('./events/tail.ts');
      const stopping = new AbortController();
      const stop = () => stopping.abort();
      // Only the first signal is handled, so pressing Ctrl-C again ends the process at once.
      process.once('SIGINT', stop).once('SIGTERM', stop);
      await printEvents(terminal, options, { signal: stopping.signal });
    });
}

function addReportCommand(program: Command, terminal: Terminal, print: Print): void {
  program
    .command('report')
    .description('show daily bookkeeping figures: requested, received, unmatched, outgoing, and balance')
    .option(...PROJECT_OPTION)
    .option('--from <day>', 'first day (2026-09-01, UTC) (default: the first of the month of --to)')
    .option('--to <day>', 'last day, inclusive (default: today); at most 366 days')
    .option('--csv', 'print one line per day as CSV on standard output')
    .action(async ({ project: projectId, ...options }) =>
      print((await import('./report/report.ts')).printReport(terminal, { projectId, ...options })),
    );
}

const SERVER_OPTION = ['--server <url>', 'run the command on this Quittance server, with QUITTANCE_ADMIN_KEY'] as const;

/**
 * Sets where the command runs. If a command has its own `--server` option, the command keeps the value, although Commander also assigns it
 * to the program. QUITTANCE_SERVER has an effect only if there is a key. QUITTANCE_URL is for "listen" and shops' programs, and never has
 * an effect here.
 */
function chooseServer(terminal: Terminal, program: CommandUnknownOpts, command: CommandUnknownOpts): void {
  const given: unknown = program.getOptionValue('server');
  if (command.options.some(({ long }) => long === '--server')) {
    if (given !== undefined) command.setOptionValue('server', given);
    return;
  }
  const named = textOf(terminal.env['QUITTANCE_ADMIN_KEY']) && textOf(terminal.env['QUITTANCE_SERVER']);
  const server = given ?? named;
  if (typeof server === 'string') terminal.useServer(server);
}

function textOf(text: string | undefined): string | null {
  return text?.trim() || null;
}
