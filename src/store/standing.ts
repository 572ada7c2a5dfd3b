import type { UnixMs } from '../domain/time.ts';
import type { Row } from './statement.ts';

/** Why a recorded transfer counts no more. `deniedBy` is the id of the block that the chain has at its height, 64 hex characters. */
export type Annulment = { deniedBy: string; at: UnixMs; by: string; reason: string };

/** What is selected of `n`. All are null where the transfer stands. */
export const annulmentColumns = {
  denied_by: 'text?',
  annulled_at: 'timestamptz?',
  annulled_by: 'text?',
  annulled_reason: 'text?',
} as const;

/** The columns of `n`, in the order of `annulmentColumns`. */
export const ANNULMENT_COLUMNS = `encode(n.denied_by, 'hex') as denied_by, n.annulled_at, n.annulled_by,
     n.reason as annulled_reason`;

export function toAnnulment(row: Row<typeof annulmentColumns>): Annulment | null {
  const { denied_by: deniedBy, annulled_at: at, annulled_by: by, annulled_reason: reason } = row;
  return deniedBy === null || at === null || by === null || reason === null ? null : { deniedBy, at, by, reason };
}

/** True of a row of `transfers` that was not taken back. `alias` is what the statement calls it. */
export function stands(alias: string): string {
  return `not exists (select from transfer_annulments n where n.transfer_id = ${alias}.id)`;
}

/** What joins `outgoing_annulments n` to a row of `outgoing_transfers`. */
export function outgoingAnnulment(alias: string): string {
  return `n.network = ${alias}.network and n.tx_id = ${alias}.tx_id and n.log_index = ${alias}.log_index
     and n.correction = ${alias}.correction`;
}

/** True of a row of `outgoing_transfers` that was not taken back. */
export function outgoingStands(alias: string): string {
  return `not exists (select from outgoing_annulments n where ${outgoingAnnulment(alias)})`;
}
