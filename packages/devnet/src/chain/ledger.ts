import { bytesToHex, hexToBytes } from '@noble/hashes/utils.js';
import { execute } from '../evm/execute.ts';
import { createJournal, keepChanges, type StateChange, type StateReader } from '../evm/state.ts';
import { readSent, type SentTransaction, wholeTransaction } from '../wire/hidden-fields.ts';
import { admissionRefusal, blockRefusal, type PendingTransaction, type Refusal, readPending } from './admission.ts';
import { type Block, type BlockTransaction, sealBlock } from './block.ts';
import type { Chain } from './chain.ts';
import type { LedgerRecord, LedgerStorage } from './ledger-storage.ts';
import { nextTurn, type Schedule, type Witness, witnessesOf } from './schedule.ts';

export type SubmitResult =
  | { readonly kind: 'accepted'; readonly id: string }
  | { readonly kind: 'refused'; readonly id: string; readonly refusal: Refusal };

/** The chain up to `headNumber`, as one kind of endpoint serves it. */
export interface LedgerView {
  readonly headNumber: number;
  state(): StateReader;
  /** Returns how many blocks each producer has made, by its index. */
  produced(): readonly number[];
  block(number: number): Block | null;
  transaction(id: string): { readonly block: Block; readonly transaction: BlockTransaction } | null;
}

export interface Ledger {
  head(): Block;
  schedule(): Schedule;
  /** Sets the schedule from the next block on. A fork doesn't undo this. */
  setSchedule(schedule: Schedule): void;
  /** Returns all current and previous producers, by index. */
  witnesses(): readonly Witness[];
  /**
   * Returns how many slots will pass without a block before the next one, because producers are stalled. Returns null if all producers are
   * stalled.
   */
  missedSlots(): number | null;
  solidNumber(): number;
  pendingCount(): number;
  submit(transaction: SentTransaction): SubmitResult;
  /** Adds these fields (hex), which java-tron doesn't know, to the next block's header. They aren't kept across restarts. */
  hideInNextHeader(fields: string): void;
  /** Adds one block with the pending transactions, in the order in which they arrived. The time must be later than the head's. */
  produceBlock(options: { readonly timestampMs: number }): Block;
  /**
   * Orphans the last `depth` blocks (none of which may be solid) and builds a branch of depth + 1 blocks without transactions. Its last
   * block is `stepMs` later than the old head. With `keepTransactions`, the orphaned transactions become pending again, except the one to
   * `forget`. Otherwise they are all dropped.
   */
  fork(options: {
    readonly depth: number;
    readonly keepTransactions: boolean;
    readonly forget?: string;
    readonly stepMs: number;
  }): Block[];
  /** `full` ends at the head and `solid` ends at the solid block. With `lagBlocks`, both end that many blocks earlier. */
  view(kind: 'full' | 'solid', lagBlocks?: number): LedgerView;
  close(): void;
}

/** A real node refuses more pending transactions than this with SERVER_BUSY (java-tron `maxTransactionPendingSize`). */
const MAX_PENDING = 2_000;

/** The main network's peak is 437 per block. More transactions than this wouldn't fit in one line of the log. */
const MAX_BLOCK_TRANSACTIONS = 2_000;

/** The state machine of a devnet. Every change is stored before callers can see it. It gets the time only from arguments. */
export function openLedger(storage: LedgerStorage): Ledger {
  const pending = new Map<string, PendingTransaction>();
  const chain = storage.open({
    pending: () => [...pending.values()].map(transactionHex),
    replay: (record, chain) => replay(record, { chain, pending }),
  });
  let witnesses = witnessesOf(chain.schedule());
  let hiddenHeader = '';
  const admissionView = () => ({ head: chain.head(), state: chain.state, block: chain.block });

  const extend = (timestampMs: number, skippedTurns: number, taken: readonly PendingTransaction[]): Block => {
    const parent = chain.head();
    const turn = nextTurn(chain.schedule(), parent.turn, skippedTurns)?.index;
    const signer = witnesses.find(({ index }) => index === turn)?.signer;
    if (turn === undefined || signer === undefined)
      throw new RangeError('every producer is stalled, so devnet cannot produce a block');
    const { transactions, change } = run(taken, admissionView(), timestampMs);
    const block = sealBlock(parent, { turn, signer, timestampMs, transactions, hiddenHeader });
    chain.add(block, change, storage.writeBlock(block, change));
    for (const { id } of taken) pending.delete(id);
    hiddenHeader = '';
    storage.maintain(chain);
    return block;
  };

  return {
    head: chain.head,
    schedule: chain.schedule,
    setSchedule(schedule) {
      storage.writeSchedule(schedule);
      chain.setSchedule(schedule);
      witnesses = witnessesOf(schedule);
    },
    witnesses: () => witnesses,
    missedSlots: () => nextTurn(chain.schedule(), chain.head().turn, 0)?.missed ?? null,
    solidNumber: chain.solidNumber,
    pendingCount: () => pending.size,
    hideInNextHeader(fields) {
      hiddenHeader = fields;
    },
    submit(transaction) {
      const submitted = readPending(transaction);
      if (submitted === null) throw new TypeError('the raw_data is not a transaction with one contract');
      const { id } = submitted;
      const refusal = waitingRefusal(id, chain, pending) ?? admissionRefusal(submitted, admissionView());
      if (refusal !== null) return { kind: 'refused', id, refusal };
      storage.writeSubmitted(transactionHex(submitted));
      pending.set(id, submitted);
      return { kind: 'accepted', id };
    },
    produceBlock({ timestampMs }) {
      requireLater(chain.head(), timestampMs);
      return extend(timestampMs, 0, [...pending.values()].slice(0, MAX_BLOCK_TRANSACTIONS));
    },
    fork({ depth, stepMs, ...kept }) {
      requireForkable(chain, depth);
      const to = chain.head().header.number - depth;
      storage.writeFork({ to, ...kept });
      const orphaned = orphan({ to, ...kept }, { chain, pending });
      const times = orphaned.map((block) => block.header.timestamp);
      times.push((times.at(-1) ?? 0) + stepMs);
      const skipped = turnsToSkip(chain, orphaned[0]);
      return times.map((timestampMs, index) => extend(timestampMs, index === 0 ? skipped : 0, []));
    },
    view: (kind, lagBlocks = 0) => viewOf(chain, kind, lagBlocks),
    close: () => storage.close(chain),
  };
}

function waitingRefusal(id: string, chain: Chain, pending: ReadonlyMap<string, unknown>): Refusal | null {
  if (pending.has(id) || chain.heightOf(id) !== null) {
    return { code: 'DUP_TRANSACTION_ERROR', message: 'Dup transaction.' };
  }
  return pending.size >= MAX_PENDING ? { code: 'SERVER_BUSY', message: 'Server busy.' } : null;
}

function requireLater({ header: { timestamp, number } }: Block, timestampMs: number): void {
  if (!Number.isSafeInteger(timestampMs) || timestampMs <= timestamp) {
    throw new RangeError(`block ${number + 1} must be later than ${timestamp}, not at ${timestampMs}`);
  }
}

function requireForkable(chain: Chain, depth: number): void {
  const most = chain.head().header.number - chain.solidNumber();
  if (!Number.isInteger(depth) || depth < 1 || depth > most) {
    throw new RangeError(
      `a fork can replace 1 to ${most} blocks, which are the blocks above the solid block, not ${depth}`,
    );
  }
  if (nextTurn(chain.schedule(), chain.head().turn, 0) === null)
    throw new RangeError('every producer is stalled, so devnet cannot produce a branch');
}

/** Skips the producer whose turn it would be, so that no block on the branch has the same id as the one it replaces. */
function turnsToSkip(chain: Chain, replaced: Block | undefined): number {
  const { active } = chain.schedule();
  const skipped = active.findIndex(
    (_, turns) => turns > 0 && nextTurn(chain.schedule(), chain.head().turn, turns)?.index !== replaced?.turn,
  );
  return Math.max(1, skipped);
}

function run(
  taken: readonly PendingTransaction[],
  view: Parameters<typeof blockRefusal>[1],
  timestampMs: number,
): { transactions: BlockTransaction[]; change: StateChange } {
  const state = createJournal(view.state);
  const transactions: BlockTransaction[] = [];
  for (const waiting of taken) {
    const { id, raw, rawData, signatures, hidden } = waiting;
    if (blockRefusal(waiting, { ...view, state }) !== null) continue;
    const attempt = createJournal(state);
    const { contractRet, info } = execute(attempt, raw, { id, netBytes: rawData.length + 79, timestampMs });
    keepChanges(attempt, state);
    const extra = hidden === undefined ? {} : { hidden };
    transactions.push({ id, rawDataHex: bytesToHex(rawData), signatures, contractRet, ...extra, info });
  }
  return { transactions, change: [...state.changes] };
}

function viewOf(chain: Chain, kind: 'full' | 'solid', lagBlocks: number): LedgerView {
  const last = kind === 'full' ? chain.head().header.number : chain.solidNumber();
  const headNumber = Math.max(0, last - lagBlocks);
  return {
    headNumber,
    state: () => chain.stateAt(headNumber),
    produced: () => chain.producedAt(headNumber),
    block: (number) => (number > headNumber ? null : chain.block(number)),
    transaction(id) {
      const height = chain.heightOf(id);
      const block = height === null || height > headNumber ? null : chain.block(height);
      const transaction = block?.transactions.find((each) => each.id === id);
      return block === null || transaction === undefined ? null : { block, transaction };
    },
  };
}

interface Moving {
  readonly chain: Chain;
  readonly pending: Map<string, PendingTransaction>;
}

/** Applies a record from the log again. */
function replay(record: LedgerRecord, { chain, pending }: Moving): void {
  switch (record.kind) {
    case 'submitted': {
      const transaction = readSent(hexToBytes(record.transaction));
      const again = transaction === null ? null : readPending(transaction);
      if (again === null)
        throw new Error('devnet log contains a transaction that cannot be read: the directory is damaged');
      if (chain.heightOf(again.id) === null) pending.set(again.id, again);
      return;
    }
    case 'fork':
      orphan(record, { chain, pending });
      return;
    case 'producers':
      chain.setSchedule(record.schedule);
      return;
    case 'block':
      chain.add(record.block, record.change, record.position);
      for (const { id } of record.block.transactions) pending.delete(id);
  }
}

/** Returns a transaction in the form in which it was sent. */
function transactionHex({ rawData, signatures, hidden }: PendingTransaction): string {
  return bytesToHex(wholeTransaction({ rawDataHex: bytesToHex(rawData), signatures, contractRet: null, hidden }));
}

/** Removes blocks. Their transactions are either dropped or become pending again, ahead of those that are already pending. */
function orphan(
  { to, keepTransactions, forget }: { to: number; keepTransactions: boolean; forget?: string },
  { chain, pending }: Moving,
): readonly Block[] {
  const orphaned = chain.orphanAbove(to);
  if (!keepTransactions) return orphaned;
  const later = [...pending];
  pending.clear();
  for (const { rawDataHex, signatures, hidden } of orphaned.flatMap((block) => block.transactions)) {
    const sent = readSent(wholeTransaction({ rawDataHex, signatures, contractRet: null, hidden }));
    const again = sent === null ? null : readPending(sent);
    if (again !== null && again.id !== forget) pending.set(again.id, again);
  }
  for (const [id, transaction] of later) pending.set(id, transaction);
  return orphaned;
}
