import { type Command, InvalidArgumentError, Option } from 'commander';
import { SCENARIO_NAMES, SCENARIOS, type Scenario } from '../devnet/scenarios.ts';
import type { Terminal } from './terminal.ts';

export function addSandboxCommands(program: Command, terminal: Terminal): void {
  const group = program.command('sandbox').description('play the payer in a running sandbox');
  group
    .command('pay')
    .description('pay an invoice on the local network')
    .argument('<invoice>', 'inv_… or externalId of the demo project, or the URL of a checkout page')
    .addOption(
      new Option('--scenario <scenario>', 'how it is paid: see below').argParser(readScenario).default('exact'),
    )
    .option('--with <inv_…>', 'the second invoice of the scenario two-in-one; else a new one of the same amount')
    .addHelpText('after', `\nScenarios:\n${describeScenarios()}`)
    .action(async (target: string, options: { scenario: Scenario; with?: string }) =>
      (await import('./sandbox.ts')).paySandboxInvoice(terminal, target, options),
    );
}

function readScenario(text: string): Scenario {
  const scenario = SCENARIO_NAMES.find((known) => known === text);
  if (scenario !== undefined) return scenario;
  throw new InvalidArgumentError(`Allowed choices are ${SCENARIO_NAMES.join(', ')}`);
}

function describeScenarios(): string {
  const width = Math.max(...SCENARIO_NAMES.map(({ length }) => length));
  return SCENARIO_NAMES.map((name) => `  ${name.padEnd(width)}  ${SCENARIOS[name]}`).join('\n');
}
