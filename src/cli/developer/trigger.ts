import type { InvoiceOptions } from '../../developer/trigger/happen-to-invoice.ts';
import { readTrigger, trigger } from '../../developer/trigger/trigger.ts';
import { printableJson } from '../../operator/input/printable.ts';
import { loadConfig } from '../terminal/load-config.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';

export async function printTriggered(terminal: Terminal, name: string, options: InvoiceOptions): Promise<Result> {
  const type = readTrigger(name, options);
  const { id, body } = await trigger({ config: loadConfig(terminal), note: terminal.note }, type, options);
  return { data: { id, type, event: JSON.parse(body) }, text: `${id}\n${printableJson(body)}` };
}
