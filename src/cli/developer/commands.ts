import { type Command, InvalidArgumentError, Option } from '@commander-js/extra-typings';
import { TRIGGERS } from '../../developer/trigger/triggers.ts';
import { PLAIN_SCENARIO_NAMES, SCENARIO_NAMES, type Scenario, scenarioOf } from '../../devnet/payer/scenarios.ts';
import { collect, type Print } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

/** Adds the commands that developers of shops use on their machines. */
export function addDeveloperCommands(program: Command, terminal: Terminal, print: Print): void {
  program
    .command('listen')
    .description('forward the events of a test project to a server on your machine, signed as webhooks are')
    .option('--forward-to <url>', 'where to, such as http://localhost:3000/hook')
    .option('--server <url>', 'the Quittance server; else QUITTANCE_URL, else the sandbox of this data directory')
    .option('--api-key <key>', 'qt_test_…; others on this machine can see it, so rather set QUITTANCE_API_KEY')
    .option('--events <types…>', 'only these types, separated by commas', collect)
    .option('--after <where>', 'begin after an event (evt_…), at the beginning, or with the latest: only new ones')
    .option('--print-secret', 'print the signing secret that belongs to the key, and end')
    .option('--allow-http', 'speak http:// to a server on another machine, which shows the key to the network')
    .addHelpText('after', '\nWith --json each line is one object. It begins where it ended the last time.')
    .action(async (options) => (await import('./listen.ts')).runListen(terminal, options));
  program
    .command('trigger')
    .description('make an event really happen in the running sandbox')
    .argument('<event>', 'invoice.paid, …: see below')
    .option('--amount <usdt>', 'of the invoice that is made for it; else 25.00')
    .option('--external-id <id>', 'of that invoice; else one that tells the event and the time')
    .addHelpText('after', `\nEvents:\n${listOf(TRIGGERS)}`)
    .action(async (event, options) => print((await import('./trigger.ts')).printTriggered(terminal, event, options)));
  const sandbox = program.command('sandbox').description('play the payer in a running sandbox, or fill its ledger');
  sandbox
    .command('pay')
    .description('pay an invoice on the local network')
    .argument('<invoice>', 'inv_… or externalId of the demo project, or the URL of a checkout page')
    .addOption(
      new Option('--scenario <scenario>', 'how it is paid: see below')
        .argParser((text) => readScenario(text, SCENARIO_NAMES))
        .default('exact' as const),
    )
    .option('--with <inv_…>', 'the second invoice of the scenario two-in-one; else a new one of the same amount')
    .addHelpText('after', `\nScenarios:\n${listOf(helpOf(SCENARIO_NAMES))}`)
    .action(async (target, { scenario, with: other }) =>
      print(
        (await import('./sandbox-pay.ts')).printPayment(terminal, { target, scenario, withInvoice: other ?? null }),
      ),
    );
  sandbox
    .command('fill')
    .description('fill the ledger with a project of invoices that went every way, for trying and for tests')
    .option('--invoices <count>', 'how many, 1 to 1000000', '1000')
    .option('--days <count>', 'over how many past days, 1 to 3650', '90')
    .option('--seed <number>', 'the same number tells the same stories', '1')
    .addHelpText('after', '\nNo chain knows of these transfers, so chain verify finds them missing there.')
    .action(async (options) => print((await import('./sandbox-fill.ts')).printFilled(terminal, options)));
  const devnet = program
    .command('devnet')
    .description('run the local TRON network alone')
    .option('--port <port>', 'where its node listens; 0 takes any free port', '9090')
    .option('--host <host>', 'the interface it listens on', '127.0.0.1')
    .option('--block-ms <ms>', 'milliseconds between two blocks, 100 to 60000; else QUITTANCE_DEVNET_BLOCK_MS or 1000')
    .option('--producers <count>', 'block producers, 1 to 27; else QUITTANCE_DEVNET_PRODUCERS or 5')
    .addOption(new Option('--dir <path>', 'where the chain is kept; else devnet-alone in QUITTANCE_DATA_DIR'))
    .addOption(new Option('--in-memory', 'forget the chain at the end').conflicts('dir'))
    .action(async (options) => (await import('./devnet.ts')).printDevnet(terminal, options));
  devnet
    .command('pay')
    .description('pay an address on a local network, to rehearse what a payer does')
    .argument('<address>', 'where to: the address that the payment page shows')
    .argument('<amount>', 'the amount that the page shows, in USDT')
    .addOption(
      new Option('--scenario <scenario>', 'how it is paid: see below')
        .argParser((text) => readScenario(text, PLAIN_SCENARIO_NAMES))
        .default('exact' as const),
    )
    .option('--node <url>', 'the HTTP node of the network', 'http://127.0.0.1:9090')
    .addHelpText('after', `\nScenarios:\n${listOf(helpOf(PLAIN_SCENARIO_NAMES))}`)
    .action(async (address, amount, options) =>
      print((await import('./devnet.ts')).printDevnetPayment({ address, amount, ...options })),
    );
}

function readScenario(text: string, names: readonly Scenario[]): Scenario {
  const scenario = names.find((known) => known === text);
  if (scenario !== undefined) return scenario;
  throw new InvalidArgumentError(`Allowed choices are ${names.join(', ')}`);
}

/** Aligned lines of name and meaning. */
function listOf(meanings: Readonly<Record<string, string>>): string {
  const width = Math.max(...Object.keys(meanings).map(({ length }) => length));
  return Object.entries(meanings)
    .map(([name, meaning]) => `  ${name.padEnd(width)}  ${meaning}`)
    .join('\n');
}

const helpOf = (names: readonly Scenario[]) => Object.fromEntries(names.map((name) => [name, scenarioOf(name).help]));
