import { type Static, Type } from '../../runtime/type.ts';
import { nullable, Said, Time } from '../view.ts';

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
