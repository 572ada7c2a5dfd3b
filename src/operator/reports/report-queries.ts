import { firstIdOf } from '../../domain/ids.ts';
import { type UnixMs, unixMs } from '../../domain/time.ts';
import { answerOf, rowsOf } from '../../store/db/rows-of.ts';
import { count, micro, type Row, text } from '../../store/db/statement.ts';
import { outgoingStands, stands } from '../../store/ledger/standing.ts';
import type { TransferKind } from '../transfers/transfer-desk.ts';

/** When rows were recorded, by the times of their ids: at or after `from`, before `until`. */
export type Recorded = { from: number; until: number };
/** The highest time of an id. */
export const FOREVER = 2 ** 48 - 1;
/** Of blocks. */
export const ALL_TIME = { from: unixMs(0), until: unixMs(Date.UTC(3000, 0)) };

/** Transfers of a day (UTC). `aboveMicro`: those in blocks above the opening of their address, which holds what came before. */
const moved = { day: 'text', count, amountMicro: micro(), aboveMicro: micro() } as const;
export type MovedDay = Row<typeof moved>;

const SUMS = `count(*) as count, sum(amount_micro) as amount_micro,
     coalesce(sum(amount_micro) filter (where is_above), 0) as above_micro`;
const MOVED = `(t.block_time at time zone 'UTC')::date as day, t.amount_micro, t.block_number > coalesce(b.opening_block, -1) as is_above`;

const incoming = { ...moved, kind: text<TransferKind>() } as const;
export type IncomingDay = Row<typeof incoming>;

/** What came to the addresses of a project, by day and kind, of what was recorded in a time. */
export const sumIncoming = rowsOf(
  'report-incoming',
  incoming,
  `select day::text, ${SUMS}, kind
   from (select ${MOVED}, t.kind from transfers t left join balance_checks b on b.address_id = t.address_id
     where t.project_id = $1 and t.id >= $2 and t.id < $3 and ${stands('t')}) came
   group by day, kind`,
  (projectId: string, recorded: Recorded) => [projectId, ...idsOf(recorded)],
);

/** What left the addresses of a project, by day. */
export const sumOutgoing = rowsOf(
  'report-outgoing',
  moved,
  `select day::text, ${SUMS}
   from (select ${MOVED} from outgoing_transfers t left join balance_checks b on b.address_id = t.address_id
     where t.project_id = $1 and ${outgoingStands('t')}) gone
   group by day`,
  (projectId: string) => [projectId],
);

const paid = { day: 'text', requestedMicro: micro(), lateCount: count, lateMicro: micro() } as const;
export type PaidDay = Row<typeof paid>;

/** What the invoices asked for that were paid in blocks of a period, and what came late, by day; of what was recorded in a time. */
export const sumPaid = rowsOf(
  'report-paid',
  paid,
  `select day::text, sum(requested_micro) as requested_micro, count(*) filter (where is_late) as late_count,
     coalesce(sum(amount_micro) filter (where is_late), 0) as late_micro
   from (select (t.block_time at time zone 'UTC')::date as day, i.requested_micro, t.amount_micro, t.block_time > i.expires_at as is_late
     from transfers t join invoices i on i.project_id = t.project_id and i.id = t.invoice_id
     where t.project_id = $1 and t.id >= $2 and t.id < $3 and t.kind = 'matched' and t.block_time >= $4 and t.block_time < $5
       and ${stands('t')}) paid
   group by day`,
  (projectId: string, recorded: Recorded, period: { from: UnixMs; until: UnixMs }) => [
    projectId,
    ...idsOf(recorded),
    new Date(period.from),
    new Date(period.until),
  ],
);

const idsOf = ({ from, until }: Recorded) => [firstIdOf(from), firstIdOf(until)];

const openings = { openingMicro: micro(), compared: count, uncompared: count, annulled: count } as const;
export type Openings = Row<typeof openings>;

/** What the addresses of a project held when they were first compared with the chain, and by what sums of before have to be made anew. */
export const findOpenings = answerOf(
  'report-openings',
  openings,
  `select coalesce(sum(b.opening_micro), 0) as opening_micro, count(b.address_id) as compared, count(*) - count(b.address_id) as uncompared,
     (select count(*) from transfer_annulments n where n.project_id = $1) as annulled
   from addresses a left join balance_checks b on b.address_id = a.id where a.project_id = $1`,
  (projectId: string) => [projectId],
  ([row]) => row ?? { openingMicro: 0n, compared: 0, uncompared: 0, annulled: 0 },
);
