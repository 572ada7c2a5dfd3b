import { AppError } from '../../domain/errors.ts';
import { type AccountHex, accountFromWord, accountToAddress } from '../../tron/address.ts';
import { constantCall } from '../nodes/ask-contract.ts';
import type { Node } from '../nodes/node.ts';
import type { NodePool } from '../nodes/node-pool.ts';
import { ofDifferentOperators } from '../nodes/operators.ts';

/** The terms of the fee that Tether's contract takes from a transfer: `calcFee` of its source. No fee at 0 `basisPoints`, as always. */
export type FeeTerms = { owner: AccountHex; basisPoints: bigint; maxFee: bigint };

/** The contract bounds what its owner can set (`MAX_SETTABLE_BASIS_POINTS`, `MAX_SETTABLE_FEE`): a node that names more lies. */
const MAX_BASIS_POINTS = 20n;
const MAX_FEE = 50_000_000n;
/** Without this pause, a node that shows odd splits could make us ask the contract at each of them. */
const REFRESH_MS = 60_000;
/** Terms that were in force once explain blocks of then. */
const MAX_KNOWN = 16;
/** A single operator could name terms that hide a payment, so one is never believed. */
const LEAST_OPERATORS = 2;

/** The terms that operators agreed on since the process started. */
export type KnownTerms = {
  known(): readonly FeeTerms[];
  /** The contract to which Tether's, once replaced (`deprecate`), forwards calls in a block of that height; `null`: it is not known to. */
  successorAt(number: number): AccountHex | null;
  /**
   * A direct call in the block of that height logged nothing itself. Returns whether operators agree that the contract was replaced: from that
   * height on its successor counts, and not before, when it may have been another token. Asks once a minute at most.
   */
  isForwarding(deps: TermsDeps, number: number): Promise<boolean>;
  /**
   * The contract was replaced in the block of that height. `named`: the successor in the event, if two operators at least agreed on the event. Else
   * nodes are asked for it.
   */
  noteReplaced(number: number, named?: AccountHex | null): void;
  /**
   * The height of that event until the successor is known; else infinity. Transfers of the successor may be missing in that block and in all later
   * ones. Asks at once, and then once a minute at most.
   */
  unansweredFrom(deps: TermsDeps): Promise<number>;
  /** The contracts that single nodes named as its successor when they were last asked: for people, because one operator is not believed. */
  namedSuccessors(): readonly AccountHex[];
  /** Each node's answer about a successor when they were last asked, for people. */
  answers(): string;
  /** Asks anew, once a minute at most. Returns whether there are terms that were not known. */
  refresh(deps: TermsDeps): Promise<boolean>;
};

type TermsDeps = { pool: Pick<NodePool, 'available'>; agreement: number; usdt: AccountHex };

export function feeOf({ basisPoints, maxFee }: FeeTerms, value: bigint): bigint {
  const fee = (value * basisPoints) / 10_000n;
  return fee > maxFee ? maxFee : fee;
}

/** A contract can only be asked for its terms of now, so these count for the blocks that are read from now on, and those before. */
export function createKnownTerms(clockMs: () => number = () => performance.now()): KnownTerms {
  const known = new Map<string, FeeTerms>();
  let nextMs = Number.NEGATIVE_INFINITY;
  let underWay: Promise<boolean> | null = null;
  let successor: AccountHex | null = null;
  let heard: readonly { origin: string; terms: Terms | null }[] = [];
  let forwardsFrom = Number.POSITIVE_INFINITY;
  let replacedIn = Number.POSITIVE_INFINITY;
  let namedIn = Number.NEGATIVE_INFINITY;
  const askAll = async ({ pool, agreement, usdt }: TermsDeps): Promise<boolean> => {
    const nodes = ofDifferentOperators(await pool.available(), Number.POSITIVE_INFINITY);
    heard = await Promise.all(nodes.map(async (node) => ({ origin: node.origin, terms: await readTerms(node, usdt) })));
    const answers = heard.flatMap(({ terms }) => terms ?? []);
    const [first] = answers;
    // An operator that names other terms than the rest may be the honest one: then no terms count.
    const names = new Set(answers.map(nameOf));
    if (first === undefined || answers.length < Math.max(LEAST_OPERATORS, agreement) || names.size > 1) return false;
    const { successor: replacedBy, ...terms } = first;
    // The contract cannot take it back. Operators that name none show a state before the event.
    successor = replacedBy ?? successor;
    if (known.has(nameOf(first))) return false;
    known.set(nameOf(first), terms);
    for (const oldest of known.keys()) {
      if (known.size <= MAX_KNOWN) break;
      known.delete(oldest);
    }
    return true;
  };
  // Blocks are read at the same time: all of them wait for the first that asks.
  const refresh = async (deps: TermsDeps): Promise<boolean> => {
    if (underWay !== null) return underWay;
    if (clockMs() < nextMs) return false;
    nextMs = clockMs() + REFRESH_MS;
    underWay = askAll(deps).finally(() => {
      underWay = null;
    });
    return underWay;
  };
  return {
    known: () => [...known.values()],
    successorAt: (number) => (number >= Math.min(forwardsFrom, replacedIn) ? successor : null),
    isForwarding: async (deps, number) => {
      if (successor === null) await refresh(deps);
      if (successor !== null) forwardsFrom = Math.min(forwardsFrom, number);
      return successor !== null;
    },
    noteReplaced: (number, named = null) => {
      if (named !== null && number > namedIn) [namedIn, successor] = [number, named];
      if (number >= replacedIn) return;
      replacedIn = number;
      nextMs = Number.NEGATIVE_INFINITY;
    },
    unansweredFrom: async (deps) => {
      const isOpen = () => replacedIn < Number.POSITIVE_INFINITY && successor === null;
      if (isOpen()) await refresh(deps);
      return isOpen() ? replacedIn : Number.POSITIVE_INFINITY;
    },
    namedSuccessors: () => [...new Set(heard.flatMap(({ terms }) => terms?.successor ?? []))],
    answers: () => heard.map(({ origin, terms }) => `${origin} ${saidIn(terms)}`).join('; ') || 'no node is available',
    refresh,
  };
}

type Terms = FeeTerms & { successor: AccountHex | null };

/** `null`: the node does not say, or says what cannot be. Five requests. A contract without such a method was never replaced. */
async function readTerms(node: Node, usdt: AccountHex): Promise<Terms | null> {
  const read = async (method: string): Promise<string | null> => {
    // The newest state is asked for: the block that is looked at may have set a fee.
    const answer = await node.ask(constantCall('any', usdt, method));
    return answer.kind === 'answered' ? (answer.words?.[0] ?? null) : null;
  };
  try {
    const [owner, basisPoints, maxFee, deprecated, upgraded] = await Promise.all([
      read('owner()'),
      read('basisPointsRate()'),
      read('maximumFee()'),
      read('deprecated()'),
      read('upgradedAddress()'),
    ]);
    if (owner === null || basisPoints === null || maxFee === null) return null;
    const account = accountFromWord(owner);
    const terms = { basisPoints: BigInt(`0x${basisPoints}`), maxFee: BigInt(`0x${maxFee}`) };
    if (account === null || terms.basisPoints >= MAX_BASIS_POINTS || terms.maxFee >= MAX_FEE) return null;
    const isReplaced = deprecated !== null && BigInt(`0x${deprecated}`) !== 0n;
    return { owner: account, ...terms, successor: isReplaced ? accountFromWord(upgraded ?? '') : null };
  } catch (error) {
    if (error instanceof AppError) return null;
    throw error;
  }
}

function saidIn(terms: Terms | null): string {
  if (terms === null) return 'does not answer';
  return terms.successor === null ? 'names none' : `names ${accountToAddress(terms.successor)}`;
}

function nameOf({ owner, basisPoints, maxFee, successor }: Terms): string {
  return `${owner} ${basisPoints} ${maxFee} ${successor}`;
}
