import { NETWORKS } from '../../domain/network.ts';
import { readAcknowledged } from '../../store/access/audit-log.ts';
import type { Sql } from '../../store/db/database.ts';
import type { Sealer } from '../../store/db/seal.ts';
import { SEALED_ACTION } from '../../store/db/sealed-tables.ts';
import type { LogProblem } from './verify-audit-chain.ts';

/**
 * Separates the audit log problems that an operator has acknowledged from all others. Acknowledgements are log entries. In a ledger with
 * seals, only sealed entries count, so an attacker who changes the log can't acknowledge the change.
 */
export async function partAccepted(
  { db, sealer }: { db: Sql; sealer: Sealer | null },
  problems: readonly LogProblem[],
): Promise<{ accepted: LogProblem[]; others: LogProblem[] }> {
  if (problems.length === 0) return { accepted: [], others: [] };
  const entries = (await readAcknowledged(db, NETWORKS)).filter(
    ({ seal }) => sealer === null || (seal !== null && sealer.open(SEALED_ACTION, seal).problem === null),
  );
  const names = new Set(entries.flatMap(({ detail }) => detail.accepted ?? []));
  const accepted = problems.filter(({ name }) => names.has(name));
  return { accepted, others: problems.filter(({ name }) => !names.has(name)) };
}
