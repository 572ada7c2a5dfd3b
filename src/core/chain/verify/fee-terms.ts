import { type AccountHex, accountFromWord, accountToAddress } from '@quittance/tron/address';
import { keepNewest } from '../../runtime/keep-newest.ts';
import { type Node, ofDifferentOperators, orNull } from '../nodes/node.ts';
import type { NodePool } from '../nodes/node-pool.ts';
import { constantCall } from '../nodes/questions.ts';

/**
 * The terms of the transfer fee in Tether's contract (see `calcFee` in its source). If `basisPoints` is 0, there's no fee, which has always
 * been the case so far.
 */
export type FeeTerms = { owner: AccountHex; basisPoints: bigint; maxFee: bigint };

/**
 * The contract limits the fee that its owner can set (`MAX_SETTABLE_BASIS_POINTS`, `MAX_SETTABLE_FEE`), so a node that reports a higher one
 * is wrong.
 */
const MAX_BASIS_POINTS = 20n;
const MAX_FEE = 50_000_000n;
/** Without this minimum interval, a node that shows inexplicable fees could make Quittance ask the contract about each of them. */
const REFRESH_MS = 60_000;
/** Previous terms are kept because they explain older blocks. */
const MAX_KNOWN = 16;
/** A single operator could report terms that hide a payment, so one operator is never enough. */
const LEAST_OPERATORS = 2;

export type KnownTerms = ReturnType<typeof createKnownTerms>;
type TermsDeps = { pool: Pick<NodePool, 'available'>; agreement: number; usdt: AccountHex };

export function feeOf({ basisPoints, maxFee }: FeeTerms, value: bigint): bigint {
  const fee = (value * basisPoints) / 10_000n;
  return fee > maxFee ? maxFee : fee;
}

/**
 * A contract reports only its current terms. Quittance adds them to the previous ones, and uses all of them for every block that it reads
 * from now on.
 */
export function createKnownTerms(clockMs: () => number = () => performance.now()) {
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
    // If one operator reports different terms, it may be the only honest one, so no terms count.
    const names = new Set(answers.map(nameOf));
    if (first === undefined || answers.length < Math.max(LEAST_OPERATORS, agreement) || names.size > 1) return false;
    const { successor: replacedBy, ...terms } = first;
    // The contract can't undo a replacement, so operators that name no successor show an earlier state.
    successor = replacedBy ?? successor;
    if (known.has(nameOf(first))) return false;
    keepNewest(known, nameOf(first), terms, MAX_KNOWN);
    return true;
  };
  /** Asks again, at most once a minute. Returns whether there are new terms. */
  const refresh = async (deps: TermsDeps): Promise<boolean> => {
    // Blocks are read concurrently, so all of them wait for the first request.
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
    /**
     * Once Tether has replaced its contract (`deprecate`), the old contract forwards calls to a successor. Returns the successor in a block
     * at that height, or `null` if none is known.
     */
    successorAt: (number: number) => (number >= Math.min(forwardsFrom, replacedIn) ? successor : null),
    /**
     * Call this when a direct call in the block at that height logged nothing itself. Returns whether operators agree that the contract was
     * replaced. The successor counts only from that height onwards, because it may have been a different token before. Asks at most once a
     * minute.
     */
    isForwarding: async (deps: TermsDeps, number: number) => {
      if (successor === null) await refresh(deps);
      if (successor !== null) forwardsFrom = Math.min(forwardsFrom, number);
      return successor !== null;
    },
    /**
     * Call this when the contract was replaced in the block at that height. `named` is the successor in the event, if at least two
     * operators agreed on the event. Without it, nodes are asked.
     */
    noteReplaced: (number: number, named: AccountHex | null = null) => {
      if (named !== null && number > namedIn) [namedIn, successor] = [number, named];
      if (number >= replacedIn) return;
      replacedIn = number;
      nextMs = Number.NEGATIVE_INFINITY;
    },
    /**
     * Returns the replacement's height while the successor is unknown, and infinity otherwise. The successor's transfers may be missing in
     * that block and in all later ones. Asks immediately, and then at most once a minute.
     */
    unansweredFrom: async (deps: TermsDeps) => {
      const isOpen = () => replacedIn < Number.POSITIVE_INFINITY && successor === null;
      if (isOpen()) await refresh(deps);
      return isOpen() ? replacedIn : Number.POSITIVE_INFINITY;
    },
    /** Returns the successors that single nodes named most recently. They are only for display, because one operator isn't trusted. */
    namedSuccessors: () => [...new Set(heard.flatMap(({ terms }) => terms?.successor ?? []))],
    /** Returns each node's most recent answer about a successor, for display. */
    answers: () => heard.map(({ origin, terms }) => `${origin} ${saidIn(terms)}`).join('; ') || 'no node is available',
    refresh,
  };
}

type Terms = FeeTerms & { successor: AccountHex | null };

/**
 * Returns `null` if the node gives no answer, or an impossible one. Costs five requests. A contract without these methods was never
 * replaced.
 */
async function readTerms(node: Node, usdt: AccountHex): Promise<Terms | null> {
  const read = async (method: string): Promise<string | null> => {
    // Asks for the newest state, because the block being examined may have set a fee.
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
    return orNull(error);
  }
}

function saidIn(terms: Terms | null): string {
  if (terms === null) return 'does not answer';
  return terms.successor === null ? 'names none' : `names ${accountToAddress(terms.successor)}`;
}

function nameOf({ owner, basisPoints, maxFee, successor }: Terms): string {
  return `${owner} ${basisPoints} ${maxFee} ${successor}`;
}
