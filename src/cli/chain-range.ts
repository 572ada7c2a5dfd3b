import { MAX_RANGE_BLOCKS, type ReadSolid } from '../chain/read-solid.ts';
import { rescan } from '../chain/rescan.ts';
import { type Difference, verifyRange } from '../chain/verify-range.ts';
import type { Network } from '../domain/network.ts';
import { findCursor } from '../store/chain-cursor.ts';
import { describeDifference, tableOfDifferences } from './chain-differences.ts';
import { CliError, EXIT } from './cli-error.ts';
import { clip } from './clip.ts';
import type { Result, Terminal } from './terminal.ts';
import { type NodeCommand, withNodes } from './with-nodes.ts';

export type RangeOptions = { from: string; to: string; network?: string };

export type Range = { from: number; to: number };

const NOTE_MS = 2000;

/** Reads blocks again and records what the ledger missed. */
export async function rescanChain(terminal: Terminal, options: RangeOptions): Promise<Result> {
  const range = readRange(options);
  return withNodes(terminal, options.network, async (deps) => {
    await refuseAboveLedger(deps, range);
    const { added, ...read } = await rescan(deps, range, progressOf(terminal, range));
    const found = Object.entries(added).map(([kind, count]) => `${count} ${kind}`);
    return {
      data: { network: deps.network, ...range, ...read, added },
      text: `${read.blockCount} blocks read; new in the ledger: ${found.join(', ')}`,
      ...hintOf(read),
    };
  });
}

/** Compares blocks with the ledger and changes nothing. Exit code 1 if there is any difference. */
export async function verifyChain(terminal: Terminal, options: RangeOptions): Promise<Result> {
  const range = readRange(options);
  return withNodes(terminal, options.network, async (deps) => {
    await refuseAboveLedger(deps, range);
    const { differences, comparedCount, ...read } = await verifyRange(deps, range, progressOf(terminal, range));
    const summary = `${read.blockCount} blocks read, ${comparedCount} transfers of our addresses compared: `;
    const data = {
      network: deps.network,
      ...range,
      ...read,
      comparedCount,
      differences: differences.map(describeDifference),
    };
    if (differences.length === 0) return { data, text: `${summary}the ledger is the same`, ...hintOf(read) };
    return {
      data,
      text: `${tableOfDifferences(differences)}\n\n${summary}${differences.length} differences`,
      next: adviceOn(deps.network, differences, range),
      exitCode: EXIT.failed,
    };
  });
}

function adviceOn(network: Network, differences: readonly Difference[], { from, to }: Range): string {
  if (differences.every(({ kind }) => kind === 'missing')) {
    return `record what is missing with "quittance chain rescan --from ${from} --to ${to}"`;
  }
  return `ship nothing for these transfers: see what each did, and take back what the chain denies, with "quittance chain repair --network ${network} --from ${from} --to ${to}"`;
}

/** What is to be known about the blocks that were read. */
export function hintOf({ blockCount, attestedCount }: ReadSolid): { next?: string } {
  const count = blockCount - attestedCount;
  if (count === 0) return {};
  return {
    next: `${count} of the blocks were signed by producers that are not known now; they stand because known ones built on them`,
  };
}

/** Block heights fit 2^53; anything else is refused before a node is asked. */
export function readRange({ from, to }: RangeOptions): Range {
  const range = { from: readHeight('--from', from), to: readHeight('--to', to) };
  if (range.from > range.to) throw new CliError('INVALID_ARGUMENT', `--from ${range.from} is above --to ${range.to}`);
  const count = range.to - range.from + 1;
  if (count > MAX_RANGE_BLOCKS) {
    const next = range.from + MAX_RANGE_BLOCKS - 1;
    throw new CliError(
      'INVALID_ARGUMENT',
      `${count} blocks are more than ${MAX_RANGE_BLOCKS} at once: read --from ${range.from} --to ${next} first, then go on`,
    );
  }
  return range;
}

function readHeight(option: string, text: string): number {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  throw new CliError('INVALID_ARGUMENT', `${option} ${clip(text)} is no block number: give a whole number from 1 on`);
}

/** What comes after the ledger is for the service to read. */
export async function refuseAboveLedger({ db, network }: NodeCommand, { to }: Range): Promise<void> {
  const cursor = await findCursor(db, network);
  if (cursor === null) throw new CliError('NOT_FOUND', `${network} was never followed here: start the service first`);
  if (to <= cursor.solid.number) return;
  throw new CliError(
    'INVALID_ARGUMENT',
    `--to ${to} is above block ${cursor.solid.number}, where the ledger stands: what comes after it is the service's to read`,
  );
}

/** Shows, now and then, how far it is, how fast, and how long it takes. */
export function progressOf(terminal: Terminal, { from, to }: Range): (done: number) => void {
  const total = to - from + 1;
  const startMs = performance.now();
  let notedMs = startMs;
  return (done) => {
    const nowMs = performance.now();
    if (nowMs - notedMs < NOTE_MS || done >= total) return;
    notedMs = nowMs;
    const perSecond = done / ((nowMs - startMs) / 1000);
    const leftSeconds = Math.ceil((total - done) / perSecond);
    terminal.note(`${done} of ${total} blocks, ${perSecond.toFixed(1)} a second, about ${leftSeconds} s left`);
  };
}
