import { type ApiDocument, groupOperations, placeOf } from './api-document.ts';
import { exampleRequest } from './example-request.ts';
import { RECEIVER_RULES } from './receiver-rules.ts';

/** What a program that reads for a developer should know first, in the form of llmstxt.org. */
export function writeLlms(document: ApiDocument): string {
  const { info, servers } = document;
  const [{ url }] = servers;
  const operations = groupOperations(document).flatMap((group) => group.operations);
  const create = operations.find(({ details }) => details.operationId === 'createInvoice');
  const body = create === undefined ? null : exampleRequest(document, create).body;
  return `# ${info.title}

> Self-hosted, non-custodial invoicing for USDT on TRON. Your server creates an invoice and sends the payer to its page; it is PAID when the exact transfer is irreversible.

Every request below \`${url}\` has the secret key of a project in the header \`X-Api-Key\`. It belongs on a server: a browser never calls this API.

- Create an invoice: \`POST /v1/invoices\` with the headers \`Content-Type: application/json\` and \`Idempotency-Key\`, which you choose and store for each order attempt, and the body \`${body}\`. \`amount\` is a decimal string, \`externalId\` your own id of the attempt, unique in the project. \`201\` is the only success: store \`invoiceId\`, send the payer to \`checkoutUrl\`. Without an answer, and after \`429\` and \`5xx\`, send the same request again with the same key: it makes no second invoice.
- Read an invoice: \`GET /v1/invoices/{invoiceId}\`. Fulfil only if \`status\` is \`PAID\` and \`externalId\` is the one that you stored. \`CONFIRMING\` is not paid yet; \`EXPIRED\` can still be paid.
- Amounts are exact: never round them, and never take part of a payment for one. What came close is listed by \`GET /v1/transfers\`.
- Errors are \`application/problem+json\`. Decide by \`code\`.

Rules for a receiver of webhooks:

${RECEIVER_RULES.map((rule, index) => `${index + 1}. ${rule}`).join('\n')}

## Reference

- [Reference](${url}/docs): every operation with curl, JavaScript, Python, PHP, Go and Java; webhooks, objects, errors
- [OpenAPI 3.1](${url}/openapi.json): the same for programs
- [Postman collection](${url}/docs/postman.json): every operation, to try
- [Errors](${url}/docs/errors): what each code means and what to do

## Operations

${operations.map((each) => `- [${each.method} ${each.path}](${url}${placeOf(each)}): ${each.details.summary}`).join('\n')}
`;
}
