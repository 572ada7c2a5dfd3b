import { type PayOptions, payInvoice, refuseNeedlessSecond } from '../../developer/sandbox/pay-invoice.ts';
import { loadConfig } from '../terminal/load-config.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';

export async function printPayment(terminal: Terminal, options: PayOptions): Promise<Result> {
  refuseNeedlessSecond(options);
  const data = await payInvoice(loadConfig(terminal).dataDir, options);
  const { sent, invoices, outcome } = data;
  return {
    data,
    text: [
      ...sent.map(({ txId, to, amount }) => `sent ${amount} to ${to} in transaction ${txId}`),
      ...invoices.slice(1).map((reference) => `the second invoice is ${reference}`),
      outcome,
    ].join('\n'),
  };
}
