import type { ProjectedInvoice } from '../../domain/event.ts';
import type { InvoiceStatus } from '../../domain/invoice.ts';
import type { UnixMs } from '../../domain/time.ts';
import { answerOf } from '../db/rows-of.ts';
import { count, listColumns } from '../db/statement.ts';
import { maybeProjected } from './invoices.ts';

/** `after` is a UUID; the page contains the ids after it, in creation order. `window` is the maximum number of invoices to scan. */
export type InvoicePageQuestion = {
  keyId: string;
  after: string;
  status: InvoiceStatus | null;
  limit: number;
  window: number;
};

/** `looked` is the number of invoices scanned, and `last` is the id of the last one, or `null` if there were none. */
export type InvoicePage = { invoices: ProjectedInvoice[]; looked: number; last: string | null };

// No index covers the status, because it would slow down every creation. Instead, the next invoices are scanned, up to a limit.
/** Returns invoices of the key's project, oldest first, or `null` if the key is invalid. */
export const findInvoicePage = answerOf(
  'invoice-page',
  { looked: count, last: 'uuid?', ...maybeProjected },
  `with valid as (
     select project_id from api_keys where id = $1 and revoked_at is null and (expires_at is null or expires_at > $6)),
   seen as materialized (
     select i.id, i.status from valid cross join lateral (
       select id, status from invoices where project_id = valid.project_id and id > $2 order by id limit $5) i),
   chosen as (select id from seen where $3::text is null or status = $3 order by id limit $4)
   select (select count(*) from seen) as looked, (select id from seen order by id desc limit 1) as last,
     ${listColumns(maybeProjected, 'i.')}
   from valid left join chosen on true left join invoices i on i.id = chosen.id
   order by i.id`,
  ({ keyId, after, status, limit, window }: InvoicePageQuestion, now: UnixMs) => [
    ...[keyId, after, status, limit, window],
    new Date(now),
  ],
  (rows): InvoicePage | null => {
    const [first] = rows;
    if (first === undefined) return null;
    const { looked, last } = first;
    return { invoices: rows.flatMap(({ invoice }) => invoice ?? []), looked, last };
  },
);
