import { randomBytes } from 'node:crypto';
import { parseAddress } from '@quittance/tron/address';
import { createNodePool } from '../../src/core/chain/nodes/node-pool.ts';
import { createKnownTerms } from '../../src/core/chain/verify/fee-terms.ts';
import { unlimitedNode } from '../../src/core/domain/node.ts';
import { unixMs } from '../../src/core/domain/time.ts';

import { createLogger } from '../../src/core/runtime/log.ts';
import { createMetrics } from '../../src/core/runtime/metrics.ts';
import type { NodeAccess, NodeDeps } from '../../src/faces/operator/operation.ts';
import type { TestService } from '../support/service.ts';

/** A console's access to nodes, which can be held up. */
export type HeldNodes = {
  nodes(): Promise<NodeAccess>;
  /** Lets a job read from its nodes this many times, once for every six blocks, then makes it wait until released. */
  hold(looks: number): () => void;
};

export function holdNodes(depsOf: () => NodeDeps): HeldNodes {
  let looksLeft = Number.POSITIVE_INFINITY;
  let released = Promise.resolve();
  const withNodes: NodeAccess['withNodes'] = (_network, work) => {
    const deps = depsOf();
    const available = async () => {
      looksLeft -= 1;
      if (looksLeft < 0) await released;
      return deps.pool.available();
    };
    return work({ ...deps, pool: { ...deps.pool, available } });
  };
  return {
    nodes: async () => ({ withNodes, describeForPayer: () => '' }),
    hold: (looks) => {
      looksLeft = looks;
      let release = () => {};
      released = new Promise((resolve) => {
        release = resolve;
      });
      return () => {
        looksLeft = Number.POSITIVE_INFINITY;
        release();
      };
    },
  };
}

/** The nodes of a service, with a separate pool. */
export function nodesOfService({ db, devnet, clock, url }: TestService): HeldNodes & { close(): Promise<void> } {
  const now = () => unixMs(clock.now());
  const metrics = createMetrics();
  const usdt = parseAddress(devnet.usdtContract);
  if (usdt.kind !== 'ok') throw new Error(usdt.reason);
  const pool = createNodePool({
    ...{ network: 'devnet', nodes: [unlimitedNode(devnet.url)], now, metrics, blockMs: 3000 },
    log: createLogger({ level: 'silent' }),
  });
  const deps: NodeDeps = {
    ...{ db, network: 'devnet', pool, usdt: usdt.account, agreement: 1, metrics, now, publicUrl: url },
    ...{ fees: createKnownTerms(), slotMs: null, patienceMs: 0, random: (bytes: number) => randomBytes(bytes) },
  };
  return { ...holdNodes(() => deps), close: pool.close };
}
