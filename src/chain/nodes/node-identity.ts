import type { Network } from '../../domain/network.ts';
import { backoffMs } from '../../runtime/backoff.ts';
import type { Logger } from '../../runtime/log.ts';
import type { ShownHeader } from '../../tron/shown-block.ts';
import { readBlockId } from '../proof/prove-block.ts';
import { headerAt } from './ask-block.ts';
import type { Node } from './node.ts';

/** Tells by the genesis block whether a node is of the right network. */
export type NodeIdentity = {
  /** True as well while no genesis block is known: then any node passes. */
  isRecognised(): boolean;
  isWrong(): boolean;
  wrongReason(): string | null;
  /** Has it checked anew before it is recognised again. */
  doubt(): void;
  markWrong(reason: string): void;
  setGenesis(id: string | null): void;
  /** Starts a check if one is due. The check under way or null; it never rejects and tells whether the node is recognised. */
  check(): Promise<boolean> | null;
  /** Resolves when no check is under way. */
  settled(): Promise<unknown>;
};

type IdentityOptions = {
  network: Network;
  origin: string;
  timeoutMs: number;
  clockMs(): number;
  /** Whether no other node can be asked now. */
  isAlone(): boolean;
  log: Logger;
  ask: Node['ask'];
  /** The node answered, but not with its genesis block. */
  onFailure(reason: string): void;
};

/**
 * A node of the wrong network is asked again: somebody may have corrected what stands behind its name. The pause doubles up to
 * the longest of a sick node, for the others may be too few to agree without it; where no other can be asked it stays short.
 */
const RECHECK = { firstMs: 5000, longestMs: 60_000 };
/** A start must not wait long for a node that hangs. */
const MAX_CHECK_MS = 3000;

export function createNodeIdentity(options: IdentityOptions): NodeIdentity {
  const { network, origin, clockMs, isAlone, log, ask, onFailure } = options;
  const timeoutMs = Math.min(options.timeoutMs, MAX_CHECK_MS);
  let genesisId: string | null = null;
  let state: 'unknown' | 'right' | 'wrong' = 'unknown';
  let reason: string | null = null;
  let wrongMs = 0;
  let wrongTimes = 0;
  let checking: Promise<boolean> | null = null;
  const isRecognised = () => state === 'right' || (state === 'unknown' && genesisId === null);
  const markWrong = (what: string) => {
    const isNew = state !== 'wrong';
    state = 'wrong';
    reason = what;
    wrongMs = clockMs();
    wrongTimes += 1;
    if (!isNew) return;
    const variable = `QUITTANCE_${network.toUpperCase()}_NODES`;
    log.error({ network, node: origin, reason }, `${origin} is a node of another network: correct ${variable}`);
  };
  const run = async (): Promise<boolean> => {
    const expected = genesisId;
    // A refusal was counted where it was sent.
    const answer = await ask(headerAt('any', 0), { timeoutMs }).then(readShown, () => null);
    // Another genesis block may have been set meanwhile: the next check asks for that one.
    if (answer === null || expected !== genesisId) return false;
    const { id } = answer;
    if (id === null) onFailure('it does not show its genesis block');
    else if (id !== expected) markWrong(`its genesis block is ${id}, expected ${expected}`);
    else {
      state = 'right';
      reason = null;
      wrongTimes = 0;
    }
    return isRecognised();
  };
  const recheckMs = () => (isAlone() ? RECHECK.firstMs : backoffMs(wrongTimes, RECHECK));
  const isDue = () =>
    genesisId !== null && (state === 'wrong' ? clockMs() - wrongMs >= recheckMs() : state === 'unknown');
  return {
    isRecognised,
    markWrong,
    isWrong: () => state === 'wrong',
    wrongReason: () => (state === 'wrong' ? reason : null),
    doubt: () => {
      if (state === 'right') state = 'unknown';
    },
    setGenesis: (id) => {
      if (id === genesisId) return;
      genesisId = id;
      state = 'unknown';
    },
    check: () => {
      if (checking === null && isDue()) {
        checking = run().finally(() => {
          checking = null;
        });
      }
      return checking;
    },
    settled: () => checking ?? Promise.resolve(),
  };
}

/** The id of block 0, `null` where the node shows none. */
function readShown(shown: ShownHeader | null): { id: string | null } {
  try {
    const mark = shown === null ? null : readBlockId(shown);
    return { id: mark?.number === 0 ? mark.id : null };
  } catch {
    return { id: null };
  }
}
