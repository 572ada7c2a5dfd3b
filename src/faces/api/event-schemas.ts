import type { EventType } from '../../core/domain/event.ts';
import { INVOICE_STATUSES, type InvoiceStatus } from '../../core/domain/invoice.ts';
import { CAUSE_CODES } from '../../core/domain/mismatch.ts';
import { WIRE_NETWORK } from '../../core/domain/network.ts';
import { FORMER_RESOLUTIONS, RESOLUTIONS } from '../../core/domain/resolution.ts';
import { type TSchema, Type } from '../../core/runtime/type.ts';
import { invoiceWithPayment, PaidPaymentSchema } from './schemas.ts';

const endpointId = Type.String({ examples: ['whe_01k2m9t0b3e8zr6v5x4c7d1f2g'] });

/** The transfer that refunded another transfer. */
export const RefundSchema = Type.Object(
  {
    ...{ txId: Type.String(), logIndex: Type.Integer(), blockNumber: Type.Integer() },
    blockTime: Type.String({ format: 'date-time' }),
    from: Type.String({ description: 'Your address that sent the refund' }),
    to: Type.String({ description: 'The sender of the original transfer' }),
    amount: Type.String({ examples: ['24.000000'] }),
  },
  { title: 'Refund' },
);

export const NamedInvoiceSchema = Type.Object(
  {
    invoiceId: Type.String(),
    externalId: Type.String(),
    status: Type.Union(INVOICE_STATUSES.map((value) => Type.Literal(value))),
  },
  { title: 'NamedInvoice' },
);

/** The title of the schema for events that a later release adds. */
export const OTHER_EVENT = 'OtherEvent';

/** The content of each event type in the feed and in webhooks. The titles become type names in generated clients. */
export const EVENT_SCHEMAS = {
  'invoice.confirming': invoiceEvent('invoice.confirming', 'CONFIRMING', {
    title: 'InvoiceConfirmingEvent',
    description: 'The payment is in a block that can still be orphaned. Do not fulfil the order yet.',
  }),
  'invoice.pending': invoiceEvent('invoice.pending', 'PENDING', {
    title: 'InvoicePendingEvent',
    description: 'The block with the payment was orphaned, so the invoice waits for payment again.',
  }),
  'invoice.paid': envelope(
    'invoice.paid',
    Type.Object({
      ...invoiceWithPayment,
      status: Type.Literal('PAID'),
      payment: PaidPaymentSchema,
    }),
    { title: 'InvoicePaidEvent', description: 'The payment is irreversible.' },
  ),
  'invoice.expired': invoiceEvent('invoice.expired', 'EXPIRED', {
    title: 'InvoiceExpiredEvent',
    description: 'The deadline passed without payment. The invoice can still be paid.',
  }),
  'transfer.unmatched': envelope('transfer.unmatched', Type.Object({ ...transferFields(), ...likeliestOfEvent() }), {
    title: 'TransferUnmatchedEvent',
    description:
      'A transfer to one of your addresses matches no payable amount. The event has the likeliest reason at that time.',
  }),
  'transfer.duplicate': envelope(
    'transfer.duplicate',
    Type.Object({
      ...transferFields(),
      invoiceId: Type.String({ description: 'The invoice that was already paid' }),
      ...likeliestOfEvent(),
    }),
    {
      title: 'TransferDuplicateEvent',
      description: 'A second transfer of exactly the payable amount of an invoice that is already paid.',
    },
  ),
  'transfer.refunded': envelope(
    'transfer.refunded',
    Type.Object({
      ...transferFields(),
      invoiceId: Type.Optional(Type.String({ description: 'For a duplicate: the invoice that was already paid' })),
      refund: RefundSchema,
    }),
    {
      title: 'TransferRefundedEvent',
      description:
        'A transfer that paid no invoice was returned to its sender in full, and the refund is on the chain.',
    },
  ),
  'transfer.claimed': envelope(
    'transfer.claimed',
    Type.Object({
      ...transferFields(),
      ...likeliestFields(),
      claim: Type.Object(
        {
          invoice: NamedInvoiceSchema,
          claimedAt: Type.String({ format: 'date-time' }),
          otherClaims: Type.Integer({
            minimum: 0,
            description: 'Number of other invoices whose payers claimed this transfer',
          }),
        },
        { title: 'Claim' },
      ),
    }),
    {
      title: 'TransferClaimedEvent',
      description:
        'The payer of an invoice looked up a transfer that paid no invoice, and so claimed it. This is not proof, because anyone with the invoice link can do it. The payment page does not ask for payment until the operator decides.',
    },
  ),
  'transfer.resolved': envelope(
    'transfer.resolved',
    Type.Object({
      ...transferFields(),
      invoiceId: Type.Optional(Type.String({ description: 'For a duplicate: the invoice that was already paid' })),
      resolution: Type.Object(
        {
          kind: Type.Union(
            [...RESOLUTIONS, ...Object.keys(FORMER_RESOLUTIONS)].map((value) => Type.Literal(value)),
            {
              description:
                'Older events can contain `credited-outside`, which means `fulfilled-manually`, and `ignored`, which means `kept`.',
            },
          ),
          invoice: Type.Union([Type.Null(), NamedInvoiceSchema], {
            description: 'The invoice that the operator selected for this money, with its status at that time, or null',
          }),
          resolvedAt: Type.String({ format: 'date-time' }),
        },
        { title: 'Resolution' },
      ),
    }),
    {
      title: 'TransferResolvedEvent',
      description:
        "The operator resolved a transfer that paid no invoice. The newest resolution applies. No invoice changes its status. With `fulfilled-manually`, the named invoice's page stops asking for payment.",
    },
  ),
  'endpoint.disabled': envelope(
    'endpoint.disabled',
    Type.Object({
      endpointId,
      description: Type.String({ description: "The operator's description of the endpoint; may be empty" }),
      reason: Type.String({ description: 'The reason why the endpoint was disabled, as text' }),
      disabledAt: Type.String({ format: 'date-time' }),
      undelivered: Type.Integer({
        minimum: 0,
        description: 'Number of events waiting to be delivered to this endpoint',
      }),
      origin: Type.String({ description: "Scheme, host and port of the endpoint's URL" }),
    }),
    {
      title: 'EndpointDisabledEvent',
      description:
        'Quittance stopped sending to another of your endpoints, because that endpoint failed for five days or returned 410. The feed contains its events.',
    },
  ),
  ping: envelope('ping', Type.Object({ endpointId }), {
    title: 'PingEvent',
    description: 'An event that the operator sends to test the endpoint. It does not concern an invoice.',
  }),
} as const satisfies Record<EventType, object>;

/** The schema of events that a later release may send. It's the last member of the union so that known events match their own schemas. */
const OtherEventSchema = Type.Object(
  {
    ...{ id: Type.String(), type: Type.String(), timestamp: Type.String({ format: 'date-time' }) },
    ...{ projectId: Type.String(), network: Type.String(), sequence: Type.Integer({ minimum: 1 }) },
    data: Type.Object({}, { additionalProperties: true }),
  },
  { title: OTHER_EVENT, description: 'An event of a type added in a later release. Ignore it.' },
);

export const EventPageSchema = Type.Object(
  {
    data: Type.Array(Type.Union([...Object.values(EVENT_SCHEMAS), OtherEventSchema]), {
      description: 'Oldest first. Later releases may add types: ignore types that you do not know.',
    }),
    hasMore: Type.Boolean({
      description: 'Whether more events follow this page; with `types`, whether more events follow `next`',
    }),
    latest: Type.Union([Type.Null(), Type.String()], {
      description: "The id of the project's newest event, or null if it has none",
    }),
    next: Type.Optional(
      Type.Union([Type.Null(), Type.String()], {
        description: 'Only with `types`: the `after` value for the next page, which also skips events of other types',
      }),
    ),
  },
  { title: 'EventPage' },
);

type Words = { title: string; description: string };

function invoiceEvent<const Name extends EventType, const Status extends InvoiceStatus>(
  type: Name,
  status: Status,
  words: Words,
) {
  return envelope(type, Type.Object({ ...invoiceWithPayment, status: Type.Literal(status) }), words);
}

function envelope<const Name extends EventType, Data extends TSchema>(type: Name, data: Data, words: Words) {
  return Type.Object(
    {
      id: Type.String({
        description: 'Equals the webhook-id header; use it to deduplicate events',
        examples: ['evt_01k2m9t0b3e8zr6v5x4c7d1f2g'],
      }),
      type: Type.Literal(type),
      timestamp: Type.String({ format: 'date-time' }),
      projectId: Type.String(),
      network: Type.Enum([WIRE_NETWORK], { type: 'string' }),
      sequence: Type.Integer({
        minimum: 1,
        description: "The event's number within its invoice, without gaps; 1 for an event without an invoice",
      }),
      data,
    },
    words,
  );
}

/** The fields that describe a transfer in events and lists. */
export function transferFields() {
  return {
    transferId: Type.String({ examples: ['trf_01k2m9t0b3e8zr6v5x4c7d1f2g'] }),
    txId: Type.String(),
    logIndex: Type.Integer(),
    blockNumber: Type.Integer(),
    blockTime: Type.String({ format: 'date-time' }),
    from: Type.String(),
    to: Type.String(),
    amount: Type.String({ examples: ['25.000137'] }),
  };
}

/** The fields that explain why a transfer paid nothing, in events and lists. */
export function likeliestFields() {
  return {
    reason: Type.Union([
      Type.Null(),
      Type.Object(
        {
          code: Type.Union(CAUSE_CODES.map((value) => Type.Literal(value))),
          confidence: Type.Union([Type.Literal('high'), Type.Literal('medium'), Type.Literal('low')]),
        },
        {
          title: 'MismatchReason',
          description:
            'The likeliest reason why the transfer paid no invoice. The reason is never certain. Later releases may add codes.',
        },
      ),
    ]),
    nearestInvoice: Type.Union([Type.Null(), NamedInvoiceSchema], {
      description:
        'The invoice that the transfer was probably meant for, according to that reason, but did not pay. Let a person decide.',
    }),
  };
}

/** Events from before these fields were introduced have neither of them. */
function likeliestOfEvent() {
  const { reason, nearestInvoice } = likeliestFields();
  return { reason: Type.Optional(reason), nearestInvoice: Type.Optional(nearestInvoice) };
}
