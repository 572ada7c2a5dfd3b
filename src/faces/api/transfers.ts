import type { FastifyInstance, FastifyRequest } from 'fastify';
import { describeRefund, describeTransfer } from '../../core/domain/event.ts';
import { encodeId } from '../../core/domain/ids.ts';
import { type Cause, describeLikeliest, nameInvoice } from '../../core/domain/mismatch.ts';
import { type Claim, findClaims } from '../../core/payments/claims.ts';
import { diagnoseTransfers } from '../../core/payments/mismatch/diagnose-transfers.ts';
import { Type } from '../../core/runtime/type.ts';
import { findTransferPage, type ListedTransfer, type TransferKind } from '../../core/store/ledger/transfer-pages.ts';
import type { ApiDeps } from './api-deps.ts';
import { likeliestFields, NamedInvoiceSchema, RefundSchema, transferFields } from './event-schemas.ts';
import { callerOf, guarded, refuseKey } from './guard.ts';
import { problemResponses } from './problem-responses.ts';
import { inspectQuery, invalidQuery, pageAfter, pageLimit, readAfter, readLimit, wrongValue } from './read-query.ts';

const KINDS = ['unmatched', 'duplicate', 'matched'] as const satisfies readonly TransferKind[];

/** `GET /v1/transfers`: the transfers to the project's addresses, with the reason if they paid nothing. */
export function registerTransfers(app: FastifyInstance, deps: ApiDeps): void {
  app.get('/v1/transfers', guarded(deps, 'read', schema), (request) => list(deps, request));
}

async function list(deps: ApiDeps, request: FastifyRequest) {
  const { keyId } = callerOf(request);
  const { kinds, after, limit } = readFilter(request);
  // One extra row shows whether there is another page.
  const found = await findTransferPage(deps.db, { keyId, after, kinds, limit: limit + 1 }, deps.now());
  if (found === null) return refuseKey(deps, keyId);
  const shown = found.slice(0, limit);
  const causes = await diagnoseTransfers(
    deps.db,
    shown.flatMap(({ id, kind }) => (kind === 'matched' ? [] : [id])),
  );
  const claims = await findClaims(
    deps.db,
    shown.map(({ id }) => id),
  );
  const last = found.length > limit ? shown.at(-1) : undefined;
  return {
    data: shown.map((transfer) => describe(transfer, causes.get(transfer.id), claims.get(transfer.id))),
    next: last === undefined ? null : encodeId('trf', last.id),
  };
}

function readFilter(request: FastifyRequest) {
  const { query, errors } = inspectQuery(request, ['kind', 'after', 'limit']);
  const { kind } = query;
  const known = KINDS.find((each) => each === kind);
  if (kind !== undefined && known === undefined) {
    errors.push(wrongValue('kind', `must be one of ${KINDS.join(', ')}`));
  }
  const after = readAfter(query['after'], 'trf', errors);
  const limit = readLimit(query['limit'], errors);
  if (errors.length > 0) throw invalidQuery(errors);
  const kinds: readonly TransferKind[] = known === undefined ? ['unmatched', 'duplicate'] : [known];
  return { kinds, after, limit };
}

function describe({ invoice, kind, refund, ...transfer }: ListedTransfer, causes?: Cause[], claims: Claim[] = []) {
  return {
    ...describeTransfer({ ...transfer, invoiceId: null }),
    kind,
    invoice: invoice && nameInvoice(invoice),
    ...describeLikeliest(causes),
    claimedBy: claims.map(({ invoice: claiming }) => nameInvoice(claiming)),
    refund: refund && describeRefund(refund, transfer),
  };
}

const TransferSchema = Type.Object(
  {
    ...transferFields(),
    kind: Type.Union(
      KINDS.map((value) => Type.Literal(value)),
      {
        description:
          'unmatched: matches no payable amount. duplicate: matches an invoice that was already paid. matched: paid an invoice.',
      },
    ),
    invoice: Type.Union([Type.Null(), NamedInvoiceSchema], {
      description: 'The invoice that the transfer paid, or would have paid if it is a duplicate',
    }),
    ...likeliestFields(),
    claimedBy: Type.Array(NamedInvoiceSchema, {
      description:
        'Invoices whose payers looked up this transfer and thus claimed it. This is not proof: let a person decide.',
    }),
    refund: Type.Union([Type.Null(), RefundSchema], {
      description: 'The transfer that returned the full amount to the sender, as recorded in the ledger',
    }),
  },
  { title: 'Transfer' },
);

const schema = {
  operationId: 'listTransfers',
  tags: ['transfers'],
  summary: 'List transfers that paid no invoice, with the likeliest reason',
  description:
    "Irreversible transfers to your project's addresses, oldest first. For the next page, send `next` as `after`, until `next` is null. Store the last id, and continue from there later.",
  querystring: Type.Object({
    kind: Type.Optional(
      Type.Union(
        KINDS.map((value) => Type.Literal(value)),
        { description: 'Default: unmatched and duplicate' },
      ),
    ),
    after: pageAfter('trf'),
    limit: pageLimit,
  }),
  response: {
    200: Type.Object(
      { data: Type.Array(TransferSchema), next: Type.Union([Type.Null(), Type.String()]) },
      { title: 'TransferList' },
    ),
    ...problemResponses(400, 401, 403, 429, 500, 503),
  },
};
