import type { Cluster } from '../../deploy/ha/cluster.ts';
import { queryOn } from './world.ts';

/** The tables with everything that was promised, which must not differ between servers. */
const TABLES = ['invoices', 'transfers', 'events', 'deliveries', 'chain_cursors', 'event_streams', 'webhook_endpoints'];

const DIGESTS = TABLES.map(
  (
    table,
  ) => `select '${table}' as name, count(*)::text || ' ' || coalesce(md5(string_agg(t::text, '' order by t::text)), '') as digest
   from ${table} t`,
).join(' union all ');

/** Returns the number of rows and a digest of each table on each server, read at the same log position. */
export async function digestsOf(cluster: Cluster): Promise<Record<string, string>[]> {
  return Promise.all(
    cluster.members.map(async (member) => {
      const rows = await queryOn(cluster.connectionOf(member), DIGESTS);
      return Object.fromEntries(rows.map(({ name, digest }) => [name, digest]));
    }),
  );
}

/** States that must never occur, each with its count. */
export const VIOLATIONS = `
  select 'a payable amount reserved twice' as what, count(*) from (
    select from invoices group by address_id, payable_micro having count(*) > 1) x
  union all select 'an external id twice', count(*) from (select from invoices group by external_id having count(*) > 1) x
  union all select 'PAID without its transfer', count(*) from invoices i where status = 'PAID' and not exists (
    select from transfers t where t.id = i.paid_transfer_id and t.kind = 'matched' and t.amount_micro = i.payable_micro
      and t.address_id = i.address_id)
  union all select 'a transfer that pays nothing', count(*) from transfers where kind <> 'matched'
  union all select 'a gap in the events of an invoice', count(*) from (
    select from events group by invoice_id having max(sequence) <> count(*) or min(sequence) <> 1) x
  union all select 'an invoice whose events are not counted', count(*) from invoices i
    where event_count <> (select count(*) from events e where e.project_id = i.project_id and e.invoice_id = i.id)
  union all select 'a gap in the feed', count(*) from event_streams s
    where last_position <> (select count(*) from events e where e.project_id = s.project_id)
      or last_position <> (select max(position) from events e where e.project_id = s.project_id)
  union all select 'an event without its delivery', count(*) from events e where not exists (
    select from deliveries d where d.event_id = e.id)
  union all select 'a dead delivery', count(*) from deliveries where status = 'dead'`;
