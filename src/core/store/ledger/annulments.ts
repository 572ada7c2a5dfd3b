import { FORMER_RESOLUTIONS } from '../../domain/resolution.ts';
import { maybe, type Row } from '../db/statement.ts';

/** The columns of `n` that explain an annulment. All of them are null if the transfer wasn't annulled. */
export const annulmentShape = {
  annulment: maybe({
    /** The id of the chain's block at that height (64 hex characters). */
    deniedBy: 'text',
    at: 'timestamptz',
    by: 'text',
    reason: 'text',
  }),
} as const;
export type Annulment = NonNullable<Row<typeof annulmentShape>['annulment']>;

/** The `annulmentShape` columns for `listColumns`, from a joined annulment `n`. */
export const ANNULMENT_COLUMNS = {
  annulment: { deniedBy: "encode(n.denied_by, 'hex')", at: 'n.annulled_at', by: 'n.annulled_by', reason: 'n.reason' },
} as const;

/** The SQL that says whether a `transfers` row wasn't annulled. `alias` is the table's alias. */
export function notAnnulled(alias: string): string {
  return `not exists (select from transfer_annulments n where n.transfer_id = ${alias}.id)`;
}

/** The SQL for the time after which an invoice's payment must be made, as in `may_pay`. `row` is a prefix. */
export function payableAfter(row: string): string {
  return `coalesce(${row}payable_after, ${row}created_at - interval '10 minutes')`;
}

/** Joins `outgoing_annulments n` to an `outgoing_transfers` row. */
export function outgoingAnnulment(alias: string): string {
  return `n.network = ${alias}.network and n.tx_id = ${alias}.tx_id and n.log_index = ${alias}.log_index
     and n.correction = ${alias}.correction`;
}

/** The SQL that says whether an `outgoing_transfers` row wasn't annulled. */
export function outgoingNotAnnulled(alias: string): string {
  return `not exists (select from outgoing_annulments n where ${outgoingAnnulment(alias)})`;
}

const CASES = Object.entries(FORMER_RESOLUTIONS).map(([former, kind]) => `when '${former}' then '${kind}'`);

/**
 * The SQL for the current name of the resolution in a `transfer_resolutions` row (`r.`). The row itself keeps the name that it was sealed
 * with.
 */
export const resolutionColumn = (row: string): string =>
  `case ${row}resolution ${CASES.join(' ')} else ${row}resolution end`;
