import { setTimeout as delay } from 'node:timers/promises';
import { type AccountHex, accountToAddress } from '@quittance/tron/address';
import { decodeBlockHeader } from '@quittance/tron/block-header';
import { type Balanced, type BalanceReading, BEHIND_BLOCKS, type Books, balanceBooks } from '../domain/books.ts';
import { AppError, retryableError } from '../domain/errors.ts';
import { uuidV7 } from '../domain/ids.ts';
import { formatAmount, type MicroUsdt } from '../domain/money.ts';
import type { Network } from '../domain/network.ts';
import type { UnixMs } from '../domain/time.ts';
import { findPause, followStates, setFreeze, setPause } from '../payments/contract-states.ts';
import { type Leading, whileLeading } from '../payments/watching.ts';
import { createLogThrottle, type Logger } from '../runtime/log.ts';
import { type Loop, startLoop } from '../runtime/loop.ts';
import type { Metrics } from '../runtime/metrics.ts';
import { raiseAlarm, resolveAlarms } from '../store/chain/alarms.ts';
import {
  type BookedAddress,
  findDueAddresses,
  findMovements,
  saveBalanceCheck,
  sumMovements,
} from '../store/chain/balance-checks.ts';
import { findCursor, lockCursor } from '../store/chain/cursor.ts';
import type { Database, Sql } from '../store/db/database.ts';
import { type Node, ofDifferentOperators, orNull } from './nodes/node.ts';
import type { NodePool } from './nodes/node-pool.ts';
import { constantCall, headerAt } from './nodes/questions.ts';
import { isReproduced, readBlockId } from './proof/prove-block.ts';

type ReconcilerDeps = StateDeps &
  Leading & {
    random(bytes: number): Uint8Array;
    metrics: Metrics;
    /** The pause between two addresses. Default: 2,000 ms. Tests use a shorter one. */
    pauseMs?: number;
    confirmAfterMs?: number;
    /** How long to wait for the ledger per address. Default: 40,000 ms. */
    patienceMs?: number;
  };

/** An address costs four requests, so 5,000 addresses a day cost 20,000. The pause leaves most of the nodes' budgets for other work. */
const PAUSE_MS = 2000;
const MAX_PAUSE_MS = 60_000;
/** Maximum number of due addresses that a round considers when looking for one that isn't deferred. */
const CANDIDATES = 500;
/** An address is deferred for this long if the ledger is behind. */
const PUT_OFF_MS = 60_000;
/** If every operator refuses, the check is retried before the refusals of one minute raise an alarm. */
const REFUSED_PUT_OFF_MS = 20_000;
/** As long as no payer is waiting, the ledger advances only every eighth block. */
const PATIENCE_MS = 40_000;
/** Two blocks: enough time for another back end to answer, and for a stale balance to become current. */
const CONFIRM_AFTER_MS = 6000;

/** Checks due addresses one after another, as long as this process is the leader. Runs until it's stopped. */
export function startReconciler(deps: ReconcilerDeps): Loop {
  const { network, pool, now, log, metrics } = deps;
  const db = whileLeading(deps.db, network, deps.isLeader);
  const { pauseMs = PAUSE_MS, confirmAfterMs = CONFIRM_AFTER_MS, patienceMs = PATIENCE_MS } = deps;
  const putOff = new Map<string, number>();
  const onRefusal = logRefusals(deps);
  const stopping = new AbortController();
  const loop = startLoop({
    name: `books of ${network}`,
    log,
    health: deps.loops,
    maxPauseMs: MAX_PAUSE_MS,
    run: async (isStopping) => {
      if (!deps.isLeader()) return pauseMs;
      for (const [id, untilMs] of putOff) if (untilMs <= performance.now()) putOff.delete(id);
      const due = await findDueAddresses(db, network, now(), CANDIDATES);
      const address = due.find(({ id }) => !putOff.has(id));
      if (address === undefined) return due.length === 0 ? pauseMs : { idlePauseMs: pauseMs };
      // The last nodes in order of preference are the least likely to have provided the blocks.
      const nodes = (await pool.available()).toReversed();
      if (nodes.length === 0) return { idlePauseMs: pauseMs }; // The watcher reports that the chain isn't visible.
      putOff.set(address.id, performance.now() + PUT_OFF_MS);
      const wait = { patienceMs, confirmAfterMs, signal: stopping.signal };
      const reconcile = (node: Node) => reconcileAddress({ ...deps, ...wait, db, node }, address);
      const outcome = await askEachOperator(nodes, reconcile, onRefusal).catch((error: unknown) => {
        if (isStopping() || !deps.isLeader()) return null;
        putOff.set(address.id, performance.now() + REFUSED_PUT_OFF_MS);
        throw error;
      });
      if (outcome === null) return 0;
      if (outcome.kind === 'too-early') {
        log.debug(
          { network, address: address.address, reason: outcome.reason },
          'the check of an address is postponed',
        );
        return pauseMs;
      }
      putOff.delete(address.id);
      const labels = { network, address: address.address };
      if (outcome.kind === 'good') {
        // A time series for every address ever checked would be too many, but addresses that differ are rare.
        metrics.balanceDifference.remove(labels);
        return pauseMs;
      }
      const { ledgerMicro, chainMicro, from, to } = outcome;
      metrics.balanceDifference.set(labels, Number(chainMicro - ledgerMicro) / 1_000_000);
      const amounts = { ledger: formatSigned(ledgerMicro), chain: formatSigned(chainMicro) };
      log.error({ ...labels, ...amounts, from, to }, 'the balance of an address differs from the chain');
      return pauseMs;
    },
  });
  return {
    stop: () => {
      const ended = loop.stop();
      stopping.abort();
      return ended;
    },
  };
}

type StateDeps = {
  db: Database;
  network: Network;
  usdt: AccountHex;
  pool: Pick<NodePool, 'available'>;
  /** How many operators must agree before a state changes, because no header proves their answers. */
  agreement: number;
  log?: Logger;
};

/**
 * The watcher sees every change of the contract, so a check can only find a state that began before the watcher first ran. It costs three
 * requests.
 */
const LOOK_MS = 3_600_000;
const FIRST_RETRY_MS = 2000;
const TICK_MS = 1000;

/** Reads whether the contract is paused, at the start and every hour, and updates the alarms for its states. Runs until it's stopped. */
export function startStateWatch(deps: StateDeps & Leading): Loop {
  const db = whileLeading(deps.db, deps.network, deps.isLeader);
  const onRefusal = logRefusals(deps);
  let lookAt = Number.NEGATIVE_INFINITY;
  let retryMs = FIRST_RETRY_MS;
  const wait = (ms: number) => {
    lookAt = performance.now() + ms;
  };
  return startLoop({
    name: `states of the contract of ${deps.network}`,
    log: deps.log,
    health: deps.loops,
    maxPauseMs: MAX_PAUSE_MS,
    run: async () => {
      if (!deps.isLeader()) {
        wait(0);
        return TICK_MS;
      }
      if (performance.now() < lookAt) return { idlePauseMs: TICK_MS };
      wait(retryMs);
      await updateStates({ ...deps, db }, async () => true);
      const isKnown = await comparePause({ ...deps, db }, onRefusal);
      if (isKnown === true) wait(LOOK_MS);
      retryMs = isKnown === false ? Math.min(2 * retryMs, LOOK_MS) : FIRST_RETRY_MS;
      return TICK_MS;
    },
  });
}

/**
 * Changes states, and updates the alarms for all of them. Without the cursor's lock, a state that the watcher records at this moment could
 * lose its alarm.
 */
async function updateStates(deps: StateDeps, change: (tx: Sql) => Promise<boolean>): Promise<void> {
  await deps.db.transaction(async (tx) => {
    await lockCursor(tx, deps.network);
    if (await change(tx)) await followStates(deps, tx);
  });
}

type OnRefusal = (node: Node, refusal: AppError) => void;

/** Returns a function that logs the refusals of a node whose questions other nodes answer, once a minute. */
function logRefusals({ network, log }: Pick<StateDeps, 'network' | 'log'>): OnRefusal {
  const throttle = createLogThrottle(() => performance.now());
  return ({ origin }, { message }) => {
    if (!throttle.isDue(origin)) return;
    log?.warn({ network, node: origin, reason: message }, 'a node refused a call, so another operator was asked');
  };
}

/**
 * Asks one node of each operator in turn until one doesn't refuse, because some operators don't answer calls of contracts. Returns `null`
 * if there are no nodes. If all of them refuse, throws the last `NODE_REFUSED`. If one answers, reports the refusals before its answer.
 */
export async function askEachOperator<Answer>(
  nodes: readonly Node[],
  ask: (node: Node) => Promise<Answer>,
  onRefusal: OnRefusal = () => undefined,
): Promise<Answer | null> {
  const refusals: { node: Node; refusal: AppError }[] = [];
  for (const node of ofDifferentOperators(nodes, Number.POSITIVE_INFINITY)) {
    try {
      const answer = await ask(node);
      for (const each of refusals) onRefusal(each.node, each.refusal);
      return answer;
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'NODE_REFUSED') throw error;
      refusals.push({ node, refusal: error });
    }
  }
  const last = refusals.at(-1);
  if (last !== undefined) throw last.refusal;
  return null;
}

type ReconcileDeps = StateDeps & {
  /** The node that is asked for the balance. It provides the blocks too only if no other operator answers. */
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
/** Addresses that were added at the same time would be checked at the same time. This random delay spreads their checks over time. */
const JITTER_MS = 30 * 60_000;
/** An address is checked again this soon if the amounts differ, or if they match only at an earlier height. */
const DUE_SOON_MS = 10 * 60_000;
const LEDGER_POLL_MS = 1000;

type Reading = BalanceReading & { isBlackListed: boolean | null };
type Compared = { balanced: Balanced; books: Books; reading: Reading; firstBlock: number | null };

/**
 * Compares the ledger with the chain for one address, stores the outcome, and opens or closes its alarms. A difference counts only if a
 * second reading confirms it, and so does the opening balance at the first check. Throws `NODE_REFUSED`.
 */
export async function reconcileAddress(deps: ReconcileDeps, address: BookedAddress): Promise<Reconciled> {
  const first = await compare(deps, address, address.opening);
  if ('reason' in first) return first;
  if (address.opening !== null && first.balanced.kind === 'good') return settle(deps, address, first);
  if (deps.confirmAfterMs > 0) await delay(deps.confirmAfterMs, undefined, deps);
  const second = await compare(deps, address, address.opening ?? first.books.opening);
  if ('reason' in second) return second;
  const isMoving = address.opening === null && first.balanced.kind === 'good' && second.balanced.kind === 'differs';
  if (isMoving)
    return tooEarly(
      `${deps.node.origin} returned balances at different heights, and no single opening balance explains them`,
    );
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
    return tooEarly(`the ledger is at block ${ledgerBlock}, but ${node.origin} is at block ${high}`);
  }
  const opening = known ?? { block: high, micro: balanceMicro };
  if (high < opening.block) {
    throw refused(`${node.origin} is at block ${high}, before block ${opening.block}`);
  }
  if (known === null && (await findMovements(db, id, { above: low, summedUpTo: low, upTo: high })).length > 0) {
    return tooEarly(`a transfer arrived between blocks ${low} and ${high}`);
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
  const detail = explainDifference(deps, address, differs);
  await raiseAlarm(db, network, {
    id: uuidV7(now(), deps.random(10)),
    kind: 'balance-differs',
    subject: address.address,
    detail,
  });
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
    `${address}: the ledger has ${formatSigned(ledgerMicro)} USDT, but the chain has ${formatSigned(chainMicro)} at block ${to}, ` +
    `according to ${node.origin}: the difference is ${formatSigned(chainMicro - ledgerMicro)}. ` +
    `To see the differences in these blocks, run: quittance chain repair --network ${network} --from ${from} --to ${to}`
  );
}

/** Formats an amount that may be negative: -25000009n → `"-25.000009"`. */
export function formatSigned(micro: bigint): string {
  return micro < 0n ? `-${formatAmount(-micro as MicroUsdt)}` : formatAmount(micro as MicroUsdt);
}

/**
 * Compares an address's state in the ledger with whether the contract reports it as frozen. Adopts the contract's answer if enough
 * operators agree. Returns whether the two are known to match.
 */
async function compareFreeze(deps: StateDeps, node: Node, address: BookedAddress, shown: Flag): Promise<boolean> {
  const { account, freezeState, freezeBlock } = address;
  // A sighting in a block that can still be orphaned is newer than any irreversible block.
  if (shown.isSet === null || freezeState === 'seen' || shown.isSet === (freezeState === 'frozen')) return true;
  const change = { account, isFrozen: shown.isSet, block: shown.high };
  if (!(await isAgreed(deps, node, shown, { method: 'isBlackListed(address)', account }, freezeBlock))) return false;
  await updateStates(deps, (tx) => setFreeze(tx, deps.network, change));
  return false;
}

/**
 * Like `compareFreeze`, but for the pause of all transfers. Returns `null`, without asking a node, if no block of the network has been
 * examined yet.
 */
async function comparePause(deps: StateDeps, onRefusal: OnRefusal): Promise<boolean | null> {
  const known = await findPause(deps.db, deps.network);
  if (known === null) return null;
  const read = async (node: Node) => ({ node, shown: await readFlag(node, deps.usdt, { method: 'paused()' }) });
  const answer = await askEachOperator(await deps.pool.available(), read, onRefusal);
  if (answer === null) return false;
  const { node, shown } = answer;
  const isPaused = shown.isSet;
  if (isPaused === null || known.pauseState === 'seen' || isPaused === (known.pauseState === 'paused')) return true;
  // Until the ledger has all blocks up to that height, one of those blocks may still show it the change.
  if (((await findCursor(deps.db, deps.network))?.solid.number ?? 0) < shown.high) return false;
  if (!(await isAgreed(deps, node, shown, { method: 'paused()' }, known.pauseBlock))) return false;
  await updateStates(deps, (tx) => setPause(tx, deps.network, isPaused, shown.high));
  return false;
}

type Asked = { method: string; account?: AccountHex };

/**
 * `changedAt` is the block of the last change that the ledger knows. An answer from before that block says nothing about the current state.
 */
async function isAgreed(deps: StateDeps, first: Node, shown: Flag, asked: Asked, changedAt: number | null) {
  const { pool, usdt, agreement, log, network } = deps;
  if (changedAt !== null && changedAt > shown.low) return false;
  const others = (await pool.available()).filter(({ operator }) => operator !== first.operator);
  const answers = await Promise.all(
    ofDifferentOperators(others, Number.POSITIVE_INFINITY).map((each) => readFlag(each, usdt, asked).catch(orNull)),
  );
  const isCurrent = (flag: Flag | null) => flag !== null && (changedAt === null || changedAt <= flag.low);
  const saying = answers.filter((flag) => isCurrent(flag) && flag?.isSet === shown.isSet).length + 1;
  if (saying >= agreement) return true;
  const what = {
    network,
    method: asked.method,
    account: asked.account,
    answer: shown.isSet,
    saying,
    needed: agreement,
  };
  log?.warn(what, "too few operators agree on the USDT contract's state: nothing changes until they do");
  return false;
}

/** If a node's irreversible chain grows by more than this during one question, it's unclear which height the answer belongs to. */
const MAX_SPREAD_BLOCKS = 100;
/** Maximum length of a node's message in errors. */
const MAX_REASON = 120;

/**
 * Reads an address's USDT balance at an irreversible height, and whether the contract blacklists it (`null` if unknown). Nodes can't answer
 * for past heights, so the node's newest height is read before and after. Costs four requests. Throws `NODE_REFUSED`.
 */
async function readBalance(
  node: Node,
  usdt: AccountHex,
  account: AccountHex,
): Promise<BalanceReading & { isBlackListed: boolean | null }> {
  const { low, high, answer } = await readAtSolid(node, async () => ({
    balance: await ask(node, usdt, { method: 'balanceOf(address)', account }),
    blackListed: await ask(node, usdt, { method: 'isBlackListed(address)', account }),
  }));
  const { balance, blackListed } = answer;
  if (balance === null) throw refused(`${node.origin} did not answer balanceOf for 41${account}`);
  return { low, high, balanceMicro: balance, isBlackListed: blackListed === null ? null : blackListed !== 0n };
}

/** The value of a contract flag at some irreversible height between `low` and `high`; `null` if unknown. */
type Flag = { low: number; high: number; isSet: boolean | null };

/** Reads one of the contract's flags. Costs three requests. Throws `NODE_REFUSED`. */
async function readFlag(node: Node, usdt: AccountHex, asked: Asked): Promise<Flag> {
  const { low, high, answer } = await readAtSolid(node, () => ask(node, usdt, asked));
  return { low, high, isSet: answer === null ? null : answer !== 0n };
}

async function readAtSolid<Answer>(node: Node, read: () => Promise<Answer>) {
  const before = await readSolidNumber(node);
  const answer = await read();
  const after = await readSolidNumber(node);
  // A node's back ends may disagree for a moment, so the second height can be lower than the first.
  const [low, high] = [Math.min(before, after), Math.max(before, after)];
  if (high - low > MAX_SPREAD_BLOCKS) {
    throw refused(`${node.origin} first reported block ${before} as irreversible, and then block ${after}`);
  }
  return { low, high, answer };
}

async function readSolidNumber(node: Node): Promise<number> {
  const shown = await node.ask(headerAt('solid'));
  if (shown === null) throw refused(`${node.origin} returned no irreversible block`);
  // Only the height matters here, and JSON may omit some bytes of a header.
  return isReproduced(shown) ? readBlockId(shown).number : (decodeBlockHeader(shown.header)?.number ?? 0);
}

/** The message of java-tron for a call of an address that has no contract. Its releases phrase it differently. */
const NO_CONTRACT = /contract is not exist|no contract/i;

/** Calls a constant method with one address or no argument. Returns `null` if the call reverts. */
async function ask(node: Node, usdt: AccountHex, { method, account }: Asked): Promise<bigint | null> {
  const answer = await node.ask(constantCall('solid', usdt, method, account?.padStart(64, '0')));
  if (answer.kind === 'refused') {
    const about = account === undefined ? '' : ` for 41${account}`;
    const message = `${node.origin} does not answer ${method}${about}: ${answer.reason.slice(0, MAX_REASON)}`;
    const publicReason = NO_CONTRACT.test(answer.reason)
      ? `according to the nodes, ${accountToAddress(usdt)} is not a contract. On a local network, set QUITTANCE_DEVNET_USDT to the address of its USDT contract`
      : null;
    throw new AppError('NODE_REFUSED', message, { retryable: true, publicReason });
  }
  const word = answer.words?.[0];
  return word === undefined ? null : BigInt(`0x${word}`);
}

const refused = (message: string) => retryableError('NODE_REFUSED', message);
