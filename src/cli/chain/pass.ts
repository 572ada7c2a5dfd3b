import { AppError } from '../../domain/errors.ts';
import { passBlock, readWantedBlock } from '../../operator/chain/pass-block.ts';
import type { ShownBlockView } from '../../operator/chain/views.ts';
import { formatFields } from '../../operator/command-text.ts';
import { cliActor } from '../terminal/operator.ts';
import { readReason } from '../terminal/read-reason.ts';
import { type Column, tableOf } from '../terminal/table.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';
import { withNodes } from '../terminal/with-nodes.ts';

type PassOptions = { block: string; reason: string; id?: string; network?: string; by?: string; yes?: boolean };

export async function printPassed(terminal: Terminal, { yes = false, ...options }: PassOptions): Promise<Result> {
  const wanted = readWantedBlock(options);
  const reason = readReason(options.reason);
  const actor = cliActor(terminal, options.by);
  const onSilent = (origin: string, why: string | null) =>
    terminal.note(why === null ? `${origin} does not have block ${wanted.number}` : `${origin}: ${why}`);
  const { view, transactionCounts } = await withNodes(terminal, options.network, (deps) =>
    passBlock({ ...deps, onSilent }, actor, { ...wanted, reason, isCompared: yes }),
  );
  const text = describe(view, transactionCounts);
  const { number, shownBy } = view;
  if (!('passedBy' in view)) {
    terminal.note(text);
    throw new AppError(
      'USAGE',
      `block ${number} would count on the word of ${shownBy.map(({ node }) => node).join(' and ')}. When you have compared it ` +
        `with a block explorer, run the command again with --id ${view.blockId} --yes`,
    );
  }
  return {
    data: view,
    text: `${text}\n\nblock ${number} passes: ${view.passedBy} said so`,
    next: 'see whether the watcher goes on with "quittance chain status"',
  };
}

function describe(view: ShownBlockView, transactionCounts: readonly number[]): string {
  const { number, blockId, isHeaderProven, transactionCount, shownBy, transfers } = view;
  const header = isHeaderProven ? 'signed by a known producer, and the id belongs to it' : 'not proven either';
  const fields = formatFields([
    ['block', String(number)],
    ['id', blockId],
    ['header', header],
    ['transactions', String(transactionCount)],
    ['to our addresses', `${transfers.length} transfers of USDT`],
  ]);
  const nodes: readonly Column<ShownBlockView['shownBy'][number]>[] = [
    ['SHOWN BY', ({ node }) => node],
    ['OPERATOR', ({ operator }) => operator],
    ['BLOCK', (shown) => (shown.blockId === blockId ? 'this one' : shown.blockId)],
    ['TRANSACTIONS', (shown) => String(transactionCounts[shownBy.indexOf(shown)])],
    ['WHY IT IS NOT PROVEN', ({ problem }) => problem ?? ''],
  ];
  return [fields, tableOf(nodes, shownBy), tableOf(TRANSFERS, transfers)].filter((part) => part !== '').join('\n\n');
}

const TRANSFERS: readonly Column<ShownBlockView['transfers'][number]>[] = [
  ['USDT', ({ amount }) => amount],
  ['ADDRESS', ({ address }) => address],
  ['INVOICE', ({ invoiceId, status }) => (invoiceId === null ? '' : `${invoiceId}, ${status}`)],
  ['TRANSFER', ({ txId, logIndex }) => `${txId}:${logIndex}`],
];
