import type { Scope } from '../../src/core/domain/api-key.ts';
import { judgeAdapter } from './judge-adapter.ts';
import { judgeEndpoint } from './judge-endpoint.ts';
import { judgePage } from './judge-page.ts';
import {
  type AdapterOperation,
  FAILURE_BURST,
  isAnyFree,
  LIFETIME_MS,
  lifetimeOf,
  type Model,
  type ModelInvoice,
  type Operation,
  type Outcome,
  type Said,
  spend,
  toWanted,
} from './model.ts';
import { reserve } from './reserve.ts';

/** Returns why an outcome is wrong for an operation in the model's state, or changes the model and returns `null`. */
export function judge(model: Model, operation: Operation, outcome: Outcome): string | null {
  switch (operation.kind) {
    case 'revoke': {
      const key = model.keys[operation.key];
      if (key !== undefined) key.isRevoked = true;
      return null;
    }
    case 'retire':
    case 'activate': {
      const address = model.addresses.get(operation.address);
      if (address !== undefined) address.isRetired = operation.kind === 'retire';
      return null;
    }
    case 'order':
    case 'trade':
    case 'rate':
    case 'disable':
      return judgeAdapter(model, operation, outcome);
    default: {
      const admitted = admit(model, operation, outcome);
      return admitted.isDone ? admitted.wrong : judgeAdmitted(model, operation, outcome);
    }
  }
}

type Admitted = { isDone: true; wrong: string | null } | { isDone: false };

/** The scope that each operation needs. */
const NEEDED: Readonly<Record<Asked['kind'], Scope>> = {
  ...{
    create: 'create',
    withdraw: 'create',
    read: 'read',
    find: 'read',
    list: 'read',
    transfers: 'read',
    feed: 'events',
    endpoint: 'webhooks',
  },
};
/** The scopes of a key created without any. */
const WITHOUT: readonly Scope[] = ['create', 'read', 'events'];

export function mayDo({ keys }: Model, { key, kind }: Pick<Asked, 'key' | 'kind'>): boolean {
  return (keys[key]?.scopes ?? WITHOUT).includes(NEEDED[kind]);
}

/** Checks authentication, rate limit and scope, which come before everything else. */
function admit(model: Model, operation: Asked, { status, code }: Outcome): Admitted {
  const key = model.keys[operation.key];
  if (key === undefined) throw new Error(`there is no key ${operation.key}`);
  if (key.isRevoked) {
    model.failures += 1;
    const isLimited = status === 429 && model.failures > FAILURE_BURST;
    const isRefused = status === 401 && code === 'UNAUTHENTICATED';
    return { isDone: true, wrong: expect(isLimited || isRefused, `a revoked key was answered with ${status}`) };
  }
  // Without the right, the request doesn't use up the second token.
  const isOfEndpoints = operation.kind === 'endpoint' && mayDo(model, operation);
  const isForEndpoints = isOfEndpoints && status === 429 && key.endpointTokens < 1 && key.tokens >= 1;
  const { isRefused: isSpent, wrong } = spend(key, isForEndpoints ? 200 : status);
  if (isSpent) return { isDone: true, wrong };
  if (isForEndpoints) return { isDone: true, wrong: null };
  if (isOfEndpoints) {
    const of = { tokens: key.endpointTokens };
    const spent = spend(of, status);
    key.endpointTokens = of.tokens;
    if (spent.isRefused) return { isDone: true, wrong: spent.wrong };
  }
  if (status === 401) return { isDone: true, wrong: 'a good key was refused' };
  if (mayDo(model, operation)) return { isDone: false };
  const isRefused = status === 403 && code === 'INSUFFICIENT_SCOPE';
  return { isDone: true, wrong: expect(isRefused, `a key without the scope was answered with ${status}`) };
}

type Asked = Exclude<Operation, AdapterOperation | { kind: 'revoke' | 'retire' | 'activate' }>;

function judgeAdmitted(model: Model, operation: Asked, outcome: Outcome): string | null {
  const project = model.keys[operation.key]?.project ?? -1;
  switch (operation.kind) {
    case 'create':
      return judgeCreated(model, project, operation, outcome);
    case 'read': {
      const known = model.invoices.get(operation.invoiceId);
      if (known?.project !== project) return judgeUnknown(outcome);
      return expect(outcome.status === 200 && isSame(known, outcome), 'the invoice is another, or in another state');
    }
    case 'withdraw':
      return judgeWithdrawn(model, project, operation.invoiceId, outcome);
    case 'find': {
      const known = [...model.invoices.values()].find(
        (each) => each.project === project && each.externalId === operation.externalId,
      );
      const isRight = known === undefined ? outcome.invoice === null : isSame(known, outcome);
      return expect(outcome.status === 200 && isRight, 'the external id led to another invoice, or to none');
    }
    case 'feed':
      return operation.types === null
        ? judgeFeed(model, project, outcome)
        : judgeTypes(model, project, operation.types, outcome);
    case 'endpoint':
      return judgeEndpoint(model, project, operation, outcome);
    case 'list':
    case 'transfers':
      if (outcome.page === null) return `a list was answered with ${outcome.status}`;
      return judgePage(model, project, operation, outcome.page);
  }
}

function judgeUnknown({ status, code }: Outcome): string | null {
  return expect(status === 404 && code === 'INVOICE_NOT_FOUND', 'an invoice of nobody was found');
}

function judgeWithdrawn(model: Model, project: number, id: string, outcome: Outcome): string | null {
  const known = model.invoices.get(id);
  if (known?.project !== project) return judgeUnknown(outcome);
  const { status, code, withdrawnAt } = outcome;
  if (known.status === 'PAID' && known.withdrawnAt === null)
    return expect(status === 409 && code === 'INVOICE_PAID', 'a paid invoice was withdrawn');
  const isRight = status === 200 && isSame(known, outcome) && withdrawnAt !== null;
  if (!isRight || withdrawnAt !== (known.withdrawnAt ?? withdrawnAt)) return 'it was withdrawn otherwise';
  model.invoices.set(id, { ...known, withdrawnAt });
  return null;
}

function judgeCreated(
  model: Model,
  project: number,
  operation: Extract<Operation, { kind: 'create' }>,
  { status, code, invoice, isReplayed, conflict, reserved }: Outcome,
): string | null {
  if (operation.isInvalid) return expect(status === 400 && code === 'INVALID_REQUEST', 'invalid input was taken');
  const { idempotencyKey, externalId } = operation;
  const { amountMicro, price } = toWanted(operation.amount);
  const said: Said = { ...operation.said, ...(price !== undefined && { price }) };
  const own = [...model.invoices.values()].filter((each) => each.project === project);
  const sameKey = own.find((each) => each.idempotencyKey === idempotencyKey);
  const holder = sameKey ?? own.find((each) => each.externalId === externalId);
  if (holder !== undefined) {
    const fields = [
      // A price is compared as such.
      ...(holder.amountMicro === amountMicro || (holder.said.price && price) ? [] : ['amount']),
      ...(holder.externalId === externalId ? [] : ['externalId']),
      ...(['returnUrl', 'expiresInSeconds', 'description', 'metadata', 'price'] as const).filter(
        (name) => JSON.stringify(holder.said[name]) !== JSON.stringify(said[name]),
      ),
    ];
    if (sameKey !== undefined && fields.length === 0) {
      const isTheSame = invoice?.invoiceId === holder.invoiceId && invoice.status === holder.status;
      return expect(status === 201 && isReplayed && isTheSame, 'a retry was not answered with its invoice');
    }
    const rule = sameKey === undefined ? 'externalId' : 'idempotencyKey';
    const isReported =
      conflict?.rule === rule && conflict.invoiceId === holder.invoiceId && `${conflict.fields}` === `${fields}`;
    return expect(status === 409 && code === 'IDEMPOTENCY_CONFLICT' && isReported, `no conflict of ${rule} was told`);
  }
  if (lifetimeOf(said) > LIFETIME_MS)
    return expect(status === 400 && code === 'INVALID_REQUEST', 'a deadline beyond that of the project was taken');
  if (status === 409) {
    const isFull = code === 'AMOUNT_UNAVAILABLE' && !isAnyFree(model, project, amountMicro);
    return expect(isFull, `refused with ${code}, and a payable amount is free`);
  }
  if (status !== 201 || invoice === null || reserved === null) return `a right request was answered with ${status}`;
  const wrong =
    expect(!isReplayed, 'a new invoice is told as a replay') ??
    expect(invoice.externalId === externalId, 'the new invoice has another external id') ??
    expect(invoice.status === 'PENDING', `the new invoice is ${invoice.status}`);
  return wrong ?? reserve(model, { project, externalId, idempotencyKey, amountMicro, said }, invoice, reserved);
}

/** Checks that only these types are listed, in the order of the whole feed, and that a page of all types is as long as it must be. */
function judgeTypes(
  model: Model,
  project: number,
  types: readonly string[],
  { status, events, hasMore }: Outcome,
): string | null {
  if (status !== 200 || events === null) return `the feed was answered with ${status}`;
  if (events.some(({ type }) => !types.includes(type))) return 'an event of another type was told';
  if (events.some(({ invoiceId }) => invoiceId !== null && model.invoices.get(invoiceId)?.project !== project)) {
    return 'an event of another project was told';
  }
  const places = events.map(({ id }) => model.feeds[project]?.indexOf(id) ?? -1).filter((place) => place >= 0);
  if (places.some((place, index) => place <= (places[index - 1] ?? -1))) return 'the order of the feed has changed';
  if (hasMore || !types.includes('invoice.paid')) return null;
  const paid = [...model.invoices.values()].filter((each) => each.project === project && each.status === 'PAID');
  return expect(
    events.filter(({ type }) => type === 'invoice.paid').length === paid.length,
    'paid invoices and their events differ in number',
  );
}

function judgeFeed(model: Model, project: number, { status, events, hasMore }: Outcome): string | null {
  if (status !== 200 || events === null) return `the feed was answered with ${status}`;
  const reported = model.feeds[project] ?? [];
  if (events.some(({ id }, index) => index < reported.length && reported[index] !== id))
    return 'what the feed had told has changed';
  if (events.some(({ invoiceId }) => invoiceId !== null && model.invoices.get(invoiceId)?.project !== project)) {
    return 'an event of another project was told';
  }
  if (hasMore) return null;
  if (events.length < reported.length) return 'events that the feed had told are gone';
  model.feeds[project] = events.map(({ id }) => id);
  if (new Set(model.feeds[project]).size !== events.length) return 'an event stands in the feed twice';
  for (const invoice of [...model.invoices.values()].filter((each) => each.project === project)) {
    const own = events.filter(({ type, invoiceId }) => invoiceId === invoice.invoiceId && type.startsWith('invoice.'));
    if (own.some(({ sequence }, index) => sequence !== index + 1)) return 'the sequence of an invoice has a gap';
    if (own.filter(({ type }) => type === 'invoice.paid').length !== Number(invoice.status === 'PAID')) {
      return `an invoice that is ${invoice.status} has other events`;
    }
    const last = own.at(-1)?.type ?? 'invoice.pending';
    if (last !== `invoice.${invoice.status.toLowerCase()}`)
      return `the last event of a ${invoice.status} one is ${last}`;
  }
  const counts = (kind: 'duplicate' | 'unmatched') =>
    events.filter(({ type }) => type === `transfer.${kind}`).length ===
    model.transfers[project]?.filter((transfer) => transfer.kind === kind).length;
  return (
    expect(counts('duplicate'), 'second payments and their events differ in number') ??
    expect(counts('unmatched'), 'payments that fit nothing and their events differ in number')
  );
}

function isSame({ invoiceId, externalId, status }: ModelInvoice, { invoice }: Outcome): boolean {
  return invoice?.invoiceId === invoiceId && invoice.externalId === externalId && invoice.status === status;
}

function expect(isRight: boolean, wrong: string): string | null {
  return isRight ? null : wrong;
}
