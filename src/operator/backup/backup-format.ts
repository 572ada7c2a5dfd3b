import { createHmac, timingSafeEqual } from 'node:crypto';
import { AppError } from '../../domain/errors.ts';
import { say } from '../../domain/message.ts';
import { deriveKey, type KeyRing, type MasterKey } from '../../runtime/key-ring.ts';
import { type Static, Type } from '../../runtime/type.ts';
import type { AuditHead } from '../../store/access/audit-log.ts';
import type { Sql } from '../../store/db/database.ts';
import type { AppliedMigration } from '../../store/db/migrate.ts';
import { answerOf, rowsOf } from '../../store/db/rows-of.ts';
import type { Sealer } from '../../store/db/seal.ts';
import { count, type Row } from '../../store/db/statement.ts';
import { nullable, Said, Time } from '../fields.ts';
import { verifyLog } from '../subjects/audit.ts';

const Text = Type.String();
const Count = Type.Integer();
const Flag = Type.Boolean();
const Texts = Type.Array(Text);
/** By table. */
const RowCounts = Type.Record(Text, Count);

/** `authenticatedBy`: the master key whose MAC it has; `recipients`: to whom it is encrypted; `auditHead`: the newest entry of the audit log in it. */
export const BackupView = Type.Object({
  ...{ file: Text, bytes: Count, takenAt: Time, final: Flag, ledgerId: nullable(Text), rowCounts: RowCounts },
  ...{ masterKeyIds: Texts, authenticatedBy: nullable(Text), recipients: Texts, auditHead: nullable(Text) },
});
export type BackupView = Static<typeof BackupView>;

/** Amounts are micro-USDT. */
const Sum = Type.Object({ count: Text, micro: Text });
/** Two sums that differ, but must not. */
export const TotalDifference = Type.Object({
  ...{ what: Text, network: Text, projectId: Text, kind: Text, backup: Sum, other: Sum },
});
export type TotalDifference = Static<typeof TotalDifference>;

/** The result of comparing the blocks that were read with the running ledger. */
export const ComparedBlocks = Type.Object({
  /** Transfers that both have. */
  confirmed: Count,
  /** Transfers of the running ledger to or from addresses that were added since the backup. */
  ofNewAddresses: Count,
  differences: Type.Array(
    Type.Object({
      kind: Type.Enum(['not-on-chain', 'missing-in-ledger']),
      ...{ txId: Text, logIndex: Count, blockNumber: Count },
    }),
  ),
});
export type ComparedBlocks = Static<typeof ComparedBlocks>;

/** The result of reading the chain since a backup; `compared` is `null` if there is no running ledger to compare with. */
export const Rescanned = Type.Union([
  Type.Object({ kind: Type.Literal('not-read'), network: Text, reason: Text }),
  Type.Object({
    ...{ kind: Type.Literal('read'), network: Text, from: Count, to: Count },
    compared: nullable(ComparedBlocks),
  }),
]);
export type Rescanned = Static<typeof Rescanned>;

/** A file that is not examined further. `recipients`: the number of keys that it is encrypted to. */
export const RefusedBackupView = Type.Object({
  ...{ file: Text, good: Type.Literal(false), authenticity: Text, reason: Said, recipients: Count },
});
export type RefusedBackupView = Static<typeof RefusedBackupView>;

/**
 * `differences` are between the file's own sums and the restored rows; `auditHead`: where its audit log
 * ends; `auditProblem`: how that was changed, in the file or since in the running ledger. `paidSince` are invoices that the chain has paid since.
 */
export const VerifiedBackupView = Type.Object({
  ...{ file: Text, good: Flag, authenticity: Text, takenAt: Time, rowCounts: RowCounts },
  differences: Type.Array(TotalDifference),
  running: Type.Union([
    Type.Object({ compared: Type.Literal(true), losses: Type.Array(TotalDifference) }),
    Type.Object({ compared: Type.Literal(false), reason: Text }),
  ]),
  ...{ chain: nullable(Type.Array(Rescanned)), auditProblem: nullable(Text), paidSince: Count },
  auditHead: nullable(Text),
});
export type VerifiedBackupView = Static<typeof VerifiedBackupView>;

export const RestoredView = Type.Object({
  ...{ takenAt: Time, release: Text, final: Flag, authenticity: Text, rowCounts: RowCounts, applied: Texts },
  ...{ barredAddresses: Count, missingMasterKeyIds: Texts, auditHead: nullable(Text), auditProblem: nullable(Text) },
});
export type RestoredView = Static<typeof RestoredView>;

export const AcceptedRestoreView = Type.Object({ ledgerId: Text, retired: Flag, barredAddresses: Count });
export type AcceptedRestoreView = Static<typeof AcceptedRestoreView>;

export const BackupKeyView = Type.Object({ file: Text, recipient: Text });
export type BackupKeyView = Static<typeof BackupKeyView>;

export const SchemaView = Type.Object({ database: Type.Enum(['external', 'embedded']), applied: Texts });
export type SchemaView = Static<typeof SchemaView>;

const columns = {
  what: 'text',
  network: 'text',
  projectId: 'uuid',
  kind: 'text',
  count: 'int8',
  micro: 'numeric',
} as const;

/**
 * A sum over a ledger: the number of rows and their money (micro-USDT). `kind` is the status of invoices, the kind of transfers,
 * the type of events, the policy of addresses.
 */
export type LedgerTotal = Row<typeof columns>;

/** The totals of the whole ledger, in one order. Reads every invoice, transfer and event: seconds for a million. */
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

/** Up to which block a ledger has recorded each network. */
export const findCursors = rowsOf(
  'backup-cursors',
  cursor,
  'select network, solid_number as block, solid_time as time from chain_cursors order by network',
  () => [],
);

/** The ids of the master keys that opened what is sealed in the database. */
export const findEncryptionKeys = answerOf(
  'backup-master-keys',
  { id: 'text' },
  `select master_key_id as id from webhook_secrets union
   select master_key_id from receipt_keys where master_key_id is not null order by id`,
  () => [],
  (rows) => rows.map(({ id }) => id),
);

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

/** The end of a backup, and the digest that it was calculated from. */
export type BackupEnding = {
  /** SHA-256 of the file before the trailer. The MAC covers this digest. */
  digest: Buffer;
  /** `null`: the file has only digests, because there was no master key or a former release wrote it. */
  signed: { masterKeyId: string; mac: Buffer } | null;
};

/** `authentic`: made with the master key, and not changed since. `unknown-key`: made with one that is not here, or so it says. */
export type Authenticity =
  | { kind: 'authentic'; masterKeyId: string }
  | { kind: 'tampered'; masterKeyId: string }
  | { kind: 'unknown-key'; masterKeyId: string; hasKeys: boolean }
  | { kind: 'unsigned' };

/** HMAC-SHA-256 over the digest of all bytes before it, under a key only for backups of this ledger. */
export function macOf(key: MasterKey, ledgerId: string | null, digest: Buffer): Buffer {
  const macKey = deriveKey(key, { purpose: 'quittance backup mac 1', salt: ledgerId ?? '' });
  return createHmac('sha256', macKey).update(digest).digest();
}

/** Checks whether the MAC of a backup fits under the master key that the backup names. Any key of the ring will do. */
export function authenticate(
  keyRing: KeyRing | null,
  ledgerId: string | null,
  { digest, signed }: BackupEnding,
): Authenticity {
  if (signed === null) return { kind: 'unsigned' };
  const { masterKeyId, mac } = signed;
  const key = keyRing?.find(masterKeyId);
  if (key === undefined) return { kind: 'unknown-key', masterKeyId, hasKeys: keyRing !== null };
  return { kind: timingSafeEqual(macOf(key, ledgerId, digest), mac) ? 'authentic' : 'tampered', masterKeyId };
}

/** Admits an authentic backup, and with `takesUnauthenticated` one that no key vouches for; never one that is known to be changed. */
export function admitBackup(path: string, found: Authenticity, takesUnauthenticated: boolean): void {
  if (found.kind === 'authentic' || (found.kind !== 'tampered' && takesUnauthenticated)) return;
  if (found.kind === 'tampered') {
    throw new AppError(
      'BACKUP_TAMPERED',
      `${path} was changed after it was created: its checksum is correct, but its MAC with the master key ${found.masterKeyId} is not. Nothing was restored; use another copy, and find out who could change this one`,
    );
  }
  throw new AppError(
    'BACKUP_UNAUTHENTICATED',
    say`${path} is not authenticated: ${describeMac(found)}. Nothing was restored; if you are sure that no one could change the file, accept it with ${{ field: 'unauthenticated' }}`,
  );
}

/** Why nobody vouches for a backup, in words that follow a colon. */
export function describeMac(found: Exclude<Authenticity, { kind: 'authentic' | 'tampered' }>): string {
  if (found.kind === 'unsigned') {
    return 'it has no MAC. It was created without a master key or by an old release, or someone removed the MAC';
  }
  const { masterKeyId, hasKeys } = found;
  const made = `it names the master key ${masterKeyId}`;
  return hasKeys
    ? `${made}, which is not configured here: add that key after the current one. If you never had such a key, the file may be forged`
    : `${made}, but no master key is configured: set QUITTANCE_MASTER_KEY, or put the file master-key into the data directory`;
}

/** Where the audit log of a ledger ends that was just loaded. It must hold together, and end where its backup says: else there is a problem. */
export async function checkAudit(
  deps: { db: Sql; sealer: Sealer | null },
  { auditHead }: BackupHeader,
): Promise<{ head: AuditHead | null; problem: string | null }> {
  const { head, problem } = await verifyLog({ ...deps, kept: auditHead ?? null });
  if (problem !== null) return { head, problem: problem.message };
  const [end, said] = [head?.seq ?? 0, auditHead?.seq ?? 0];
  if (auditHead === undefined || end === said) return { head, problem: null };
  return { head, problem: `the log ends at entry ${end}, but according to the backup it ended at ${said}` };
}
