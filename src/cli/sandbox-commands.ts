import { type Command, Option } from 'commander';
import type { Terminal } from './terminal.ts';

const SCENARIOS = ['exact', 'short', 'over', 'twice', 'fake-token', 'contract', 'two-in-one', 'orphaned'];

export function addSandboxCommands(program: Command, terminal: Terminal): void {
  const group = program.command('sandbox').description('play the payer in a running sandbox');
  group
    .command('pay')
    .description('pay an invoice on the local network')
    .argument('<invoice>', 'inv_…, the URL of its checkout page, or its externalId')
    .addOption(new Option('--scenario <scenario>', 'how it is paid').choices(SCENARIOS).default('exact'))
    .option('--with <inv_…>', 'the second invoice of the scenario two-in-one')
    .action(async (target: string, options: { scenario: string; with?: string }) =>
      (await import('./sandbox.ts')).paySandboxInvoice(terminal, target, options),
    );
}
