import type { Network } from '../domain/network.ts';
import type { UnixMs } from '../domain/time.ts';
import type { Logger } from '../runtime/log.ts';
import { createTeller } from '../store/chain/alarms.ts';
import type { Sql } from '../store/db/database.ts';
import { describeSealProblem, type SealJudge, type SealProblem } from '../store/db/seal.ts';
import { SEALED_LIMITS, SEALED_OUTGOING } from '../store/db/sealed-tables.ts';

/**
 * Up to this many unsealed rows per minute and table get their own alarm. All others share one alarm, so that a flood can't hide later
 * rows.
 */
const MAX_NAMED = 20;
const NAMED_MS = 60_000;
/** For at most this many rows per table, Quittance remembers whether they have their own alarm. */
const MAX_MET = 10_000;
/** Seals for these tables are new in this release, so even a ledger that already requires seals has some unsealed rows. */
const SEALED_LATELY: readonly string[] = [SEALED_OUTGOING.name, SEALED_LIMITS.name];
/**
 * A row sealed with a master key that isn't configured doesn't indicate tampering. Neither does a row that is older than its table's seals.
 */
type About = { kind: 'row-changed' | 'row-unsealed' | 'key-unknown'; subject: string };
type Naming = { at: UnixMs; count: number; ids: Map<string, boolean> };
/** `networks`: this process's networks, for rows that don't belong to a network. */
type Deps = { db(): Sql; log: Logger; now(): UnixMs; networks: readonly Network[] };

/**
 * Raises an alarm for each problem that a statement finds: one `row-changed` for each changed row, one `key-unknown` for all rows sealed
 * with a master key that isn't configured, and one `row-unsealed` for all unsealed rows of a table that may be left over from an older
 * release. Never throws.
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
    // If the clock was set back, a new minute starts.
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
