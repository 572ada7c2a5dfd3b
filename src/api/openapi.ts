import swagger from '@fastify/swagger';
import type { FastifyInstance } from 'fastify';
import { Type } from 'typebox';
import { PROBLEMS } from '../web/problem.ts';
import { InvoiceWithPaymentSchema } from './schemas.ts';

const invoiceEvent = (description: string) => ({
  post: {
    description,
    requestBody: {
      content: { 'application/json': { schema: eventSchema(InvoiceWithPaymentSchema) } },
    },
    responses: { '2XX': { description: 'Received. Anything else, or no answer within 15 s, is tried again.' } },
  },
});

const transferEvent = (description: string) => ({
  post: {
    description,
    requestBody: { content: { 'application/json': { schema: eventSchema(TransferSchema) } } },
    responses: { '2XX': { description: 'Received. Anything else, or no answer within 15 s, is tried again.' } },
  },
});

const TransferSchema = Type.Object({
  transferId: Type.String(),
  txId: Type.String(),
  logIndex: Type.Integer(),
  blockNumber: Type.Integer(),
  blockTime: Type.String({ format: 'date-time' }),
  from: Type.String(),
  to: Type.String(),
  amount: Type.String(),
  invoiceId: Type.Optional(Type.String({ description: 'The invoice that was already paid' })),
});

function eventSchema(data: object): object {
  return {
    type: 'object',
    required: ['id', 'type', 'timestamp', 'projectId', 'network', 'sequence', 'data'],
    properties: {
      id: { type: 'string', description: 'Equals the webhook-id header; deduplicate by it' },
      type: { type: 'string' },
      timestamp: { type: 'string', format: 'date-time' },
      projectId: { type: 'string' },
      network: { const: 'TRON' },
      sequence: { type: 'integer', minimum: 1, description: 'Counts the events of one invoice without a gap' },
      data,
    },
  };
}

/** Publishes `/openapi.json` (3.1, with `webhooks`). Register it before the routes that it describes. */
export async function registerOpenApi(app: FastifyInstance, publicUrl: () => string): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Quittance',
        version: '1',
        description:
          'Invoices for USDT on TRON. Fulfil an order only after reading status PAID and your own externalId.',
      },
      components: {
        securitySchemes: { apiKey: { type: 'apiKey', in: 'header', name: 'X-Api-Key' } },
      },
      webhooks: {
        'invoice.confirming': invoiceEvent('The exact transfer stands in a block that is not yet irreversible.'),
        'invoice.pending': invoiceEvent('The block of the transfer was orphaned; the invoice waits again.'),
        'invoice.paid': invoiceEvent('The exact transfer is irreversible.'),
        'invoice.expired': invoiceEvent('The deadline passed with no exact transfer; the invoice is still payable.'),
        'transfer.unmatched': transferEvent('A transfer to one of your addresses equals no payable amount.'),
        'transfer.duplicate': transferEvent('A second exact transfer for an invoice that is already paid.'),
      },
    },
  });
  app.get('/openapi.json', { schema: { hide: true } }, async () => ({
    ...app.swagger(),
    servers: [{ url: publicUrl() }],
  }));
  for (const [url, page] of [
    ['/docs', DOCS_PAGE],
    ['/docs/errors', ERRORS_PAGE],
  ] as const) {
    app.get(url, { schema: { hide: true } }, async (_request, reply) => {
      reply
        .type('text/html; charset=utf-8')
        .header('Content-Security-Policy', "default-src 'none'; style-src 'unsafe-inline'");
      return page;
    });
  }
}

/** A page of the documentation. All of it is our own constant text. */
function pageOf(title: string, content: string): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${title}</title>
<meta name="viewport" content="width=device-width"><style>body{font:16px/1.5 system-ui;max-width:46rem;margin:2rem auto;padding:0 1rem}code{font-size:.95em}</style></head>
<body><h1>${title}</h1>
${content}
</body></html>`;
}

const DOCS_PAGE = pageOf(
  'The Quittance API',
  `<p>Invoices for USDT on TRON. Fulfil an order only after reading status <code>PAID</code> and your own <code>externalId</code>.</p>
<ul>
<li><a href="/openapi.json">/openapi.json</a>: every endpoint, field, error and webhook (OpenAPI 3.1)</li>
<li><a href="/docs/errors">/docs/errors</a>: what each error means and what to do</li>
</ul>`,
);

/** The page that the `type` of every error names. */
const ERRORS_PAGE = pageOf(
  'Errors of the Quittance API',
  `<p>Every error is <code>application/problem+json</code> (RFC 9457) with <code>code</code>, <code>detail</code> and <code>requestId</code>.</p>
${Object.entries(PROBLEMS)
  .map(
    ([code, { status, title, advice }]) =>
      `<h2 id="${code}"><code>${code}</code> (${status})</h2><p>${title}. ${advice}</p>`,
  )
  .join('\n')}`,
);
