import { timeOfId } from '../../domain/ids.ts';
import { secondOf, slotOf, UNPACKED } from '../../store/access/requests.ts';
import { answerOf, rowOf } from '../../store/db/rows-of.ts';
import { count, listColumns, maybe, type Row } from '../../store/db/statement.ts';

const listed = {
  id: 'text',
  projectId: 'uuid',
  key: maybe({ id: 'uuid', name: 'text' }),
  method: 'text',
  route: 'text?',
  status: 'int4',
  code: 'text?',
  externalId: 'text?',
  tookMs: 'int4',
} as const;
/** A request as it is kept. `projectId` is the nil UUID where nobody's key came with it. */
export type DeskRequest = Row<typeof listed>;

/** A request by its id, `req_…`, which says in which second it came. */
export const findDeskRequest = rowOf(
  'request-desk-select',
  listed,
  `select ${listColumns(listed, 'r.', { projectId: 'b.project_id', key: 'k.' })}
   from requests b cross join lateral ${UNPACKED} left join api_keys k on k.id = b.key_id
   where b.slot = $1::int4 and b.at = $2 and b.first_id <= $3 and b.last_id >= $3 and r.id = $3`,
  (id: string) => {
    const time = timeOfId(id);
    return [slotOf(time), new Date(secondOf(time)), id];
  },
);

/** `projectId`: the nil UUID for those of nobody. `notBefore` and `before`: ids, which are in the order of their times. */
export type RequestFilter = {
  projectId: string;
  notBefore: string;
  before: string;
  /** The hundreds of the status. */
  statusClass: number | null;
  keyId: string | null;
  externalId: string | null;
};

/** `looked` requests were looked through, down to the second `searchedTo` if there are older ones. */
type Found = { requests: DeskRequest[]; looked: number; searchedTo: number | null };

// Batches are taken second by second, for those of one second may overlap: below a whole second there is nothing that was passed over.
/** The newest requests that fit, of the next `window` or so. */
export const findDeskRequests = answerOf(
  'request-desk-list',
  { looked: count, searchedTo: 'timestamptz?', request: maybe(listed) },
  `with newest as materialized (
     select b.project_id, b.key_id, b.at, b.count, b.requests from requests b
     where b.project_id = $1 and b.at >= $2 and b.at <= $3 and b.first_id < $5
     order by b.at desc fetch first ($6::int8) rows with ties),
   seen as materialized (
     select n.* from (
       select *, sum(count) over (order by at desc) - sum(count) over (partition by at) as newer from newest) n
     where n.newer < $6::int8),
   unpacked as materialized (
     select r.*, b.project_id, b.key_id from seen b cross join lateral ${UNPACKED} where r.id >= $4 and r.id < $5),
   reached as (
     select min(s.at) as at from seen s)
   select (select count(*) from unpacked) as looked,
     (select e.at from reached e where exists (
        select from requests o where o.project_id = $1 and o.at >= $2 and o.at < e.at)) as searched_to,
     ${listColumns({ request: maybe(listed) }, 'f.', { request: { key: 'f.key_' } })}
   from (select) as one
   left join lateral (
     select ${listColumns(listed, 'r.', { key: 'k.' })} from unpacked r left join api_keys k on k.id = r.key_id
     where ($7::int4 is null or r.status / 100 = $7) and ($8::uuid is null or r.key_id = $8) and ($9::text is null or r.external_id = $9)
     order by r.id desc limit $10::int8) f on true
   order by f.id desc`,
  ({ projectId, notBefore, before, ...fits }: RequestFilter, page: { limit: number; window: number }) => [
    ...[projectId, new Date(secondOf(timeOfId(notBefore))), new Date(secondOf(timeOfId(before))), notBefore, before],
    ...[page.window, fits.statusClass, fits.keyId, fits.externalId, page.limit],
  ],
  (rows): Found => ({
    requests: rows.flatMap(({ request }) => request ?? []),
    looked: rows[0]?.looked ?? 0,
    searchedTo: rows[0]?.searchedTo ?? null,
  }),
);
