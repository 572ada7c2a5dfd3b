import type { InvoiceStatus } from '../../domain/invoice.ts';
import type { MicroUsdt } from '../../domain/money.ts';
import type { Network } from '../../domain/network.ts';
import type { Policy } from '../../domain/policy.ts';
import { addressColumn } from '../../store/db/address-column.ts';
import { rowOf, rowsOf } from '../../store/db/rows-of.ts';
import { maybe, micro, type Row, text } from '../../store/db/statement.ts';
import { payableAfter } from '../../store/ledger/standing.ts';
import type { Actor } from '../actor.ts';

const located = { id: 'uuid', projectId: 'uuid', projectName: 'text', network: text<Network>() } as const;
/** An invoice and its project. Ids are UUIDs. */
export type LocatedInvoice = Row<typeof located>;

// Invoices are indexed within their project, so each project is asked.
const locateText = (isNamed: string) => `select i.id, p.id as project_id, p.name as project_name, p.network
   from projects p
   cross join lateral (select id from invoices where project_id = p.id and ${isNamed} limit 1) i
   where $2::uuid[] is null or p.id = any($2) order by p.created_at, p.id limit 100`;

/** The invoice with this UUID, of these projects or of all. */
export const locateInvoice = rowsOf(
  'explain-invoice-by-id',
  located,
  locateText('id = $1'),
  (id: string, projects: Actor['projects']) => [id, projects],
);

/** The invoices with this external id: one a project at most, of the oldest 100 projects that have it. */
export const locateExternalId = rowsOf(
  'explain-invoice-by-external-id',
  located,
  locateText('external_id = $1'),
  (externalId: string, projects: Actor['projects']) => [externalId, projects],
);

/** The invoice that a payer pays by this link, of these projects or of all. */
export const locateCheckout = rowsOf(
  'explain-invoice-by-checkout',
  located,
  `select i.id, p.id as project_id, p.name as project_name, p.network
   from invoices i join projects p on p.id = i.project_id
   where i.checkout_token = $1 and ($2::uuid[] is null or p.id = any($2))`,
  (token: string, projects: Actor['projects']) => [token, projects],
);

/** The invoice that an event is about; of one about a transfer, its transaction. */
export const locateEvent = rowsOf(
  'explain-event-by-id',
  { invoice: maybe(located), txId: 'text?' },
  `select i.id as invoice_id, p.id as invoice_project_id, p.name as invoice_project_name, p.network as invoice_network,
     encode(t.tx_id, 'hex') as tx_id
   from events e join projects p on p.id = e.project_id
   left join invoices i on i.project_id = e.project_id and i.id = e.invoice_id
   left join transfers t on t.id = e.transfer_id
   where e.id = $1 and ($2::uuid[] is null or e.project_id = any($2))`,
  (id: string, projects: Actor['projects']) => [id, projects],
);

const selectShape = {
  ...located,
  externalId: 'text',
  idempotencyKey: 'text',
  /** `null` for an invoice of before keys were noted. */
  apiKey: maybe({ id: 'uuid', name: 'text?' }),
  requestedMicro: micro<MicroUsdt>('int8'),
  payableMicro: micro<MicroUsdt>('int8'),
  status: text<InvoiceStatus>(),
  createdAt: 'timestamptz',
  payableAfter: 'timestamptz',
  expiresAt: 'timestamptz',
  withdrawnAt: 'timestamptz?',
  options: 'text?',
  eventCount: 'int4',
  paidTransferId: 'uuid?',
  addressId: 'uuid',
  address: 'address',
  policy: text<Policy>(),
  /** When the address was retired. */
  retiredAt: 'timestamptz?',
} as const;
/** All that an invoice row and what it points to say. */
export type ExplainedInvoice = Row<typeof selectShape>;

/** Finds an invoice by its primary key, or `null`. */
export const findExplainedInvoice = rowOf(
  'explain-invoice-select',
  selectShape,
  `select i.id, i.project_id, p.name as project_name, i.network, i.external_id, i.idempotency_key, i.api_key_id,
     k.name as api_key_name, i.requested_micro, i.payable_micro, i.status, i.created_at, ${payableAfter('i.')} as payable_after, i.expires_at, i.withdrawn_at, i.options, i.event_count,
     i.paid_transfer_id, i.address_id, ${addressColumn('a')} as address, a.policy, a.retired_at
   from invoices i
   join projects p on p.id = i.project_id
   join addresses a on a.id = i.address_id
   left join api_keys k on k.id = i.api_key_id
   where i.project_id = $1 and i.id = $2`,
  (projectId: string, id: string) => [projectId, id],
);
