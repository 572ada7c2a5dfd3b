import { parseAddress } from '@quittance/tron/address';
import type pg from 'pg';
import { encodeId } from '../../src/core/domain/ids.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { changeAdapterRate } from '../../src/core/store/outbox/adapter-orders.ts';
import { findWebhookEndpoint } from '../../src/core/store/outbox/webhook-endpoints.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { activateAddresses, retireAddresses } from '../../src/faces/operator/subjects/addresses.ts';
import { revokeApiKey } from '../../src/faces/operator/subjects/keys.ts';
import type { ShopAdapter } from '../adapters/fixture.ts';
import { type Answer, call, type Json, type TestService, untilServed } from '../support/service.ts';
import type { EndpointOperation, ListOperation, Model, ModelAdapter, Operation, Outcome } from './model.ts';
import { findReserved, NOTHING } from './outcome.ts';
import { createAdapterRunner } from './run-adapter.ts';

type Deps = {
  service: TestService;
  database: pg.Pool;
  /** The client's network address. */
  client: string;
  model: Pick<Model, 'addresses'>;
  projects: readonly { id: string }[];
  keys: readonly { apiKey: string; keyId: string }[];
  adapters: readonly (ShopAdapter & Pick<ModelAdapter, 'dialect'>)[];
};

/** Performs the operations of an API client or operator, and returns the outcomes. */
export function createRunner({ service, database, client, model, projects, keys, adapters }: Deps) {
  const { db, clock } = service;
  const askAdapter = createAdapterRunner({ database, client, adapters });
  type More = { method?: string; idempotencyKey?: string; body?: object };
  const ask = (key: number, path: string, more: More = {}): Promise<Answer> => {
    const { idempotencyKey, body, method = body === undefined ? 'GET' : 'POST' } = more;
    const headers = {
      'x-api-key': keys[key]?.apiKey ?? '',
      'x-forwarded-for': client,
      ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    };
    const sent = { method, headers, ...(body && { body: JSON.stringify(body) }) };
    return untilServed(() => call(service.url + path, sent));
  };
  const operate = (kind: 'retire' | 'activate', address: string) => {
    const parsed = parseAddress(address);
    if (parsed.kind !== 'ok') throw new Error(parsed.reason);
    const projectId = projects[model.addresses.get(address)?.project ?? -1]?.id ?? '';
    const wanted = { projectId: encodeId('prj', projectId), addresses: [parsed], note: null };
    const deps = { db, now: () => unixMs(clock.now()) };
    const change = kind === 'retire' ? retireAddresses : activateAddresses;
    return change.run(deps, commandActor('model'), wanted);
  };
  return async (operation: Operation): Promise<Outcome> => {
    switch (operation.kind) {
      case 'create': {
        const { key, idempotencyKey, externalId, amount, isInvalid, said } = operation;
        const [text = '', currency] = amount.split(' ').toReversed();
        const sent = isInvalid ? `0${text}` : text;
        const wanted = currency === undefined ? { amount: sent } : { price: { amount: sent, currency } };
        const body = { ...said, ...wanted, asset: 'USDT', network: 'TRON', externalId };
        const outcome = outcomeOf(await ask(key, '/v1/invoices', { idempotencyKey, body }));
        return {
          ...outcome,
          reserved: outcome.invoice === null ? null : await findReserved(database, outcome.invoice.invoiceId),
        };
      }
      case 'read':
        return outcomeOf(await ask(operation.key, `/v1/invoices/${operation.invoiceId}`));
      case 'withdraw':
        return outcomeOf(await ask(operation.key, `/v1/invoices/${operation.invoiceId}/withdraw`, { body: {} }));
      case 'find':
        return outcomeOf(await ask(operation.key, `/v1/invoices?externalId=${operation.externalId}`));
      case 'feed': {
        const { key, limit, types } = operation;
        return outcomeOf(await ask(key, `/v1/events?limit=${limit}${types === null ? '' : `&types=${types}`}`));
      }
      case 'list':
      case 'transfers':
        return outcomeOf(await ask(operation.key, pathOf(operation)));
      case 'endpoint': {
        const { path, ...more } = requestOf(operation);
        const answer = await ask(operation.key, `/v1/webhook-endpoints${path}`, more);
        const { status, body } = answer;
        const endpoints = status >= 300 ? null : operation.act === 'list' ? body.data : [body];
        return { ...NOTHING, status, code: body?.code ?? null, endpoints };
      }
      case 'order':
      case 'trade':
        return askAdapter(operation);
      case 'rate':
        await setRate(service, adapters[operation.adapter]?.id ?? '', operation.isOld);
        return NOTHING;
      case 'revoke':
        await revokeApiKey(db, keys[operation.key]?.keyId ?? '', unixMs(clock.now()));
        return NOTHING;
      case 'disable':
        await revokeApiKey(db, adapters[operation.adapter]?.id ?? '', unixMs(clock.now()));
        return NOTHING;
      case 'retire':
      case 'activate':
        await operate(operation.kind, operation.address);
        return NOTHING;
    }
  };
}

function requestOf(operation: EndpointOperation): { path: string; method?: string; body?: object } {
  switch (operation.act) {
    case 'add':
      return { path: '', body: { url: operation.isInvalid ? 'ftp://shop.example/' : operation.url } };
    case 'list':
      return { path: '' };
    case 'show':
      return { path: `/${operation.endpointId}` };
    case 'change':
      return { path: `/${operation.endpointId}`, method: 'PATCH', body: { description: operation.description } };
    case 'disable':
    case 'enable':
      return { path: `/${operation.endpointId}/${operation.act}`, body: {} };
  }
}

/** Nothing answers there, and a year is longer than a run. */
const SOURCE = {
  ...{ url: 'http://127.0.0.1:9/', path: '/cny', timePath: null, min: '7', max: '8', maxAgeMs: 365 * 86_400_000 },
};

/** Pretends that a source returned an adapter's rate now, or more than a year ago. */
async function setRate({ db, clock }: TestService, id: string, isOld: boolean): Promise<void> {
  const endpoint = await findWebhookEndpoint(db, id);
  if (endpoint === null) throw new Error(`there is no adapter ${id}`);
  const readAt = unixMs(clock.now() - (isOld ? SOURCE.maxAgeMs + 60_000 : 0));
  const rateSource = JSON.stringify(SOURCE);
  const bounds = { rateMinMicro: 7_000_000n, rateMaxMicro: 8_000_000n };
  await changeAdapterRate(db, endpoint, {
    rateMicro: 7_000_000n,
    rateSource,
    ...bounds,
    readMicro: 7_200_000n,
    readAt,
  });
}

function pathOf(operation: ListOperation): string {
  const query = new URLSearchParams({ limit: String(operation.limit) });
  if (operation.after !== null) query.set('after', operation.after);
  if (operation.kind === 'transfers') {
    if (operation.only !== null) query.set('kind', operation.only);
    return `/v1/transfers?${query}`;
  }
  const { status, createdAfterMs } = operation;
  if (status !== null) query.set('status', status);
  if (createdAfterMs !== null) query.set('createdAfter', new Date(createdAfterMs).toISOString());
  return `/v1/invoices?${query}`;
}

function outcomeOf({ status, headers, body }: Answer): Outcome {
  const found = status === 201 || (status === 200 && body.invoiceId !== undefined) ? body : (body?.data?.[0] ?? null);
  const isFeed = status === 200 && 'hasMore' in body;
  const isList = status === 200 && 'next' in body;
  return {
    status,
    code: body?.code ?? null,
    invoice: isFeed || isList ? null : found,
    page: isList ? body : null,
    withdrawnAt: body?.withdrawnAt ?? null,
    isReplayed: headers['idempotent-replayed'] === 'true',
    conflict:
      body?.conflict === undefined ? null : { rule: body.conflict, fields: body.fields, invoiceId: body.invoiceId },
    reserved: null,
    events: isFeed ? body.data.map(toEvent) : null,
    hasMore: isFeed && body.hasMore,
    endpoints: null,
  };
}

function toEvent({ id, type, sequence, data }: Json) {
  return { id, type, sequence, invoiceId: data.invoiceId ?? null };
}
