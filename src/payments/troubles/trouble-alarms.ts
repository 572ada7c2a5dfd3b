import { randomUUID } from 'node:crypto';
import { AppError } from '../../domain/errors.ts';
import type { Network } from '../../domain/network.ts';
import { shortageBehind } from '../../domain/shortage.ts';
import type { Logger } from '../../runtime/log.ts';
import { type Loop, startLoop } from '../../runtime/loop.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import { raiseAlarm, resolveAlarms, resolveUnseenAlarms } from '../../store/chain/alarms.ts';
import type { Database } from '../../store/db/database.ts';
import { keyOf, TROUBLE_KINDS, type Trouble, type Troubles } from './troubles.ts';

const TICK_MS = 1000;
const MAX_PAUSE_MS = 60_000;
/** An alarm is raised again this often while its trouble lasts, so that one whose process ended is known by its age. */
const REPEAT_MS = 60_000;

type Deps = {
  db: Database;
  networks: readonly Network[];
  log: Logger;
  metrics: Pick<Metrics, 'troubles'>;
  troubles: Troubles;
  /** Finds troubles; each decides itself how often. */
  looks: readonly ((db: Database) => Promise<void>)[];
};

/** Looks for what is wrong, every second, and makes alarms of it. Never ends by itself. */
export function startTroubleWatch(deps: Deps): Loop {
  const { log, looks, db } = deps;
  const alarms = createTroubleAlarms(deps);
  return startLoop({
    name: 'watch of troubles',
    log,
    maxPauseMs: MAX_PAUSE_MS,
    run: async (isStopping) => {
      const failures: unknown[] = [];
      const hasFailed = (error: unknown) => failures.push(error) > 0;
      // One that waits for a database that is away is enough for a round, and for a stop. One that fails keeps none from its turn.
      for (const work of [...looks, alarms.keep]) {
        if (isStopping() || !(await unlessAway(work(db)).catch(hasFailed))) break;
      }
      if (failures.length > 0) throw failures[0];
      return TICK_MS;
    },
  });
}

/**
 * Whether it was done. While the database is away, or full, an alarm cannot be written: the list, the log and the metric have told of it, and
 * the next round tries again.
 */
async function unlessAway(work: Promise<void>): Promise<boolean> {
  return work.then(
    () => true,
    (error: unknown) => {
      if (!(error instanceof AppError) || error.code !== 'DATABASE_UNAVAILABLE') throw error;
      // Short of something, it answers: others may be done.
      return shortageBehind(error) !== null;
    },
  );
}

type Raised = { network: Network; trouble: Trouble; atMs: number };

function createTroubleAlarms({ db, networks, metrics, troubles }: Deps): { keep(): Promise<void> } {
  const raised = new Map<string, Raised>();
  let closedMs = Number.NEGATIVE_INFINITY;
  const keep = async () => {
    const nowMs = performance.now();
    const wanted = new Map<string, Omit<Raised, 'atMs'>>();
    for (const trouble of troubles.list()) {
      for (const network of trouble.network === null ? networks : [trouble.network]) {
        wanted.set(`${network} ${keyOf(trouble)}`, { network, trouble });
      }
    }
    for (const kind of TROUBLE_KINDS) {
      metrics.troubles.set({ kind }, troubles.list().filter((trouble) => trouble.kind === kind).length);
    }
    for (const [key, { network, trouble }] of wanted) {
      const before = raised.get(key);
      if (before !== undefined && nowMs - before.atMs < REPEAT_MS && before.trouble.detail === trouble.detail) continue;
      await raiseAlarm(db, network, { id: randomUUID(), ...trouble });
      raised.set(key, { network, trouble, atMs: nowMs });
    }
    for (const [key, { network, trouble }] of raised) {
      if (wanted.has(key)) continue;
      await resolveAlarms(db, network, trouble.kind, trouble.subject);
      raised.delete(key);
    }
    if (nowMs - closedMs < REPEAT_MS) return;
    await resolveUnseenAlarms(db, TROUBLE_KINDS);
    closedMs = nowMs;
  };
  return { keep };
}
