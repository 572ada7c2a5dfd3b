import type { Network } from '../../domain/network.ts';
import type { LoopHealth } from '../../runtime/loop-health.ts';
import { findSignsOfLife } from '../../store/chain/signs-of-life.ts';
import type { Database } from '../../store/db/database.ts';
import type { Trouble, Troubles } from './troubles.ts';

const LOOK_MS = 5000;
/** Nine looks, so that with the message the alarm is told within a minute. A standby takes over within ten seconds. */
const LOOKS = 8;
const KIND = 'watch-stalled';

export type Liveness = {
  look(db: Database): Promise<void>;
  /** Whether nobody does a work that one process at a time does by a lease: it is not renewed, whoever holds it. */
  isStalled(work: string): boolean;
};

/**
 * Looks whether every work goes on: the loops of this process, and what some process must do by a lease or for the queue of deliveries. It needs
 * no lease itself, so that whoever spoils one keeps nobody from hearing of it.
 */
export function createLiveness({ troubles, loops }: { troubles: Troubles; loops: LoopHealth }): Liveness {
  const seen = new Map<string, { sign: string; looks: number }>();
  let lookedMs = Number.NEGATIVE_INFINITY;
  const isStalled = (work: string) => (seen.get(work)?.looks ?? 0) > LOOKS;
  const note = (work: string, sign: string | null) => {
    const before = seen.get(work);
    if (sign === null) seen.delete(work);
    else seen.set(work, { sign, looks: before?.sign === sign ? before.looks + 1 : 0 });
  };
  return {
    isStalled,
    look: async (db) => {
      if (performance.now() - lookedMs < LOOK_MS) return;
      lookedMs = performance.now();
      const found = loops
        .look(LOOKS)
        .map((name) => troubleOf(name, null, `the work "${name}" of a process fails: see in its log why`));
      const signs = await findSignsOfLife(db);
      for (const { work, network, sign, isNeeded } of signs) {
        note(work, isNeeded ? sign : null);
        if (isStalled(work)) found.push(troubleOf(work, network, `no process does the work "${work}"`));
      }
      for (const work of seen.keys()) if (!signs.some((each) => each.work === work)) seen.delete(work);
      troubles.set(KIND, found);
    },
  };
}

function troubleOf(subject: string, network: Network | null, what: string): Trouble {
  const detail = `${what}. Somebody may have written to the database what it fails at. See "watch-stalled" in docs/chain-truth.md`;
  return { kind: KIND, network, subject, detail, isReady: true };
}
