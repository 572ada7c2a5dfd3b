import type { Command } from '@commander-js/extra-typings';
import { PROJECT_OPTION, type Print } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

export function addAdapterCommands(program: Command, terminal: Terminal, print: Print): void {
  const group = program.command('adapter').description('for shops that speak the API of epusdt or EPay');
  group
    .command('enable')
    .description('let such shops order from a project and show their secret, once; again, it changes the rate')
    .option(...PROJECT_OPTION)
    .requiredOption('--kind <kind>', 'epusdt (and its successor, gmpay) or epay')
    .requiredOption('--rate <price>', 'the price of one USDT in the currency of the shop, such as 7.2')
    .option('--currency <code>', 'the currency of the shop, CNY if left out')
    .option('--secret <text>', 'the secret that the shop has, 24 to 64 characters; "-" reads it from standard input')
    .action(async ({ project: projectId, ...input }) =>
      print((await import('./adapter.ts')).printEnabledAdapter(terminal, { ...input, projectId })),
    );
  group
    .command('list')
    .description('list adapters, without their secrets')
    .option(...PROJECT_OPTION)
    .action(async ({ project: projectId }) =>
      print((await import('./adapter.ts')).printAdapters(terminal, { projectId })),
    );
  group
    .command('disable')
    .description('let an adapter take no more orders, for ever; payments of those that it took are still told')
    .argument('<adapter>', 'whe_…')
    .action(async (adapterId) => print((await import('./adapter.ts')).printDisabledAdapter(terminal, adapterId)));
}
