import { randomBytes } from 'node:crypto';
import { recogniseNodes } from '../../core/chain/nodes/node.ts';
import { createNodePool } from '../../core/chain/nodes/node-pool.ts';
import { createKnownTerms } from '../../core/chain/verify/fee-terms.ts';
import { SLOT_MS } from '../../core/chain/verify/read-block.ts';
import { isLocalNetwork, type Network } from '../../core/domain/network.ts';
import { createLogger } from '../../core/runtime/log.ts';
import { createMetrics } from '../../core/runtime/metrics.ts';
import { describeForPayer } from '../../faces/checkout/lookup/answer.ts';
import type { NodeAccess, NodeDeps } from '../../faces/operator/operation.ts';
import { findNetworkConfig } from './select-network.ts';
import type { Terminal } from './terminal.ts';
import { type CommandDatabase, now } from './with-database.ts';

/** A node that is limiting requests or restarting answers again within this time. */
const PATIENCE_MS = 60_000;

export function nodeAccess(terminal: Pick<Terminal, 'stderr'>, database: Opened): NodeAccess {
  return {
    withNodes: (network, work) => usingNodes(terminal, database, network, work),
    describeForPayer,
  };
}

type Opened = Pick<CommandDatabase, 'db' | 'config'>;

/** Runs `work` with a network's nodes. The requests count against the service's daily budget. */
async function usingNodes<Output>(
  { stderr }: Pick<Terminal, 'stderr'>,
  { db, config }: Opened,
  network: Network,
  work: (deps: NodeDeps) => Promise<Output>,
): Promise<Output> {
  const { nodes, usdt, agreement, publicUrl } = await findNetworkConfig(config, network);
  // No one reads these metrics.
  const metrics = createMetrics();
  const log = createLogger({ level: config.logLevel === 'info' ? 'error' : config.logLevel, destination: stderr });
  const pool = createNodePool({ network, nodes, now, log, metrics, blockMs: SLOT_MS });
  await recogniseNodes({ db, network, pool });
  try {
    return await work({
      ...{ db, network, pool, usdt, agreement, metrics, now },
      fees: createKnownTerms(),
      slotMs: isLocalNetwork(network) ? null : SLOT_MS,
      patienceMs: PATIENCE_MS,
      random: (bytes) => randomBytes(bytes),
      publicUrl,
    });
  } finally {
    await pool.close();
  }
}
