import type { AuditHead } from '../../store/access/audit-log.ts';
import type { AppliedMigration } from '../../store/db/migrate.ts';
import type { LedgerCursor, LedgerTotal } from './backup-totals.ts';

/**
 * A backup file: a magic, then frames compressed by gzip, then a trailer. The trailer is, where a master key was at hand (format 2),
 * the id of that key (8 bytes) and a MAC (32 bytes, see backup-mac.ts), and in both formats the SHA-256 of all before. A frame is a
 * letter, the length of what follows (4 bytes, big-endian), and that: `h` the header, for each table `t` (its name and columns), `d` …
 * (rows as `copy … to stdout` writes them) and `e` (their count), and at last `z` (the count of tables). JSON but for the rows.
 * All of it may stand within a file of age (see backup-encryption.ts).
 */
export const MAGIC = Buffer.from('quittance-backup 1\n');
/** The magic of a file with a MAC. It is as long as the other one. */
export const MAC_MAGIC = Buffer.from('quittance-backup 2\n');
/** Every format begins with this; its number follows. */
export const ANY_MAGIC = Buffer.from('quittance-backup ');
export const DIGEST_BYTES = 32;
export const KEY_ID_BYTES = 8;
export const MAC_BYTES = 32;

export type BackupHeader = {
  /** The release of the program that made the backup. */
  release: string;
  takenAt: string;
  migrations: AppliedMigration[];
  /** `null`: no service was ever started over that database. */
  ledger: { id: string; firstIndex: number; isFinal: boolean } | null;
  cursors: LedgerCursor[];
  /** The totals at the moment of the backup; amounts and counts as text. */
  totals: WrittenTotal[];
  /** Ids of the master keys that open what is sealed in it. */
  masterKeyIds: string[];
  /** The newest entry of the audit log, `null` if it is empty; absent in backups of former releases. */
  auditHead?: AuditHead | null;
};

export type WrittenTotal = Omit<LedgerTotal, 'count' | 'micro'> & { count: string; micro: string };

export type Frame =
  | { type: 'h'; header: BackupHeader }
  | { type: 't'; table: { name: string; columns: string[] } }
  | { type: 'd'; rows: Buffer }
  | { type: 'e'; rowCount: number }
  | { type: 'z'; tableCount: number };

/** Longest frame of each type: a header of thousands of projects is some megabytes, and a chunk of rows some ten kilobytes. */
export const MAX_FRAME_BYTES: Readonly<Record<string, number>> = {
  h: 16 * 1024 * 1024,
  d: 64 * 1024 * 1024,
  t: 64 * 1024,
  e: 64 * 1024,
  z: 64 * 1024,
};
export const FRAME_HEAD_BYTES = 5;

export function encodeFrame(frame: Frame): Buffer[] {
  const { type, ...content } = frame;
  const body = type === 'd' ? frame.rows : Buffer.from(JSON.stringify(content));
  const head = Buffer.alloc(FRAME_HEAD_BYTES);
  head.write(type, 'latin1');
  head.writeUInt32BE(body.length, 1);
  return [head, body];
}
