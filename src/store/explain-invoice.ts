import type { InvoiceStatus } from '../domain/invoice.ts';
import { type MicroUsdt, microUsdt } from '../domain/money.ts';
import type { Network } from '../domain/network.ts';
import type { Policy } from '../domain/policy.ts';
import type { UnixMs } from '../domain/time.ts';
import type { TronAddress } from '../tron/address.ts';
import { addressColumn } from './address-column.ts';
import type { Sql } from './database.ts';
import { statement } from './statement.ts';

/** Which invoice, and whose. UUIDs. */
export type LocatedInvoice = { id: string; projectId: string; projectName: string; network: Network };

const columns = { id: 'uuid', project_id: 'uuid', project_name: 'text', network: 'text' } as const;

// The ids of invoices are indexed within their project, so each project is asked.
const selectById = statement(
  'explain-invoice-by-id',
  columns,
  `select i.id, p.id as project_id, p.name as project_name, p.network
   from projects p
   cross join lateral (select id from invoices where project_id = p.id and id = $1 limit 1) i
   where $2::uuid is null or p.id = $2 order by p.created_at, p.id limit 100`,
);

/** The invoice with this UUID, of one project or of all. */
export async function locateInvoice(db: Sql, id: string, projectId: string | null): Promise<LocatedInvoice[]> {
  return (await db.run(selectById, [id, projectId])).map(toLocated);
}

const selectByExternalId = statement(
  'explain-invoice-by-external-id',
  columns,
  `select i.id, p.id as project_id, p.name as project_name, p.network
   from projects p
   cross join lateral (select id from invoices where project_id = p.id and external_id = $1 limit 1) i
   where $2::uuid is null or p.id = $2 order by p.created_at, p.id limit 100`,
);

/** The invoices with this external id: one a project at most, of the oldest 100 projects that have it. */
export async function locateExternalId(
  db: Sql,
  externalId: string,
  projectId: string | null,
): Promise<LocatedInvoice[]> {
  return (await db.run(selectByExternalId, [externalId, projectId])).map(toLocated);
}

function toLocated(row: { id: string; project_id: string; project_name: string; network: string }): LocatedInvoice {
  return { id: row.id, projectId: row.project_id, projectName: row.project_name, network: row.network as Network };
}

/** All that an invoice row and what it points to say. */
export type ExplainedInvoice = {
  id: string;
  projectId: string;
  projectName: string;
  network: Network;
  externalId: string;
  idempotencyKey: string;
  /** `null` for an invoice of before keys were noted. */
  apiKey: { id: string; name: string | null } | null;
  requestedMicro: MicroUsdt;
  payableMicro: MicroUsdt;
  status: InvoiceStatus;
  createdAt: UnixMs;
  expiresAt: UnixMs;
  eventCount: number;
  paidTransferId: string | null;
  address: { id: string; address: TronAddress; policy: Policy; retiredAt: UnixMs | null };
};

const select = statement(
  'explain-invoice-select',
  {
    id: 'uuid',
    project_id: 'uuid',
    project_name: 'text',
    network: 'text',
    external_id: 'text',
    idempotency_key: 'text',
    api_key_id: 'uuid?',
    api_key_name: 'text?',
    requested_micro: 'int8',
    payable_micro: 'int8',
    status: 'text',
    created_at: 'timestamptz',
    expires_at: 'timestamptz',
    event_count: 'int4',
    paid_transfer_id: 'uuid?',
    address_id: 'uuid',
    address: 'address',
    policy: 'text',
    retired_at: 'timestamptz?',
  },
  `select i.id, i.project_id, p.name as project_name, i.network, i.external_id, i.idempotency_key, i.api_key_id,
     k.name as api_key_name, i.requested_micro, i.payable_micro, i.status, i.created_at, i.expires_at, i.event_count,
     i.paid_transfer_id, i.address_id, ${addressColumn('a')} as address, a.policy, a.retired_at
   from invoices i
   join projects p on p.id = i.project_id
   join addresses a on a.id = i.address_id
   left join api_keys k on k.id = i.api_key_id
   where i.project_id = $1 and i.id = $2`,
);

/** One invoice by its primary key, or `null`. */
export async function findExplainedInvoice(db: Sql, projectId: string, id: string): Promise<ExplainedInvoice | null> {
  const [row] = await db.run(select, [projectId, id]);
  if (row === undefined) return null;
  return {
    id: row.id,
    projectId: row.project_id,
    projectName: row.project_name,
    network: row.network as Network,
    externalId: row.external_id,
    idempotencyKey: row.idempotency_key,
    apiKey: row.api_key_id === null ? null : { id: row.api_key_id, name: row.api_key_name },
    requestedMicro: microUsdt(row.requested_micro),
    payableMicro: microUsdt(row.payable_micro),
    status: row.status as InvoiceStatus,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    eventCount: row.event_count,
    paidTransferId: row.paid_transfer_id,
    address: {
      id: row.address_id,
      address: row.address,
      policy: row.policy as Policy,
      retiredAt: row.retired_at,
    },
  };
}
