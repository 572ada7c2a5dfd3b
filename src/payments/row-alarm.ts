import { randomUUID } from 'node:crypto';
import type { Network } from '../domain/network.ts';
import type { UnixMs } from '../domain/time.ts';
import type { Logger } from '../runtime/log.ts';
import { createSeldom } from '../runtime/seldom.ts';
import { raiseAlarm } from '../store/chain/alarms.ts';
import type { Sql } from '../store/db/database.ts';
import { describeSealProblem, type SealJudge, type SealProblem } from '../store/db/seal.ts';

/** Rows of a table without a seal that each have an alarm; those after them share one. */
const MAX_NAMED = 20;

/**
 * Raises the alarm `row-changed` for what a statement met: for each row that was changed. Rows without a seal have one for all of a table in
 * the mode `warn`, for an older release may have left many. Never throws.
 */
export function createSealNotifier(deps: {
  db(): Sql;
  log: Logger;
  mode: SealJudge['mode'];
  now(): UnixMs;
  /** Those of this process, for a row that belongs to none. */
  networks: readonly Network[];
}): (problem: SealProblem) => void {
  const seldom = createSeldom(deps.now);
  const named = new Map<string, Set<string>>();
  const isNamed = ({ table, id, kind }: SealProblem) => {
    if (kind !== 'unsealed') return true;
    const ids = named.get(table) ?? new Set();
    if (deps.mode === 'require' && ids.size < MAX_NAMED) named.set(table, ids.add(id));
    return ids.has(id);
  };
  return (problem) => {
    const subject = isNamed(problem) ? `${problem.table} ${problem.id}`.slice(0, 200) : problem.table;
    if (!seldom.isDue(subject)) return;
    notify(deps, problem, subject).catch((error: unknown) => {
      deps.log.warn(
        { err: error },
        'the alarm about a changed row could not be raised; the next look at it tries again',
      );
      seldom.forget(subject);
    });
  };
}

async function notify(
  { db, log, networks }: Parameters<typeof createSealNotifier>[0],
  problem: SealProblem,
  subject: string,
): Promise<void> {
  const [kind, detail] = ['row-changed', describeSealProblem(problem)] as const;
  log.error({ alarm: kind, subject }, detail);
  const known = networks.find((network) => network === problem.network);
  for (const network of known === undefined ? networks : [known]) {
    await raiseAlarm(db(), network, { id: randomUUID(), kind, subject, detail });
  }
}
