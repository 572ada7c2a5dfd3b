import type { AuditHead } from '../../store/access/audit-log.ts';
import type { Sql } from '../../store/db/database.ts';
import type { Sealer } from '../../store/db/seal.ts';
import { verifyLog } from '../subjects/audit.ts';
import type { BackupHeader } from './backup-format.ts';

/** Where the audit log of a ledger ends that was just loaded. It must hold together, and end where its backup says: else there is a problem. */
export async function checkAudit(
  deps: { db: Sql; sealer: Sealer | null },
  { auditHead }: BackupHeader,
): Promise<{ head: AuditHead | null; problem: string | null }> {
  const { head, problem } = await verifyLog({ ...deps, kept: auditHead ?? null });
  if (problem !== null) return { head, problem: problem.message };
  const [end, said] = [head?.seq ?? 0, auditHead?.seq ?? 0];
  if (auditHead === undefined || end === said) return { head, problem: null };
  return { head, problem: `the log ends at entry ${end}, and the backup says that it ended at ${said}` };
}
