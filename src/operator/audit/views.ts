import { type Static, Type } from '../../runtime/type.ts';
import { nullable, Time } from '../view.ts';

/** `sound`: whether it is as it was sealed, where `QUITTANCE_ROW_MACS` requires that. */
export const AuditEntryView = Type.Object({
  seq: Type.Integer(),
  at: Time,
  actor: Type.Object({ kind: Type.String(), id: nullable(Type.String()), name: Type.String() }),
  origin: nullable(Type.String()),
  requestId: nullable(Type.String()),
  action: Type.String(),
  subject: Type.String(),
  projectId: nullable(Type.String()),
  detail: Type.Unknown(),
  hash: Type.String(),
  sound: Type.Boolean(),
});
export type AuditEntryView = Static<typeof AuditEntryView>;

/** The newest first. `next`: the number below which the next page begins, `null` on the last one. */
export const AuditListView = Type.Object({ data: Type.Array(AuditEntryView), next: nullable(Type.Integer()) });
export type AuditListView = Static<typeof AuditListView>;

const Problem = Type.Object({ seq: Type.Integer(), message: Type.String() });

/**
 * `problem`: where the log was first found to be changed; `accepted`: where it was, and somebody has acknowledged that. `unsealed`: how many
 * entries at its beginning are older than the seals. `head`: the newest entry, to be kept elsewhere.
 */
export const VerifiedAuditView = Type.Object({
  good: Type.Boolean(),
  entries: Type.Integer(),
  head: nullable(Type.Object({ seq: Type.Integer(), hash: Type.String() })),
  problem: nullable(Problem),
  accepted: Type.Array(Problem),
  unsealed: Type.Integer(),
});
export type VerifiedAuditView = Static<typeof VerifiedAuditView>;
