import { FAULT_KINDS } from '@quittance/devnet/faults/faults';
import { describe, test } from 'vitest';
import { liveThrough } from '../support/fault-flow.ts';
import { startTestService } from '../support/service.ts';

/** While other nodes can be queried, a node is paused for at most a minute. */
const RECOVERY_MS = 90_000;

const pairs = FAULT_KINDS.flatMap((one, index) => FAULT_KINDS.slice(index + 1).map((other) => [one, other] as const));

describe.concurrent('two different faults for a while, with three nodes', () => {
  test.for(pairs)(
    '%s on the first and %s on the second: nothing false, and all is paid when they end',
    async ([one, other], { onTestFinished }) => {
      const running = await startTestService({ nodeCount: 3 });
      onTestFinished(() => running.stop());
      await liveThrough(
        running,
        [
          [0, [one]],
          [1, [other]],
        ],
        RECOVERY_MS,
      );
    },
  );
});
