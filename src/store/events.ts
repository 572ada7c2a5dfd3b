import type { EventType } from '../domain/event.ts';
import type { Network } from '../domain/network.ts';
import type { UnixMs } from '../domain/time.ts';
import type { Sql } from './database.ts';
import { statement } from './statement.ts';

/** The dispatcher listens here; a notification says only "look", so a lost one costs at most one poll. */
export const DELIVERIES_CHANNEL = 'quittance_deliveries';

export type NewEvent = {
  id: string;
  projectId: string;
  type: EventType;
  invoiceId: string | null;
  transferId: string | null;
  sequence: number;
  body: string;
};

const insert = statement(
  'event-insert',
  {},
  `insert into events (id, project_id, network, type, invoice_id, transfer_id, sequence, body, created_at)
   select (e->>'id')::uuid, (e->>'projectId')::uuid, $1, e->>'type', (e->>'invoiceId')::uuid, (e->>'transferId')::uuid,
     (e->>'sequence')::int4, e->>'body', $3
   from jsonb_array_elements($2::text::jsonb) e`,
);

const insertDeliveries = statement(
  'delivery-insert',
  { notified: 'text?' },
  `with planned as (
     insert into deliveries (event_id, endpoint_id, project_id, invoice_id, sequence, next_attempt_at, created_at)
     select e.id, w.id, e.project_id, e.invoice_id, e.sequence, $2, $2
     from events e join webhook_endpoints w on w.project_id = e.project_id and w.disabled_at is null
     where e.id = any($1::uuid[])
     returning 1)
   select pg_notify('${DELIVERIES_CHANNEL}', '')::text as notified from (select from planned limit 1) planned`,
);

/** Records events and plans one delivery to each active endpoint of their projects, in the caller's transaction. */
export async function insertEvents(tx: Sql, network: Network, events: NewEvent[], now: UnixMs): Promise<void> {
  if (events.length === 0) return;
  await tx.run(insert, [network, JSON.stringify(events), new Date(now)]);
  await tx.run(insertDeliveries, [events.map(({ id }) => id), new Date(now)]);
}
