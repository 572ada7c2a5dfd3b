import { createHmac } from 'node:crypto';
import { AppError } from '../../../core/domain/errors.ts';
import { say } from '../../../core/domain/message.ts';
import { deriveKey, type MasterKey } from '../../../core/runtime/key-ring.ts';
import type { AuditHead } from '../../../core/store/access/audit-log.ts';
import type { Sql } from '../../../core/store/db/database.ts';
import type { AppliedMigration } from '../../../core/store/db/migrate.ts';
import { rowsOf } from '../../../core/store/db/rows-of.ts';
import type { Sealer } from '../../../core/store/db/seal.ts';
import { count, type Row } from '../../../core/store/db/statement.ts';
import { verifyLog } from '../subjects/audit.ts';

const columns = {
  what: 'text',
  network: 'text',
  projectId: 'uuid',
  kind: 'text',
  count: 'int8',
  micro: 'numeric',
} as const;

/**
 * A sum over part of a ledger: the number of rows and their amount in micro-USDT. `kind` is an invoice status, a transfer kind, an event
 * type or an address policy.
 */
export type LedgerTotal = Row<typeof columns>;

/**
 * Computes the sums of the whole ledger, in a fixed order. It reads every invoice, transfer and event, which takes seconds for a million
 * rows.
 */
export const sumLedger = rowsOf(
  'backup-totals',
  columns,
  `select t.what, t.network, t.project_id, t.kind, t.count, t.micro from (
     select 'invoice' as what, network, project_id, status as kind, count(*), sum(payable_micro) as micro
     from invoices group by network, project_id, status
     union all
     select 'transfer', network, project_id, kind, count(*), sum(amount_micro) from transfers group by network, project_id, kind
     union all
     select 'outgoing', network, project_id, 'outgoing', count(*), sum(amount_micro)
     from outgoing_transfers group by network, project_id
     union all
     select 'event', network, project_id, type, count(*), 0 from events group by network, project_id, type
     union all
     select 'address', network, project_id, policy, count(*), 0 from addresses group by network, project_id, policy) t
   order by t.what, t.network, t.project_id, t.kind`,
  () => [],
);

const cursor = { network: 'text', block: count, time: 'timestamptz' } as const;

type LedgerCursor = Row<typeof cursor>;

/** Returns each network's newest recorded block. */
export const findCursors = rowsOf(
  'backup-cursors',
  cursor,
  'select network, solid_number as block, solid_time as time from chain_cursors order by network',
  () => [],
);

/**
 * A backup file consists of a magic number, frames compressed with gzip, and a trailer. With a master key (format 2), the trailer contains
 * that key's id (8 bytes) and a MAC (32 bytes, see `macOf`). In both formats, it ends with the SHA-256 of everything before. A frame
 * is a letter, the length of its body (4 bytes, big-endian) and the body. The frames are `h`, the header; for each table `t` (its name and
 * columns), `d` … (rows in the format of `copy … to stdout`) and `e` (their count); and finally `z` (the number of tables). Everything
 * except the rows is JSON. The whole file may be wrapped in an age file (see backup-read.ts).
 */
export const MAGIC = Buffer.from('quittance-backup 1\n');
/** The magic number of a file with a MAC. It has the same length as `MAGIC`. */
export const MAC_MAGIC = Buffer.from('quittance-backup 2\n');
/** Files of every format begin with this text, followed by the number of the format. */
export const ANY_MAGIC = Buffer.from('quittance-backup ');
export const DIGEST_BYTES = 32;
export const KEY_ID_BYTES = 8;
export const MAC_BYTES = 32;

export type BackupHeader = {
  /** The Quittance release that made the backup. */
  release: string;
  takenAt: string;
  migrations: AppliedMigration[];
  /** `null` if no service has ever been started on that database. */
  ledger: { id: string; firstIndex: number; isFinal: boolean } | null;
  cursors: LedgerCursor[];
  /** Totals at the time of the backup, with amounts and counts as text. */
  totals: WrittenTotal[];
  /** Ids of the master keys that encrypted the secrets in it. */
  masterKeyIds: string[];
  /** The newest entry in the audit log. `null` if the log is empty; absent in backups of earlier releases. */
  auditHead?: AuditHead | null;
};

export type WrittenTotal = Omit<LedgerTotal, 'count' | 'micro'> & { count: string; micro: string };

export type Frame =
  | { type: 'h'; header: BackupHeader }
  | { type: 't'; table: { name: string; columns: string[] } }
  | { type: 'd'; rows: Buffer }
  | { type: 'e'; rowCount: number }
  | { type: 'z'; tableCount: number };

/**
 * The maximum length of each type of frame. A header for thousands of projects takes a few megabytes, and a chunk of rows takes tens of
 * kilobytes.
 */
export const MAX_FRAME_BYTES: Readonly<Record<string, number>> = {
  h: 16 * 1024 * 1024,
  d: 64 * 1024 * 1024,
  t: 64 * 1024,
  e: 64 * 1024,
  z: 64 * 1024,
};
export const FRAME_HEAD_BYTES = 5;

/** The trailer of a backup, and the digest calculated while the backup was read. */
export type BackupEnding = {
  /** The SHA-256 of the file without its trailer, which the MAC covers. */
  digest: Buffer;
  /** `null` if the file has only digests, because it was made without a master key or by an earlier release. */
  signed: { masterKeyId: string; mac: Buffer } | null;
};

/** `authentic`: made with the master key and unchanged. `unknown-key`: made with a key that isn't configured here. */
export type Authenticity =
  | { kind: 'authentic'; masterKeyId: string }
  | { kind: 'tampered'; masterKeyId: string }
  | { kind: 'unknown-key'; masterKeyId: string; hasKeys: boolean }
  | { kind: 'unsigned' };

/** HMAC-SHA-256 over the digest of all preceding bytes, with a key derived only for this ledger's backups. */
export function macOf(key: MasterKey, ledgerId: string | null, digest: Buffer): Buffer {
  const macKey = deriveKey(key, { purpose: 'quittance backup mac 1', salt: ledgerId ?? '' });
  return createHmac('sha256', macKey).update(digest).digest();
}

/**
 * Accepts an authentic backup. With `takesUnauthenticated`, also accepts a backup that no key can verify, but never one that was certainly
 * tampered with.
 */
export function admitBackup(path: string, found: Authenticity, takesUnauthenticated: boolean): void {
  if (found.kind === 'authentic' || (found.kind !== 'tampered' && takesUnauthenticated)) return;
  if (found.kind === 'tampered') {
    throw new AppError(
      'BACKUP_TAMPERED',
      `${path} was changed after it was created: its checksum is correct, but its MAC with the master key ${found.masterKeyId} is wrong. Nothing was restored. Use another copy of the backup, and find out who changed this file`,
    );
  }
  throw new AppError(
    'BACKUP_UNAUTHENTICATED',
    say`${path} is not authenticated: ${describeMac(found)}. Nothing was restored. If you are sure that no one changed the file, accept it with ${{ field: 'unauthenticated' }}`,
  );
}

/** Explains why a backup can't be authenticated. The text is meant to follow a colon. */
export function describeMac(found: Exclude<Authenticity, { kind: 'authentic' | 'tampered' }>): string {
  if (found.kind === 'unsigned') {
    return 'it has no MAC. Either it was created without a master key or by an old release, or someone removed the MAC';
  }
  const { masterKeyId, hasKeys } = found;
  const made = `its MAC was made with the master key ${masterKeyId}`;
  return hasKeys
    ? `${made}, which is not configured here: add that key after the current key. If you never had this key, the file may be forged`
    : `${made}, but no master key is configured: set QUITTANCE_MASTER_KEY, or put the file master-key into the data directory`;
}

/**
 * Checks the audit log of a ledger that has just been loaded. Its chain must be intact and end where the backup says. If not, returns the
 * problem.
 */
export async function checkAudit(
  deps: { db: Sql; sealer: Sealer | null },
  { auditHead }: BackupHeader,
): Promise<{ head: AuditHead | null; problem: string | null }> {
  const { head, problem } = await verifyLog({ ...deps, kept: auditHead ?? null });
  if (problem !== null) return { head, problem: problem.message };
  const [end, said] = [head?.seq ?? 0, auditHead?.seq ?? 0];
  if (auditHead === undefined || end === said) return { head, problem: null };
  return {
    head,
    problem: `the audit log ends at entry ${end}, but according to the backup, it ended at entry ${said}`,
  };
}
