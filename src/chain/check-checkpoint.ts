import type { UnixMs } from '../domain/time.ts';
import type { ChainCursor } from '../store/chain-cursor.ts';
import { findProducerSets, type ProducerSet } from '../store/producer-sets.ts';
import type { Checkpoint } from './checkpoints.ts';
import { ofDifferentOperators } from './operators.ts';
import type { ReadDeps } from './read-block.ts';
import { readRun } from './read-run.ts';
import { createWalk, explainedBy, idShownBy } from './walk-producers.ts';

export type CheckedCheckpoint = {
  /** What each operator's node shows at the checkpoint's height. */
  nodes: { origin: string; shows: 'same' | 'another' | 'nothing' }[];
  /** As many operators as must agree show its block, and none shows another. */
  isShown: boolean;
  /** Enough of its producers signed the blocks that begin with its own. */
  isSigned: boolean;
  /** Its producers, with their keys, were in force in this ledger. */
  isRecorded: boolean;
  /** How many of those that are in force in this ledger now it leads to. */
  leadsTo: number;
  isLeading: boolean;
  isGood: boolean;
};

/** More than change in years. */
const MAX_SETS = 1000;

/**
 * Examines a checkpoint as somebody who follows the network: by the nodes that are configured here, by signatures, and by the ledger, up
 * to the block where it stands. Errors: `NO_NODE`, `CHAIN_CONTRADICTION` where it leads nowhere.
 */
export async function checkCheckpoint(
  deps: ReadDeps & { now(): UnixMs },
  checkpoint: Checkpoint,
  cursor: ChainCursor,
): Promise<CheckedCheckpoint> {
  const { db, network, pool, agreement } = deps;
  const available = await pool.available();
  const asked = ofDifferentOperators(available, available.length);
  const nodes = await Promise.all(
    asked.map(async (node) => {
      const id = await idShownBy(deps, node, checkpoint.number);
      const shows =
        id === null ? ('nothing' as const) : id === checkpoint.id ? ('same' as const) : ('another' as const);
      return { node, origin: node.origin, shows };
    }),
  );
  const same = nodes.filter(({ shows }) => shows === 'same');
  const isShown = same.length >= agreement && nodes.every(({ shows }) => shows !== 'another');
  const [first] = same;
  const run = first && (await readRun(deps, first.node, checkpoint.number, checkpoint.producers));
  const isSigned = run != null && run.id === checkpoint.id && run.members !== null;
  const sets = await findProducerSets(db, network, MAX_SETS);
  const isRecorded = sets.some(({ producers }) => textOf(producers) === textOf(checkpoint.producers));
  const walked = await createWalk(deps, checkpoint).to(asked, cursor.solid);
  const { count, isEnough } = explainedBy(walked, sets[0]?.producers ?? []);
  return {
    nodes: nodes.map(({ origin, shows }) => ({ origin, shows })),
    ...{ isShown, isSigned, isRecorded, leadsTo: count, isLeading: isEnough },
    isGood: isShown && isSigned && isRecorded && isEnough,
  };
}

function textOf(producers: ProducerSet['producers']): string {
  const pairs = producers.map(({ account, signer }) => `${account} ${signer}`);
  return pairs.sort().join();
}
