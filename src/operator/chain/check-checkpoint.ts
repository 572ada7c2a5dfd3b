import { ofDifferentOperators } from '../../chain/nodes/operators.ts';
import { type Checkpoint, readCheckpoint } from '../../chain/proof/checkpoints.ts';
import { readRun } from '../../chain/verify/read-run.ts';
import { createWalk, explainedBy, idShownBy } from '../../chain/verify/walk-producers.ts';
import { AppError } from '../../domain/errors.ts';
import { findProducerSets, type ProducerSet } from '../../store/chain/producer-sets.ts';
import type { Actor } from '../actor.ts';
import type { NodeDeps } from '../node-connection.ts';
import { followedCursor } from './followed-cursor.ts';
import type { CheckedCheckpointView } from './views.ts';

export { readCheckpoint };

/** More than change in years. */
const MAX_SETS = 1000;

/**
 * Examines a checkpoint as somebody who follows the network: by the nodes that are configured here, by signatures, and by the ledger, up
 * to the block where it stands, and changes nothing. Errors: `NOT_FOUND`, `INVALID_ARGUMENT` above that block, `NO_NODE`, `CHAIN_CONTRADICTION` where it leads nowhere.
 */
export async function checkCheckpoint(
  deps: NodeDeps,
  _actor: Actor,
  { checkpoint }: { checkpoint: Checkpoint },
): Promise<CheckedCheckpointView> {
  const { db, network, pool, agreement } = deps;
  const { number, id } = checkpoint;
  const { solid } = await followedCursor(db, network);
  if (number > solid.number) {
    throw new AppError(
      'INVALID_ARGUMENT',
      `the checkpoint is block ${number}, and the ledger stands at ${solid.number}: check it when it is past it`,
    );
  }
  const available = await pool.available();
  const asked = ofDifferentOperators(available, available.length);
  const nodes = await Promise.all(
    asked.map(async (node) => {
      const shown = await idShownBy(deps, node, number);
      const shows = shown === null ? 'nothing' : shown === id ? 'same' : 'another';
      return { node, origin: node.origin, shows } as const;
    }),
  );
  const same = nodes.filter(({ shows }) => shows === 'same');
  const isShown = same.length >= agreement && nodes.every(({ shows }) => shows !== 'another');
  const [first] = same;
  const run = first && (await readRun(deps, first.node, number, checkpoint.producers));
  const isSigned = run != null && run.id === id && run.members !== null;
  const sets = await findProducerSets(db, network, MAX_SETS);
  const isRecorded = sets.some(({ producers }) => textOf(producers) === textOf(checkpoint.producers));
  const walked = await createWalk(deps, checkpoint).to(asked, solid);
  const { count, isEnough } = explainedBy(walked, sets[0]?.producers ?? []);
  return {
    ...{ network, number, id },
    nodes: nodes.map(({ origin, shows }) => ({ origin, shows })),
    ...{ isShown, isSigned, isRecorded, leadsTo: count, isLeading: isEnough },
    isGood: isShown && isSigned && isRecorded && isEnough,
  };
}

function textOf(producers: ProducerSet['producers']): string {
  const pairs = producers.map(({ account, signer }) => `${account} ${signer}`);
  return pairs.sort().join();
}
