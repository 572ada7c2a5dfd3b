import { FAULT_KINDS } from '@quittance/devnet/faults/faults';
import { describe, test } from 'vitest';
import { type FaultKind, liveThrough } from '../support/fault-flow.ts';
import { startTestService } from '../support/service.ts';

/** Facts that only appear in logs are believed from a single node; see docs/explained/chain-truth.md. */
const BELIEVED: FaultKind[] = ['hidden-log', 'forged-log'];
/** While other nodes can be queried, a node is paused for at most a minute. */
const RECOVERY_MS = 90_000;

const cases = FAULT_KINDS.flatMap((kind) =>
  [1, 2, 3].flatMap((nodeCount) =>
    Array.from({ length: nodeCount }, (_, index) => [kind, index + 1, nodeCount] as const),
  ),
).filter(([kind, , nodeCount]) => nodeCount > 1 || !BELIEVED.includes(kind));

describe.concurrent('a fault for a while', () => {
  test.for(cases)(
    '%s on node %i of %i: nothing false, and all is paid when it ends',
    async ([kind, node, nodeCount], { onTestFinished }) => {
      const running = await startTestService({ nodeCount });
      onTestFinished(() => running.stop());
      await liveThrough(running, [[node - 1, [kind]]], RECOVERY_MS);
    },
  );
});
