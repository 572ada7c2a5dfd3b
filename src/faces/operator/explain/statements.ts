import type { EventType } from '../../../core/domain/event.ts';
import type { InvoiceStatus } from '../../../core/domain/invoice.ts';
import type { MicroUsdt } from '../../../core/domain/money.ts';
import type { Network } from '../../../core/domain/network.ts';
import type { Policy } from '../../../core/domain/policy.ts';
import { addressColumn } from '../../../core/store/db/address-column.ts';
import { ANY_NETWORK } from '../../../core/store/db/any-network.ts';
import { rowOf, rowsOf } from '../../../core/store/db/rows-of.ts';
import { sealColumn } from '../../../core/store/db/seal.ts';
import { SEALED_SET_ASIDE } from '../../../core/store/db/sealed-tables.ts';
import {
  count,
  hex,
  isAsSealed,
  listColumns,
  maybe,
  maybeHex,
  micro,
  type Row,
  text,
} from '../../../core/store/db/statement.ts';
import {
  ANNULMENT_COLUMNS,
  annulmentShape,
  outgoingAnnulment,
  payableAfter,
} from '../../../core/store/ledger/annulments.ts';
import { joinRefundOf, refundOfShape } from '../../../core/store/ledger/transfer-refunds.ts';
import type { Actor } from '../actor.ts';

const located = { id: 'uuid', projectId: 'uuid', projectName: 'text', network: text<Network>() } as const;
/** An invoice and its project. Ids are UUIDs. */
export type LocatedInvoice = Row<typeof located>;

const OF_PROJECT = { projectId: 'p.id', projectName: 'p.name', network: 'p.network' };

/**
 * Invoices are indexed by project, so each project is queried. Considers the 100 oldest projects that have a match, and at most one invoice
 * in each of them.
 */
const locateBy = (name: string, isNamed: string) =>
  rowsOf(
    name,
    located,
    `select ${listColumns(located, 'i.', OF_PROJECT)} from projects p
     cross join lateral (select id from invoices where project_id = p.id and ${isNamed} limit 1) i
     where $2::uuid[] is null or p.id = any($2) order by p.created_at, p.id limit 100`,
    (named: string, projects: Actor['projects']) => [named, projects],
  );
export const locateInvoice = locateBy('explain-invoice-by-id', 'id = $1');
export const locateExternalId = locateBy('explain-invoice-by-external-id', 'external_id = $1');
/** Finds an invoice by the token of its checkout link. */
export const locateCheckout = locateBy('explain-invoice-by-checkout', 'checkout_token = $1');

const eventSubject = { invoice: maybe(located), txId: maybeHex } as const;

/** Finds an event's invoice, or the transaction if the event is about a transfer. */
export const locateEvent = rowsOf(
  'explain-event-by-id',
  eventSubject,
  `select ${listColumns(eventSubject, 't.', { invoice: { ...OF_PROJECT, id: 'i.id' } })}
   from events e join projects p on p.id = e.project_id
   left join invoices i on i.project_id = e.project_id and i.id = e.invoice_id
   left join transfers t on t.id = e.transfer_id
   where e.id = $1 and ($2::uuid[] is null or e.project_id = any($2))`,
  (id: string, projects: Actor['projects']) => [id, projects],
);

const invoiceShape = {
  ...located,
  externalId: 'text',
  idempotencyKey: 'text',
  /** `null` for invoices from before keys were recorded. */
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
/** An invoice row, with everything that it refers to. */
export type ExplainedInvoice = Row<typeof invoiceShape>;

const INVOICE = listColumns(invoiceShape, 'i.', {
  projectName: 'p.name',
  apiKey: { id: 'i.api_key_id', name: 'k.name' },
  payableAfter: payableAfter('i.'),
  ...{ address: addressColumn('a'), policy: 'a.policy', retiredAt: 'a.retired_at' },
});

export const findExplainedInvoice = rowOf(
  'explain-invoice-select',
  invoiceShape,
  `select ${INVOICE} from invoices i
   join projects p on p.id = i.project_id
   join addresses a on a.id = i.address_id
   left join api_keys k on k.id = i.api_key_id
   where i.project_id = $1 and i.id = $2`,
  (projectId: string, id: string) => [projectId, id],
);

type NamedInvoice = Pick<ExplainedInvoice, 'id' | 'projectId'>;
export const bindInvoice = (invoice: NamedInvoice, limit: number) => [invoice.projectId, invoice.id, limit];
const bindWithin = (named: string, projects: Actor['projects'], limit: number) => [named, projects, limit];

/** Counting more than this would take seconds. */
export const MAX_COUNTED = 100_000;

const sightingShape = {
  projectId: 'uuid',
  invoiceId: 'uuid',
  externalId: 'text',
  network: 'text',
  blockNumber: count,
  blockId: hex(),
  blockTime: 'timestamptz',
  txId: hex(),
  logIndex: 'int4',
  from: 'text',
  amountMicro: micro<MicroUsdt>('int8'),
} as const;
/** A transfer for the exact amount, in a block that isn't irreversible yet. */
export type ExplainedSighting = Row<typeof sightingShape>;

const SIGHTINGS = `select ${listColumns(sightingShape, 's.', { externalId: 'i.external_id', blockId: "encode(h.block_id, 'hex')", blockTime: 'h.block_time', from: 's.from_address' })}
   from sightings s
   join head_blocks h on h.network = s.network and h.number = s.block_number
   join invoices i on i.project_id = s.project_id and i.id = s.invoice_id`;
const SIGHTINGS_ORDER = 'order by s.block_number, s.position, s.tx_id, s.log_index';

/** Returns the current sightings in chain order. */
export const findSightingsOfInvoice = rowsOf(
  'explain-sightings-of-invoice',
  sightingShape,
  `${SIGHTINGS} where s.project_id = $1 and s.invoice_id = $2 ${SIGHTINGS_ORDER} limit $3`,
  bindInvoice,
);

export const findSightingsOfTransaction = rowsOf(
  'explain-sightings-of-transaction',
  sightingShape,
  `${SIGHTINGS} where s.network in ${ANY_NETWORK} and s.tx_id = decode($1, 'hex')
     and ($2::uuid[] is null or s.project_id = any($2)) ${SIGHTINGS_ORDER} limit $3`,
  bindWithin,
);

const setAsideShape = {
  id: 'text',
  network: text<Network>(),
  content: 'text',
  reason: 'text',
  isSound: isAsSealed(SEALED_SET_ASIDE),
} as const;
/** A payment that is set aside, or an invoice whose status can't change, until a row is repaired. */
export type ExplainedSetAside = Row<typeof setAsideShape>;

const SET_ASIDE = `select ${listColumns(setAsideShape, 's.', { isSound: sealColumn(SEALED_SET_ASIDE, 's.') })} from set_aside s`;

/** Returns an invoice's entry, and the entries of transfers of exactly its amount to its address. */
export const findSetAsideOfInvoice = rowsOf(
  'explain-set-aside-of-invoice',
  setAsideShape,
  `${SET_ASIDE} where s.id = $1
     or s.network = $2 and s.account = (select account from addresses where id = $3) and s.amount_micro = $4::int8
   order by s.id limit $5`,
  ({ id, network, addressId, payableMicro }: ExplainedInvoice, limit: number) => [
    `${network} invoice ${id}`,
    ...[network, addressId, payableMicro, limit],
  ],
);

/** Few entries are ever set aside, so all of them are searched. */
export const findSetAsideOfTransaction = rowsOf(
  'explain-set-aside-of-transaction',
  setAsideShape,
  `${SET_ASIDE} where split_part(s.id, ' ', 2) = 'transfer' and split_part(s.id, ' ', 3) = $1
     and ($2::uuid[] is null or exists (
       select from addresses a where a.network = s.network and a.account = s.account and a.project_id = any($2)))
   order by s.id limit $3`,
  bindWithin,
);

const eventShape = {
  id: 'uuid',
  type: text<EventType>(),
  sequence: 'int4',
  transferId: 'uuid?',
  createdAt: 'timestamptz',
  body: 'text',
} as const;
export type ExplainedEvent = Row<typeof eventShape>;

const EVENT = listColumns(eventShape, 'e.');

/** Returns an invoice's newest events. */
export const findEventsOfInvoice = rowsOf(
  'explain-events-of-invoice',
  eventShape,
  `select ${EVENT} from events e where e.project_id = $1 and e.invoice_id = $2 order by e.sequence desc limit $3`,
  bindInvoice,
);

/** Returns the events of transfers, oldest first. */
export const findEventsOfTransfers = rowsOf(
  'explain-events-of-transfers',
  eventShape,
  `select ${EVENT} from events e where e.transfer_id = any($1::uuid[]) order by e.created_at, e.id limit $2`,
  (transferIds: readonly string[], limit: number) => [transferIds, limit],
);

/** Bodies aren't indexed, so only this many of the newest events are searched, which is a few days' worth in a busy shop. */
export const EVENTS_SEARCHED = 20_000;

/**
 * Returns the events among the newest 20,000 that contain this id, newest first. They may be about an exact transfer in this transaction.
 */
export const findConfirmingOf = rowsOf(
  'explain-events-of-transaction',
  { ...eventShape, projectId: 'uuid', invoiceId: 'uuid' },
  `select ${EVENT}, e.project_id, e.invoice_id
   from (select * from events order by id desc limit ${EVENTS_SEARCHED}) e
   where e.type = 'invoice.confirming' and e.invoice_id is not null and strpos(e.body, $1) > 0
     and ($2::uuid[] is null or e.project_id = any($2))
   order by e.id desc limit $3`,
  bindWithin,
);

type ToldTransaction = { txId: string; blockNumber: number; blockTime: string; from: string; amount: string };

/**
 * Returns the transaction that an event reports, or `null`. Bodies are written only by `eventBody`. SQL statements don't parse the bodies,
 * because PostgreSQL refuses some texts that JSON allows.
 */
export function transactionOf({ body }: Pick<ExplainedEvent, 'body'>): ToldTransaction | null {
  const { data } = JSON.parse(body) as { data?: { payment?: { transaction: ToldTransaction | null } } };
  return data?.payment?.transaction ?? null;
}

const deliveryShape = {
  eventId: 'uuid',
  endpointId: 'uuid',
  url: 'text',
  endpointDisabled: maybe({ at: 'timestamptz', reason: 'text' }),
  status: text<'pending' | 'delivered' | 'dead'>(),
  attemptCount: 'int4',
  nextAttemptAt: 'timestamptz',
  finishedAt: 'timestamptz?',
  lastStatus: 'int4?',
  lastError: 'text?',
  /** The number of all matching deliveries, including the deliveries beyond the limit. */
  total: count,
} as const;
/** A delivery and its endpoint. */
export type ExplainedDelivery = Row<typeof deliveryShape>;

const DELIVERY = listColumns(deliveryShape, 'd.', {
  url: 'w.url',
  endpointDisabled: { at: 'w.disabled_at', reason: "coalesce(w.disabled_reason, '')" },
  total: 'count(*) over ()',
});

/** Returns the newest deliveries. */
export const findDeliveries = rowsOf(
  'explain-deliveries',
  deliveryShape,
  `select ${DELIVERY}
   from deliveries d join webhook_endpoints w on w.id = d.endpoint_id
   where d.event_id = any($1::uuid[]) order by d.created_at desc, d.event_id desc, d.endpoint_id limit $2`,
  (eventIds: readonly string[], limit: number) => [eventIds, limit],
);

const attemptShape = {
  eventId: 'uuid',
  endpointId: 'uuid',
  attempt: 'int4',
  at: 'timestamptz',
  status: 'int4?',
  error: 'text?',
} as const;
/** The outcome of an attempt. `status` is the HTTP status, or `null` if there was no response. */
export type ExplainedAttempt = Row<typeof attemptShape>;

/** Returns the newest logged attempts for each delivery up to a limit, oldest first. */
export const findAttempts = rowsOf(
  'explain-attempts',
  attemptShape,
  `select ${listColumns(attemptShape, 'l.', { at: 'l.attempted_at' })}
   from rows from (unnest($1::uuid[]), unnest($2::uuid[])) as wanted (event_id, endpoint_id)
   cross join lateral (
     select * from delivery_attempts
     where event_id = wanted.event_id and endpoint_id = wanted.endpoint_id order by attempt desc limit $3::int8) l
   order by l.attempted_at, l.event_id, l.endpoint_id, l.attempt`,
  (of: readonly { eventId: string; endpointId: string }[], limit: number) => [
    of.map(({ eventId }) => eventId),
    of.map(({ endpointId }) => endpointId),
    limit,
  ],
);

const outgoingShape = {
  projectId: 'uuid',
  network: text<Network>(),
  address: 'address',
  to: 'text',
  txId: hex(),
  logIndex: 'int4',
  blockNumber: count,
  blockId: hex(),
  blockTime: 'timestamptz',
  amountMicro: micro<MicroUsdt>(),
  verified: 'text',
  nodes: 'text[]',
  ...annulmentShape,
  /** The transfer that this one refunded. */
  ...refundOfShape,
} as const;
/** A transfer sent from one of our addresses. */
export type ExplainedOutgoing = Row<typeof outgoingShape>;

const OUTGOING = `select ${listColumns(outgoingShape, 'o.', {
  ...{ address: addressColumn('a'), to: 'o.to_address', refundOf: 'r.', ...ANNULMENT_COLUMNS },
})}`;
const STANDING = `join addresses a on a.id = o.address_id left join outgoing_annulments n on ${outgoingAnnulment('o')} ${joinRefundOf('o')}`;

/** Returns the transfers in a transaction that were sent from our addresses, on any network. */
export const findOutgoingOfTransaction = rowsOf(
  'explain-outgoing-of-transaction',
  outgoingShape,
  `${OUTGOING} from outgoing_transfers o ${STANDING}
   where o.network in ${ANY_NETWORK} and o.tx_id = decode($1, 'hex')
     and ($2::uuid[] is null or o.project_id = any($2))
   order by o.network, o.log_index limit $3`,
  bindWithin,
);

/** Returns the newest transfers sent from an address. */
export const findOutgoingOfAddress = rowsOf(
  'explain-outgoing-of-address',
  outgoingShape,
  `${OUTGOING} from outgoing_transfers o ${STANDING}
   where o.address_id = $1 order by o.block_number desc, o.log_index desc limit $2`,
  (addressId: string, limit: number) => [addressId, limit],
);

/** Returns the newest transfers sent from our addresses to a stranger's. */
export const findOutgoingTo = rowsOf(
  'explain-outgoing-to',
  outgoingShape,
  `${OUTGOING} from projects s
   cross join lateral (
     select * from outgoing_transfers where project_id = s.id and to_address = $1 order by block_number desc limit $3) o
   ${STANDING}
   where $2::uuid[] is null or s.id = any($2) order by o.block_time desc, tx_id, o.log_index limit $3`,
  bindWithin,
);
