import { randomUUID } from 'node:crypto';
import type { Network } from '../domain/network.ts';
import type { UnixMs } from '../domain/time.ts';
import type { Logger } from '../runtime/log.ts';
import { createSeldom } from '../runtime/seldom.ts';
import { raiseAlarm } from '../store/chain/alarms.ts';
import type { Sql } from '../store/db/database.ts';
import { describeSealProblem, type SealJudge, type SealProblem } from '../store/db/seal.ts';

/** Rows of a table without a seal that are met first in a minute, and each have an alarm; those after them share one, so that many hide none that comes later. */
const MAX_NAMED = 20;
const NAMED_MS = 60_000;
/** Of each table, whether each of them has its own. */
const MAX_MET = 10_000;
type Naming = { at: UnixMs; count: number; ids: Map<string, boolean> };

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
  const tables = new Map<string, Naming>();
  const isNamed = ({ table, id, kind }: SealProblem) => {
    if (kind !== 'unsealed') return true;
    if (deps.mode === 'warn') return false;
    const naming = tables.get(table) ?? { at: deps.now(), count: 0, ids: new Map<string, boolean>() };
    tables.set(table, naming);
    const before = naming.ids.get(id);
    if (before !== undefined) return before;
    // A clock that was put back does not put this off.
    if (Math.abs(deps.now() - naming.at) >= NAMED_MS) Object.assign(naming, { at: deps.now(), count: 0 });
    naming.count += 1;
    if (naming.ids.size >= MAX_MET) naming.ids.clear();
    naming.ids.set(id, naming.count <= MAX_NAMED);
    return naming.count <= MAX_NAMED;
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
