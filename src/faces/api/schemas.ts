import { SCOPES } from '../../core/domain/api-key.ts';
import { INVOICE_STATUSES } from '../../core/domain/invoice.ts';
import { Type } from '../../core/runtime/type.ts';
import { PROBLEMS } from '../web/problem.ts';

/** The public API's schemas, which serialise the responses and are published in /openapi.json. */

const status = Type.Union(
  INVOICE_STATUSES.map((value) => Type.Literal(value)),
  {
    description:
      'PENDING: waiting for the exact transfer. CONFIRMING: the transfer is in a block that is not yet irreversible. PAID: the transfer is irreversible; this status is final. EXPIRED: the deadline passed; the invoice can still be paid.',
  },
);

const invoiceId = Type.String({ examples: ['inv_01k2m9t0b3e8zr6v5x4c7d1f2g'] });

/** The path parameters for routes that concern one invoice. */
export const InvoicePath = Type.Object({ invoiceId });

const projectionFields = {
  invoiceId,
  externalId: Type.String({ description: 'Your own id for the order attempt, as you sent it' }),
  status,
  checkoutUrl: Type.String({ format: 'uri', description: 'The payment page for the payer' }),
  expiresAt: Type.String({ format: 'date-time' }),
};

export const InvoiceSchema = Type.Object(projectionFields, { title: 'Invoice' });

const transaction = Type.Object(
  {
    txId: Type.String(),
    logIndex: Type.Integer(),
    blockNumber: Type.Integer(),
    blockTime: Type.String({ format: 'date-time' }),
    from: Type.String(),
    amount: Type.String(),
    late: Type.Boolean({ description: 'Whether the block is after expiresAt' }),
    confirmations: Type.Integer(),
  },
  { title: 'PaymentTransaction' },
);

const paymentFields = {
  requestedAmount: Type.String({ examples: ['25.000000'] }),
  payableAmount: Type.String({ examples: ['25.000137'] }),
  address: Type.String(),
};

const addressProof = Type.Object(
  {
    head: Type.String({ description: 'The signed data, as JSON' }),
    signatures: Type.Array(Type.Object({ form: Type.String(), key: Type.String(), value: Type.String() })),
    network: Type.String({ examples: ['mainnet'] }),
    projectId: Type.String(),
    path: Type.Array(Type.String(), {
      description:
        'The path from the address to the Merkle root in `head`: each step is L or R, followed by a SHA-256 hash',
    }),
  },
  {
    title: 'AddressProof',
    description:
      'Proof that the owner signed the address, if signed addresses are in use; only in responses of this API',
  },
);

const price = {
  amount: Type.String({
    pattern: '^(0|[1-9][0-9]{0,11})(\\.[0-9]{1,6})?$',
    description: 'Decimal string greater than 0',
    examples: ['19.99'],
  }),
  currency: Type.String({ pattern: '^[A-Z]{3,5}$', examples: ['EUR'] }),
};

const ConvertedPriceSchema = Type.Object(
  {
    ...price,
    rate: Type.String({ description: 'The price of one USDT in this currency', examples: ['0.921500'] }),
    rateAt: Type.Union([Type.Null(), Type.String()], {
      description: 'The timestamp of the rate; null if the operator set it',
    }),
    rateSource: Type.String({ description: 'The origin that the rate was read from, or `fixed`' }),
  },
  {
    title: 'ConvertedPrice',
    description: 'The price that the invoice was created for; only in responses of this API',
  },
);

const PaymentSchema = Type.Object(
  {
    ...paymentFields,
    transaction: Type.Union([Type.Null(), transaction]),
    addressProof: Type.Optional(addressProof),
    price: Type.Optional(ConvertedPriceSchema),
  },
  { title: 'Payment' },
);

/** A paid invoice's payment, which always has a transaction. */
export const PaidPaymentSchema = Type.Object({ ...paymentFields, transaction }, { title: 'PaidPayment' });

const withdrawnAt = Type.String({
  format: 'date-time',
  description: 'The time when you withdrew the invoice; present only in withdrawn invoices',
});

export const WithdrawnInvoiceSchema = Type.Object({ ...projectionFields, withdrawnAt }, { title: 'WithdrawnInvoice' });

/** The integrator's own data about an invoice. */
const metadata = Type.Unsafe<Record<string, string>>({
  type: 'object',
  maxProperties: 20,
  propertyNames: { pattern: '^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$' },
  additionalProperties: { type: 'string' },
  description: 'Your own data about the invoice, which payers never see; at most 2,048 bytes as JSON',
  examples: [{ cart: 'c-17' }],
});

const description = Type.String({
  minLength: 1,
  maxLength: 140,
  description: 'One line about the purchase, shown to the payer',
  examples: ['Two concert tickets'],
});

const returnUrl = Type.String({
  format: 'uri-template',
  maxLength: 2048,
  description:
    "A return link that replaces the project's return link: an https:// URL on a site that the operator has allowed for the project, such as https://shop.example.com/orders/1001. {invoiceId} is a placeholder",
});

const said = { description: Type.Optional(description), returnUrl: Type.Optional(returnUrl) };

/** The members of an invoice that is read together with its payment, as in events. */
export const invoiceWithPayment = {
  ...projectionFields,
  metadata: Type.Optional(metadata),
  ...said,
  payment: PaymentSchema,
  withdrawnAt: Type.Optional(withdrawnAt),
};

/** An invoice with the members requested by `expand`. Members that the invoice doesn't have are absent. */
export const InvoiceDetailsSchema = Type.Object(
  { ...invoiceWithPayment, payment: Type.Optional(PaymentSchema) },
  {
    title: 'InvoiceDetails',
    description: 'Members that Invoice does not have are present only if you request them with `expand`.',
  },
);

export const InvoiceListSchema = Type.Object(
  {
    data: Type.Array(InvoiceSchema, { maxItems: 100 }),
    next: Type.Optional(
      Type.Union([Type.Null(), Type.String()], {
        description:
          'The `after` value for the next page, or null on the last page; absent if you requested an externalId',
      }),
    ),
  },
  { title: 'InvoiceList' },
);

export const CreateInvoiceSchema = Type.Object(
  {
    amount: Type.Optional(
      Type.String({
        pattern: '^(0|[1-9][0-9]{0,11})(\\.[0-9]{1,6})?$',
        description: 'Decimal string greater than 0; required unless you send a price',
        examples: ['25.00'],
      }),
    ),
    asset: Type.Literal('USDT'),
    network: Type.Literal('TRON'),
    externalId: Type.String({ minLength: 1, maxLength: 200, examples: ['order-1001'] }),
    returnUrl: Type.Optional(returnUrl),
    expiresInSeconds: Type.Optional(
      Type.Integer({
        minimum: 300,
        description: "How long the payer can pay; the project's setting is the maximum and the default",
        examples: [900],
      }),
    ),
    description: Type.Optional(description),
    metadata: Type.Optional(metadata),
    price: Type.Optional(
      Type.Object(price, {
        additionalProperties: false,
        title: 'Price',
        description:
          'Use this instead of `amount` for a price in another currency, if the operator has set a rate for that currency',
      }),
    ),
  },
  {
    additionalProperties: false,
    title: 'CreateInvoice',
    if: { required: ['price'] },
    // biome-ignore lint/suspicious/noThenProperty: JSON Schema.
    then: { not: { required: ['amount'] } },
    else: { required: ['amount'] },
  },
);

export const ProblemSchema = Type.Object(
  {
    type: Type.String({ format: 'uri' }),
    title: Type.String(),
    status: Type.Integer(),
    code: Type.Enum(Object.keys(PROBLEMS), { type: 'string' }),
    detail: Type.String(),
    requestId: Type.String(),
    errors: Type.Optional(
      Type.Array(Type.Object({ field: Type.String(), code: Type.String(), message: Type.String() })),
    ),
    conflict: Type.Optional(Type.Union([Type.Literal('idempotencyKey'), Type.Literal('externalId')])),
    fields: Type.Optional(Type.Array(Type.String())),
    invoiceId: Type.Optional(Type.String()),
    supported: Type.Optional(Type.Array(Type.String())),
    scope: Type.Optional(Type.Enum([...SCOPES], { type: 'string' })),
  },
  { title: 'Problem', description: 'RFC 9457' },
);
