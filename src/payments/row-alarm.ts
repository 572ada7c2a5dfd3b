import type { Network } from '../domain/network.ts';
import type { UnixMs } from '../domain/time.ts';
import type { Logger } from '../runtime/log.ts';
import { createTeller } from '../store/chain/tell-alarms.ts';
import type { Sql } from '../store/db/database.ts';
import { describeSealProblem, type SealJudge, type SealProblem } from '../store/db/seal.ts';
import { SEALED_LIMITS, SEALED_OUTGOING } from '../store/db/sealed-tables.ts';

/** Rows of a table without a seal that are met first in a minute, and each have an alarm; those after them share one, so that many hide none that comes later. */
const MAX_NAMED = 20;
const NAMED_MS = 60_000;
/** Of each table, whether each of them has its own. */
const MAX_MET = 10_000;
/** Rows of these got seals in this release, so a ledger that required seals before has some without. */
const SEALED_LATELY: readonly string[] = [SEALED_OUTGOING.name, SEALED_LIMITS.name];
/** A row of a key that is not at hand, and rows that are older than their seals, are no sign of anybody's work. */
type About = { kind: 'row-changed' | 'row-unsealed' | 'key-unknown'; subject: string };
type Naming = { at: UnixMs; count: number; ids: Map<string, boolean> };
/** `networks`: those of this process, for a row that belongs to none. */
type Deps = { db(): Sql; log: Logger; now(): UnixMs; networks: readonly Network[] };

/**
 * Raises an alarm for what a statement met: `row-changed` for each row that was changed; `key-unknown` for all rows of a master key that is not
 * at hand; `row-unsealed` for all rows of a table without a seal, where an older release may have left many. Never throws.
 */
export function createSealNotifier(deps: Deps): SealJudge['onProblem'] {
  const tell = createTeller(deps);
  const aboutOf = (problem: SealProblem, { mode, isOlder }: Pick<SealJudge, 'mode' | 'isOlder'>): About => {
    const { table, id, kind, keyId } = problem;
    if (kind === 'unknown-key') return { kind: 'key-unknown', subject: keyId ?? '' };
    const isExpected = mode === 'warn' || (isOlder && SEALED_LATELY.includes(table));
    if (kind === 'unsealed' && isExpected) return { kind: 'row-unsealed', subject: table };
    return { kind: 'row-changed', subject: isNamed(problem) ? `${table} ${id}`.slice(0, 200) : table };
  };
  const tables = new Map<string, Naming>();
  const isNamed = ({ table, id, kind }: SealProblem) => {
    if (kind !== 'unsealed') return true;
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
  return (problem, judging) => {
    const { kind, subject } = aboutOf(problem, judging);
    const known = deps.networks.filter((network) => network === problem.network);
    tell(kind, known.length === 0 ? deps.networks : known, subject, describeSealProblem(problem, kind));
  };
}
