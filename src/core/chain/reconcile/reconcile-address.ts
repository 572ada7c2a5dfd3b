import { setTimeout as delay } from 'node:timers/promises';
import type { AlarmKind } from '../../domain/alarm-kinds.ts';
import { type Balanced, type BalanceReading, BEHIND_BLOCKS, type Books, balanceBooks } from '../../domain/books.ts';
import { AppError } from '../../domain/errors.ts';
import { uuidV7 } from '../../domain/ids.ts';
import { formatAmount, type MicroUsdt } from '../../domain/money.ts';
import type { UnixMs } from '../../domain/time.ts';
import { raiseAlarm, resolveAlarms } from '../../store/chain/alarms.ts';
import { type BookedAddress, findMovements, saveBalanceCheck, sumMovements } from '../../store/chain/balance-checks.ts';
import { findCursor } from '../../store/chain/cursor.ts';
import type { Node } from '../nodes/node.ts';
import { compareFreeze, type StateDeps } from './compare-states.ts';
import { readBalance } from './read-balance.ts';

export type ReconcileDeps = StateDeps & {
  /** The node that is asked for the balance. If there are several, it isn't the one that provides the blocks. */
  node: Node;
  now(): UnixMs;
  random(bytes: number): Uint8Array;
  /** How long to wait for the ledger to reach the node's height, and how long to wait before the second reading. */
  patienceMs: number;
  confirmAfterMs: number;
  /** Aborts the waiting with an `AbortError`. */
  signal?: AbortSignal;
};

export type Reconciled =
  /** `openingMicro` is the amount that the address held at its first check. */
  | { kind: 'good'; block: number; balanceMicro: bigint; openingMicro: bigint; isFirst: boolean }
  | {
      kind: 'differs';
      ledgerMicro: bigint;
      chainMicro: bigint;
      /** The range of blocks that contains the missing or excess transfers. */
      from: number;
      to: number;
    }
  /** There's no result yet, because the ledger is behind the node, or the balance changed during the check. */
  | { kind: 'too-early'; reason: string };

/** Each address is checked once a day, with an hour to spare. */
const DUE_MS = 23 * 3_600_000;
/** Makes addresses that were added together drift apart over time. */
const JITTER_MS = 30 * 60_000;
/** After a difference, or a match with an earlier height only, the address is checked again soon. */
const DUE_SOON_MS = 10 * 60_000;
const LEDGER_POLL_MS = 1000;

type Reading = BalanceReading & { isBlackListed: boolean | null };
type Compared = { balanced: Balanced; books: Books; reading: Reading; firstBlock: number | null };

/**
 * Compares the ledger with the chain for one address, stores the outcome, and opens or closes its alarms. A difference counts only if a
 * second reading confirms it. The same goes for the opening balance at the first check. Throws `NODE_REFUSED`.
 */
export async function reconcileAddress(deps: ReconcileDeps, address: BookedAddress): Promise<Reconciled> {
  const first = await compare(deps, address, address.opening);
  if ('reason' in first) return first;
  if (address.opening !== null && first.balanced.kind === 'good') return settle(deps, address, first);
  if (deps.confirmAfterMs > 0) await delay(deps.confirmAfterMs, undefined, deps);
  const second = await compare(deps, address, address.opening ?? first.books.opening);
  if ('reason' in second) return second;
  const isMoving = address.opening === null && first.balanced.kind === 'good' && second.balanced.kind === 'differs';
  if (isMoving) return tooEarly(`${deps.node.origin} shows balances of different heights: they fit no common opening`);
  return settle(deps, address, second);
}

async function compare(
  deps: ReconcileDeps,
  { id, account }: BookedAddress,
  known: Books['opening'] | null,
): Promise<Compared | Extract<Reconciled, { kind: 'too-early' }>> {
  const { db, node, usdt } = deps;
  const reading = await readBalance(node, usdt, account);
  const { low, high, balanceMicro } = reading;
  const ledgerBlock = await awaitLedger(deps, high);
  if (ledgerBlock < high) {
    return tooEarly(`the ledger is at block ${ledgerBlock}, and ${node.origin} at ${high}`);
  }
  const opening = known ?? { block: high, micro: balanceMicro };
  if (high < opening.block) {
    throw new AppError('NODE_REFUSED', `${node.origin} is at block ${high}, before block ${opening.block}`, {
      retryable: true,
    });
  }
  if (known === null && (await findMovements(db, id, { above: low, summedUpTo: low, upTo: high })).length > 0) {
    return tooEarly(`a transfer arrived between the blocks ${low} and ${high}`);
  }
  const before = await sumMovements(db, id, opening.block);
  const movements = await findMovements(db, id, {
    above: opening.block,
    summedUpTo: Math.max(opening.block, low - BEHIND_BLOCKS),
    upTo: high,
  });
  const books = { opening, beforeMicro: before.micro, movements };
  return { balanced: balanceBooks(books, reading), books, reading, firstBlock: before.firstBlock };
}

/** Waits up to `patienceMs` for the ledger to reach a height. Returns the ledger's height. */
async function awaitLedger(deps: ReconcileDeps, height: number): Promise<number> {
  const deadlineMs = performance.now() + deps.patienceMs;
  for (;;) {
    const ledgerBlock = (await findCursor(deps.db, deps.network))?.solid.number ?? -1;
    if (ledgerBlock >= height || performance.now() >= deadlineMs) return ledgerBlock;
    await delay(LEDGER_POLL_MS, undefined, deps);
  }
}

function tooEarly(reason: string): Extract<Reconciled, { kind: 'too-early' }> {
  return { kind: 'too-early', reason };
}

async function settle(deps: ReconcileDeps, address: BookedAddress, compared: Compared): Promise<Reconciled> {
  const { db, network, node, now } = deps;
  const { balanced, books, reading } = compared;
  const isSure = balanced.kind === 'good' && balanced.block >= reading.low;
  const goodBlock = Math.max(address.goodBlock ?? books.opening.block, balanced.kind === 'good' ? balanced.block : 0);
  const flag = { low: reading.low, high: reading.high, isSet: reading.isBlackListed };
  const isFreezeKnown = await compareFreeze(deps, node, address, flag);
  const [high = 0, low = 0] = deps.random(2);
  await saveBalanceCheck(db, network, address, {
    opening: books.opening,
    goodBlock,
    checkedBlock: Math.max(goodBlock, reading.high),
    balanceMicro: reading.balanceMicro,
    expectedMicro: balanced.expectedMicro,
    node: node.origin,
    checkedAt: now(),
    dueAt: (now() +
      (isSure && isFreezeKnown
        ? DUE_MS + Math.floor((JITTER_MS * (high * 256 + low)) / 65_536)
        : DUE_SOON_MS)) as UnixMs,
  });
  if (balanced.kind === 'good') {
    await resolveAlarms(db, network, 'balance-differs', address.address);
    const { balanceMicro } = reading;
    const isFirst = address.opening === null;
    return { kind: 'good', block: balanced.block, balanceMicro, openingMicro: books.opening.micro, isFirst };
  }
  const to = Math.max(reading.high, goodBlock);
  const from = Math.min(firstSuspect(address, compared), to);
  const differs = { ledgerMicro: balanced.expectedMicro, chainMicro: reading.balanceMicro, from, to };
  await alarm(deps, 'balance-differs', address, explainDifference(deps, address, differs));
  return { kind: 'differs', ...differs };
}

/**
 * Returns the first block that may contain the difference: the one after the newest good block, or the first block of the address's ledger.
 */
function firstSuspect(address: BookedAddress, { books, firstBlock }: Compared): number {
  const wasNegative = books.opening.micro < books.beforeMicro;
  if (wasNegative) return firstBlock ?? books.opening.block;
  return (address.goodBlock ?? books.opening.block) + 1;
}

function explainDifference(
  { network, node }: ReconcileDeps,
  { address }: BookedAddress,
  { ledgerMicro, chainMicro, from, to }: { ledgerMicro: bigint; chainMicro: bigint; from: number; to: number },
): string {
  return (
    `${address}: the ledger says ${formatSigned(ledgerMicro)} USDT, the chain at block ${to} says ${formatSigned(chainMicro)} ` +
    `according to ${node.origin}: the difference is ${formatSigned(chainMicro - ledgerMicro)}. ` +
    `To see the differences in these blocks: quittance chain repair --network ${network} --from ${from} --to ${to}`
  );
}

/** Formats an amount that may be negative: -25000009n → `"-25.000009"`. */
export function formatSigned(micro: bigint): string {
  return micro < 0n ? `-${formatAmount(-micro as MicroUsdt)}` : formatAmount(micro as MicroUsdt);
}

async function alarm(
  { db, network, now, random }: ReconcileDeps,
  kind: AlarmKind,
  { address }: BookedAddress,
  detail: string,
): Promise<void> {
  await raiseAlarm(db, network, { id: uuidV7(now(), random(10)), kind, subject: address, detail });
}
