import { MAX_RANGE_BLOCKS, type ReadSolid } from '../chain/read-solid.ts';
import { rescan } from '../chain/rescan.ts';
import { type Difference, verifyRange } from '../chain/verify-range.ts';
import { formatAmount, microUsdt } from '../domain/money.ts';
import { findCursor } from '../store/chain-cursor.ts';
import { CliError, EXIT } from './cli-error.ts';
import { clip } from './clip.ts';
import { formatTable, type Result, type Terminal } from './terminal.ts';
import { type NodeCommand, withNodes } from './with-nodes.ts';

export type RangeOptions = { from: string; to: string; network?: string };

type Range = { from: number; to: number };

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
    const shown = differences.map(({ amountMicro, ...rest }) => ({
      ...rest,
      amount: formatAmount(microUsdt(amountMicro)),
    }));
    const summary = `${read.blockCount} blocks read, ${comparedCount} transfers of our addresses compared: `;
    const data = { network: deps.network, ...range, ...read, comparedCount, differences: shown };
    if (differences.length === 0) return { data, text: `${summary}the ledger is the same`, ...hintOf(read) };
    return {
      data,
      text: `${tableOf(differences)}\n\n${summary}${differences.length} differences`,
      next: adviceOn(differences, range),
      exitCode: EXIT.failed,
    };
  });
}

const EXPLAINED: Record<Difference['kind'], string> = {
  missing: 'missing in the ledger',
  'not-on-chain': 'not on the chain',
  wrong: 'in another block, or of another amount',
};

function tableOf(differences: readonly Difference[]): string {
  const rows = differences.map(({ kind, side, address, amountMicro, blockNumber, txId, logIndex }) => [
    EXPLAINED[kind],
    side,
    address,
    formatAmount(microUsdt(amountMicro)),
    String(blockNumber),
    `${txId}:${logIndex}`,
  ]);
  return formatTable(['DIFFERENCE', 'SIDE', 'ADDRESS', 'USDT', 'BLOCK', 'TRANSFER'], rows);
}

function adviceOn(differences: readonly Difference[], { from, to }: Range): string {
  if (differences.every(({ kind }) => kind === 'missing')) {
    return `record what is missing with "quittance chain rescan --from ${from} --to ${to}"`;
  }
  return 'the ledger says what the chain does not: see docs/chain-truth.md before you ship anything for these transfers';
}

function hintOf({ blockCount, attestedCount }: ReadSolid): { next?: string } {
  const count = blockCount - attestedCount;
  if (count === 0) return {};
  return {
    next: `${count} of the blocks were signed by producers that are not known now; they stand because known ones built on them`,
  };
}

/** Block heights fit 2^53; anything else is refused before a node is asked. */
function readRange({ from, to }: RangeOptions): Range {
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

async function refuseAboveLedger({ db, network }: NodeCommand, { to }: Range): Promise<void> {
  const cursor = await findCursor(db, network);
  if (cursor === null) throw new CliError('NOT_FOUND', `${network} was never followed here: start the service first`);
  if (to <= cursor.solid.number) return;
  throw new CliError(
    'INVALID_ARGUMENT',
    `--to ${to} is above block ${cursor.solid.number}, where the ledger stands: what comes after it is the service's to read`,
  );
}

/** Shows, now and then, how far it is, how fast, and how long it takes. */
function progressOf(terminal: Terminal, { from, to }: Range): (done: number) => void {
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
