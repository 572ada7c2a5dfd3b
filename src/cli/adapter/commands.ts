import type { Command } from '@commander-js/extra-typings';
import { PROJECT_OPTION, type Print } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

export function addAdapterCommands(program: Command, terminal: Terminal, print: Print): void {
  const group = program.command('adapter').description('for shops that speak the API of epusdt, BEpusdt or EPay');
  group
    .command('enable')
    .description(
      'let such shops order from a project and show their secret, once; again, it changes the rate or its source',
    )
    .option(...PROJECT_OPTION)
    .requiredOption('--kind <kind>', 'epusdt (and its successor, gmpay), bepusdt or epay')
    .option('--rate <price>', 'the price of one USDT in the currency of the shop, such as 7.2; or the options below')
    .option('--rate-url <url>', 'where it is read again and again, as JSON')
    .option('--rate-path <pointer>', 'the place of the number in that JSON, such as /tether/cny')
    .option('--rate-time-path <pointer>', 'the place of the time that the number is of, if it says one')
    .option('--rate-min <price>', 'the rate is never lower; 0.7 times a fixed rate if left out')
    .option('--rate-max <price>', 'the rate is never higher; 1.4 times a fixed rate if left out')
    .option('--confirm-rate <old:new>', 'both rates, such as 7.2:9, for a change of more than 20 %, or wider bounds')
    .option('--rate-max-age <duration>', 'orders are refused while it is older: 1m to 7d, 30m if left out')
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
