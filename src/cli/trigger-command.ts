import type { Command } from 'commander';
import type { Print } from './option-parts.ts';
import type { Terminal } from './terminal.ts';
import type { InvoiceOptions } from './trigger/happen-to-invoice.ts';
import { TRIGGERS } from './trigger/triggers.ts';

export function addTriggerCommand(program: Command, terminal: Terminal, print: Print): void {
  const width = Math.max(...Object.keys(TRIGGERS).map(({ length }) => length));
  const list = Object.entries(TRIGGERS).map(([event, how]) => `  ${event.padEnd(width)}  ${how}`);
  program
    .command('trigger')
    .description('make an event really happen in the running sandbox')
    .argument('<event>', 'invoice.paid, …: see below')
    .option('--amount <usdt>', 'of the invoice that is made for it; else 25.00')
    .option('--external-id <id>', 'of that invoice; else one that tells the event and the time')
    .addHelpText('after', `\nEvents:\n${list.join('\n')}`)
    .action(async (event: string, options: InvoiceOptions) =>
      print((await import('./trigger/trigger.ts')).trigger(terminal, event, options)),
    );
}
