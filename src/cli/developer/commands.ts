import { type Command, InvalidArgumentError, Option } from '@commander-js/extra-typings';
import type { Scenario } from '../../developer/scenarios/scenarios.ts';
import { TRIGGERS } from '../../developer/trigger/triggers.ts';
import { collect, type Print, type Terminal } from '../terminal/terminal.ts';

/** Adds the commands for shop developers. Scenarios are loaded only for commands that list them. */
export async function addDeveloperCommands(
  program: Command,
  terminal: Terminal,
  print: Print,
  isWanted: (group: string) => boolean,
): Promise<void> {
  const loaded =
    isWanted('sandbox') || isWanted('devnet') ? await import('../../developer/scenarios/scenarios.ts') : null;
  const [all, plain] = [loaded?.SCENARIO_NAMES ?? [], loaded?.PLAIN_SCENARIO_NAMES ?? []];
  const helpOf = (names: readonly Scenario[]) =>
    listOf(Object.fromEntries(names.map((name) => [name, loaded?.scenarioOf(name).help ?? ''])));
  program
    .command('listen')
    .description("forward a test project's events to a server on your machine, signed like webhooks")
    .option('--forward-to <url>', 'where to, such as http://localhost:3000/hook')
    .option('--server <url>', 'Quittance server (default: QUITTANCE_URL, or the sandbox in this data directory)')
    .option('--api-key <key>', 'qt_test_…; other users on this machine can see it, so prefer QUITTANCE_API_KEY')
    .option('--events <types…>', 'only these event types, comma-separated', collect)
    .option('--after <where>', 'where to start: after an event (evt_…), beginning, or latest (only new events)')
    .option('--print-secret', "print the key's signing secret, and exit")
    .option('--allow-http', 'allow http:// to a server on another machine, which exposes the key on the network')
    .addHelpText('after', '\nWith --json, each line is one object. By default, it starts where it last stopped.')
    .action(async (options) => (await import('./listen.ts')).runListen(terminal, options));
  program
    .command('trigger')
    .description('trigger a real event in the running sandbox')
    .argument('<event>', 'invoice.paid, …: see below')
    .option('--amount <usdt>', "amount of the event's invoice (default: 25.00)")
    .option('--external-id <id>', 'external id of that invoice (default: generated from the event and the time)')
    .addHelpText('after', `\nEvents:\n${listOf(TRIGGERS)}`)
    .action(async (event, options) => print((await import('./sandbox.ts')).printTriggered(terminal, event, options)));
  const sandbox = program.command('sandbox').description('act as the payer in a running sandbox, or fill its ledger');
  sandbox
    .command('pay')
    .description('pay an invoice on the local network')
    .argument('<invoice>', 'inv_… or externalId of the demo project, or the URL of a checkout page')
    .addOption(
      new Option('--scenario <scenario>', 'payment scenario: see below')
        .argParser((text) => readScenario(text, all))
        .default('exact' as const),
    )
    .option('--with <inv_…>', 'second invoice in the two-in-one scenario (default: a new one with the same amount)')
    .addHelpText('after', `\nScenarios:\n${helpOf(all)}`)
    .action(async (target, { scenario, with: other }) =>
      print((await import('./sandbox.ts')).printPayment(terminal, { target, scenario, withInvoice: other ?? null })),
    );
  sandbox
    .command('fill')
    .description('fill the ledger with a project whose invoices have every possible outcome, for demos and tests')
    .option('--invoices <count>', 'number of invoices, 1 to 1000000', '1000')
    .option('--days <count>', 'number of past days to spread the invoices over, 1 to 3650', '90')
    .option('--seed <number>', 'random seed: the same number gives the same data', '1')
    .addHelpText('after', '\nThese transfers are not on any chain, so "chain verify" reports them as missing.')
    .action(async (options) => print((await import('./sandbox.ts')).printFilled(terminal, options)));
  const devnet = program
    .command('devnet')
    .description('run the local TRON network on its own')
    .option('--port <port>', 'port for its node; 0 picks any free port', '9090')
    .option('--host <host>', 'network interface to listen on', '127.0.0.1')
    .option('--block-ms <ms>', 'milliseconds between blocks, 100 to 60000 (default: QUITTANCE_DEVNET_BLOCK_MS or 1000)')
    .option('--producers <count>', 'number of block producers, 1 to 27 (default: QUITTANCE_DEVNET_PRODUCERS or 5)')
    .addOption(new Option('--dir <path>', 'directory for the chain (default: devnet-alone in QUITTANCE_DATA_DIR)'))
    .addOption(new Option('--in-memory', 'keep the chain in memory only').conflicts('dir'))
    .action(async (options) => (await import('./devnet.ts')).printDevnet(terminal, options));
  devnet
    .command('pay')
    .description('pay an address on a local network, as a payer would')
    .argument('<address>', 'address shown on the payment page')
    .argument('<amount>', 'amount shown on the payment page, in USDT')
    .addOption(
      new Option('--scenario <scenario>', 'payment scenario: see below')
        .argParser((text) => readScenario(text, plain))
        .default('exact' as const),
    )
    .option('--node <url>', 'URL of the network’s HTTP node', 'http://127.0.0.1:9090')
    .addHelpText('after', `\nScenarios:\n${helpOf(plain)}`)
    .action(async (address, amount, options) =>
      print((await import('./devnet.ts')).printDevnetPayment({ address, amount, ...options })),
    );
}

function readScenario(text: string, names: readonly Scenario[]): Scenario {
  const scenario = names.find((known) => known === text);
  if (scenario !== undefined) return scenario;
  throw new InvalidArgumentError(`Allowed choices are ${names.join(', ')}`);
}

/** Formats names and meanings as aligned lines. */
function listOf(meanings: Readonly<Record<string, string>>): string {
  const width = Math.max(...Object.keys(meanings).map(({ length }) => length));
  return Object.entries(meanings)
    .map(([name, meaning]) => `  ${name.padEnd(width)}  ${meaning}`)
    .join('\n');
}
