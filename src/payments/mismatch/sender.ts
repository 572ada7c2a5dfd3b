import type { UnixMs } from '../../domain/time.ts';
import { addressColumn } from '../../store/db/address-column.ts';
import { rowsOf } from '../../store/db/rows-of.ts';
import { outgoingStands, stands } from '../../store/ledger/standing.ts';

/** A transfer whose sender is looked up, with its project and time. At most 500 at once. */
type SenderQuestion = { id: string; projectId: string; from: string; at: UnixMs };

function parametersOf(questions: readonly SenderQuestion[]): string[][] {
  return [
    questions.map(({ id }) => id),
    questions.map(({ projectId }) => projectId),
    questions.map(({ from }) => from),
    questions.map(({ at }) => new Date(at).toISOString()),
  ];
}

/** How many transfers of one sender are read: a wallet of an exchange sends thousands. */
const SIBLINGS_READ = 500;
const SIBLINGS_KEPT = 20;

/** Other transfers of the same sender to the same project that paid nothing; the newest up to a day after, at most 20 each. */
export const findSiblings = rowsOf(
  'mismatch-siblings',
  { transferId: 'uuid', amountMicro: 'numeric', at: 'timestamptz', isUnmatched: 'bool', resolution: 'text?' },
  // The limits stand inside, and what was taken back is left out outside them: so PostgreSQL walks an index up to the limit whatever its
  // statistics say, and a sender of many transfers costs no more than one of few.
  `select q.id as transfer_id, s.amount_micro, s.block_time as at, s.kind = 'unmatched' as is_unmatched,
     (select r.resolution from transfer_resolutions r where r.transfer_id = s.id order by r.id desc limit 1) as resolution
   from unnest($1::uuid[], $2::uuid[], $3::text[], $4::timestamptz[]) as q (id, project_id, sender, at)
   cross join lateral (
     select id, amount_micro, block_time, kind from (
       select id, amount_micro, block_time, kind, from_address from transfers
       where project_id = q.project_id and left(from_address, 4) = left(q.sender, 4)
         and right(from_address, 4) = right(q.sender, 4) and block_time < q.at + interval '1 day'
       order by block_time desc limit ${SIBLINGS_READ}) newest
     where from_address = q.sender and kind <> 'matched' and id <> q.id and ${stands('newest')}
     limit ${SIBLINGS_KEPT}) s`,
  parametersOf,
);

/** 1 USDT. An address that sent less is not imitated: it is an imitation itself. */
const IMITATED_FROM_MICRO = 1_000_000n;

/**
 * By transfer: an address that its sender resembles by the first 4 and last 4 characters but is not: `own` of the project, else
 * `strange`, which money went to or came from before.
 */
export const findResembled = rowsOf(
  'mismatch-resembled',
  { transferId: 'uuid', own: 'address?', strange: 'text?' },
  `select q.id as transfer_id, o.address as own, case when o.address is null then coalesce(
     (select to_address from (
        select to_address, amount_micro, network, tx_id, log_index, correction from outgoing_transfers
        where project_id = q.project_id and left(to_address, 4) = left(q.sender, 4)
          and right(to_address, 4) = right(q.sender, 4) and block_time < q.at
        order by block_time desc limit ${SIBLINGS_READ}) newest
      where to_address <> q.sender and amount_micro >= $5 and ${outgoingStands('newest')} limit 1),
     (select from_address from (
        select id, from_address, amount_micro from transfers
        where project_id = q.project_id and left(from_address, 4) = left(q.sender, 4)
          and right(from_address, 4) = right(q.sender, 4) and block_time < q.at
        order by block_time desc limit ${SIBLINGS_READ}) newest
      where from_address <> q.sender and amount_micro >= $5 and ${stands('newest')} limit 1)) end as strange
   from unnest($1::uuid[], $2::uuid[], $3::text[], $4::timestamptz[]) as q (id, project_id, sender, at)
   left join lateral (
     select ${addressColumn('a')} as address from addresses a
     where a.project_id = q.project_id and left(a.address, 4) = left(q.sender, 4)
       and right(a.address, 4) = right(q.sender, 4) and a.address <> q.sender limit 1) o on true`,
  (questions: readonly SenderQuestion[]) => [...parametersOf(questions), IMITATED_FROM_MICRO],
);
