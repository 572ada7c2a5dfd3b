import { expect, test } from 'vitest';
import { judge } from './judge.ts';
import { linearize } from './linearize.ts';
import { cloneModel, isCodeWord, type Model, type Operation, type Outcome } from './model.ts';

/** Proves that the model can fail: a broken service could give each of these outcomes. */

const A = 'address-a';
const RESERVED = { address: A, payableMicro: 25_000_009n };

const MODEL: Model = {
  policies: ['tail', 'exact'],
  surchargeUnits: 100n,
  limit: { perSecond: 1, burst: 5 },
  keys: [
    { project: 0, isRevoked: false, tokens: 5, endpointTokens: 1, scopes: null },
    { project: 1, isRevoked: false, tokens: 5, endpointTokens: 1, scopes: null },
    { project: 0, isRevoked: true, tokens: 5, endpointTokens: 1, scopes: null },
    { project: 0, isRevoked: false, tokens: 0, endpointTokens: 1, scopes: null },
    { project: 0, isRevoked: false, tokens: 5, endpointTokens: 1, scopes: ['create'] },
  ],
  adapters: [
    { project: 0, dialect: 'epusdt', isRevoked: false, isRateOld: false, tokens: 5, endpointId: 'whe_a' },
    { project: 1, dialect: 'epay', isRevoked: true, isRateOld: false, tokens: 5, endpointId: 'whe_b' },
  ],
  endpoints: new Map(),
  sinkUrl: 'http://sink',
  addresses: new Map([
    [A, { project: 0, isRetired: false }],
    ['address-retired', { project: 0, isRetired: true }],
    ['address-b', { project: 1, isRetired: false }],
  ]),
  invoices: new Map(),
  failures: 0,
  feeds: [[], []],
  transfers: [[], []],
};

const NOTHING: Outcome = {
  ...{ status: 201, code: null, invoice: null, isReplayed: false, conflict: null, reserved: null, events: null },
  ...{ hasMore: false, page: null, withdrawnAt: null, endpoints: null },
};
const EXPIRES = '2026-09-01T00:30:00.000Z';
const CREATE: Extract<Operation, { kind: 'create' }> = {
  ...{ kind: 'create', key: 0, idempotencyKey: 'k', externalId: 'e', amount: '25.00', isInvalid: false },
};

function made(invoiceId = 'inv_1', reserved: Outcome['reserved'] = RESERVED): Outcome {
  return { ...NOTHING, invoice: { invoiceId, externalId: 'e', status: 'PENDING', expiresAt: EXPIRES }, reserved };
}

function withInvoice(): Model {
  const model = cloneModel(MODEL);
  expect(judge(model, CREATE, made())).toBeNull();
  return model;
}

const other = { ...CREATE, idempotencyKey: 'k2', externalId: 'e2' };
const otherMade = {
  ...made('inv_2'),
  invoice: { invoiceId: 'inv_2', externalId: 'e2', status: 'PENDING', expiresAt: EXPIRES },
};
const beyond = { ...other, said: { expiresInSeconds: 1801 } };
const failed = (status: number, code: string): Outcome => ({ ...NOTHING, status, code });
const found = (status: string): Outcome => ({
  ...NOTHING,
  status: 200,
  invoice: { invoiceId: 'inv_1', externalId: 'e', status, expiresAt: EXPIRES },
});
const FEED: Operation = { kind: 'feed', key: 0, limit: 100, types: null };
const feed = (...sequences: number[]): Outcome => {
  const event = (sequence: number) => ({
    id: `evt_${sequence}`,
    type: 'invoice.expired',
    invoiceId: 'inv_1',
    sequence,
  });
  return { ...NOTHING, status: 200, events: sequences.map(event) };
};

test.each<[what: string, operation: Operation, outcome: Outcome, complaint: RegExp]>([
  ['the amount of another invoice', other, otherMade, /another invoice's/],
  [
    'an amount that is no code word',
    other,
    { ...otherMade, reserved: { address: A, payableMicro: 25_000_010n } },
    /no payable amount/,
  ],
  [
    'an address that is retired',
    other,
    { ...otherMade, reserved: { address: 'address-retired', payableMicro: 25_000_014n } },
    /retired/,
  ],
  [
    'an address of another project',
    other,
    { ...otherMade, reserved: { address: 'address-b', payableMicro: 25_000_014n } },
    /of another project/,
  ],
  [
    'a second invoice for a retry',
    CREATE,
    { ...made('inv_2'), reserved: { address: A, payableMicro: 25_000_014n } },
    /not answered with its invoice/,
  ],
  [
    'a second invoice for an external id',
    { ...CREATE, idempotencyKey: 'k2' },
    made('inv_2'),
    /no conflict of externalId/,
  ],
  ['a refusal though something is free', other, failed(409, 'AMOUNT_UNAVAILABLE'), /payable amount is free/],
  ['an invoice that waits for longer than its project lets it', beyond, otherMade, /a deadline beyond/],
  [
    'an invoice that waits for longer than it was said',
    { ...other, said: { expiresInSeconds: 300 } },
    { ...otherMade, reserved: { address: A, payableMicro: 25_000_014n, createdMs: Date.parse(EXPIRES) - 1_800_000 } },
    /it waits until/,
  ],
  ['an invoice for invalid input', { ...other, isInvalid: true }, otherMade, /invalid input/],
  ['an invoice of another project', { kind: 'read', key: 1, invoiceId: 'inv_1' }, found('PENDING'), /of nobody/],
  ['a status that cannot be', { kind: 'read', key: 0, invoiceId: 'inv_1' }, found('PAID'), /another state/],
  ['an answer to a revoked key', { kind: 'read', key: 2, invoiceId: 'inv_1' }, found('PENDING'), /revoked/],
  [
    'an answer to a key without the scope',
    { kind: 'read', key: 4, invoiceId: 'inv_1' },
    found('PENDING'),
    /without the scope/,
  ],
  ['an answer beyond the limit', { kind: 'read', key: 3, invoiceId: 'inv_1' }, found('PENDING'), /no token/],
  [
    'a limit before it is reached',
    { kind: 'read', key: 0, invoiceId: 'inv_1' },
    failed(429, 'RATE_LIMITED'),
    /has a token/,
  ],
  ['a gap in the sequence of an invoice', FEED, feed(1, 3), /gap/],
  ['an event of what did not happen', FEED, feed(1), /last event/],
  ['an event of a type that was left out', { ...FEED, types: ['invoice.paid'] }, feed(1), /another type/],
])('the model refuses %s', (_what, operation, outcome, complaint) => {
  expect(judge(withInvoice(), operation, outcome)).toMatch(complaint);
});

const ORDER: Extract<Operation, { kind: 'order' }> = {
  ...{ kind: 'order', adapter: 0, orderId: 'a', amount: '180', isInvalid: false, isForged: false },
};
const ordered = (invoiceId: string, externalId = 'a'): Outcome => ({
  ...{ ...NOTHING, status: 200, code: '200', reserved: RESERVED },
  invoice: { invoiceId, externalId, status: 'undefined', expiresAt: EXPIRES },
});
const traded = (status: string): Outcome => ({
  ...ordered('inv_a'),
  reserved: null,
  invoice: { ...found(status).invoice, invoiceId: 'inv_a' } as never,
});
const TRADE: Operation = { kind: 'trade', adapter: 0, invoiceId: 'inv_a' };

test.each<[what: string, operation: Operation, outcome: Outcome, complaint: RegExp | null]>([
  ['the same order with its invoice', ORDER, ordered('inv_a'), null],
  ['the same order with another invoice', ORDER, ordered('inv_b'), /another invoice/],
  ['another order of the same id', { ...ORDER, amount: '180.00' }, ordered('inv_a'), /used again/],
  ['an order of the id of an invoice of the API', { ...ORDER, orderId: 'e' }, ordered('inv_b', 'e'), /used again/],
  ['an order at the amount of another one', { ...ORDER, orderId: 'b' }, ordered('inv_b', 'b'), /another invoice's/],
  ['an order at another rate', { ...ORDER, orderId: 'b', amount: '36' }, ordered('inv_b', 'b'), /no payable amount/],
  ['an order that somebody else signed', { ...ORDER, isForged: true }, ordered('inv_a'), /not there/],
  ['an order of an adapter that was switched off', { ...ORDER, adapter: 1 }, ordered('inv_a'), /not there/],
  ['an order of a wrong amount', { ...ORDER, isInvalid: true }, ordered('inv_a'), /wrong amount/],
  ['no room for an order while there is some', { ...ORDER, orderId: 'b' }, failed(200, '10005'), /is free/],
  ['the status of an order', TRADE, traded('1'), null],
  ['another status of an order', TRADE, traded('2'), /told as 2/],
  ['an order of the API', { ...TRADE, invoiceId: 'inv_1' }, found('1'), /somebody else/],
])('of an adapter the model judges %s', (_what, operation, outcome, complaint) => {
  const model = cloneModel(MODEL);
  // The order reserves the amount that the API's invoice doesn't.
  expect(judge(model, CREATE, made('inv_1', { address: A, payableMicro: 25_000_014n }))).toBeNull();
  expect(judge(model, ORDER, ordered('inv_a'))).toBeNull();
  const wrong = judge(model, operation, outcome);
  if (complaint === null) expect(wrong).toBeNull();
  else expect(wrong).toMatch(complaint);
});

test('of an old rate the model takes no order but one that has its invoice', () => {
  const model = cloneModel(MODEL);
  const RATE: Operation = { kind: 'rate', adapter: 0, isOld: true };
  expect(judge(model, ORDER, ordered('inv_a'))).toBeNull();
  expect(judge(model, RATE, NOTHING)).toBeNull();
  expect(judge(model, ORDER, ordered('inv_a'))).toBeNull();
  const another = { ...ORDER, orderId: 'b' };
  expect(judge(model, another, ordered('inv_b', 'b'))).toMatch(/at an old rate/);
  expect(judge(model, another, failed(200, '10006'))).toBeNull();
  expect(judge(model, { ...RATE, isOld: false }, NOTHING)).toBeNull();
  expect(judge(model, another, failed(200, '10006'))).toMatch(/was refused/);
});

const ADD: Extract<Operation, { act: 'add' }> = {
  ...{ kind: 'endpoint', key: 5, act: 'add', url: 'http://sink/0', isInvalid: false },
};
const told = (more: object = {}, status = 200): Outcome => ({
  ...{ ...NOTHING, status },
  endpoints: [{ endpointId: 'whe_1', url: 'http://sink/0', description: '', ...more }],
});
const OF_ONE = { kind: 'endpoint', key: 5, endpointId: 'whe_1' } as const;
const DOOR = { ...OF_ONE, endpointId: 'whe_a' };

test.each<[what: string, operation: Operation, outcome: Outcome, complaint: RegExp | null]>([
  ['the endpoint', { ...OF_ONE, act: 'show' }, told({ status: 'active' }), null],
  ['an endpoint that is disabled and should not be', { ...OF_ONE, act: 'show' }, told({ status: 'disabled' }), /told/],
  ['another URL', { ...OF_ONE, act: 'show' }, told({ url: 'http://sink/1' }), /told otherwise/],
  ['a change that was not made', { ...OF_ONE, act: 'change', description: 'x' }, told(), /told otherwise/],
  ['one that stays enabled', { ...OF_ONE, act: 'disable' }, told({ status: 'active' }), /told otherwise/],
  ['a second one of the same URL', ADD, told({ endpointId: 'whe_2' }, 201), /the same URL/],
  ['a wrong URL', { ...ADD, isInvalid: true }, told({}, 201), /wrong URL/],
  ['the endpoint of another project', { ...OF_ONE, key: 6, act: 'show' }, told(), /of nobody/],
  ['a list that lacks one', { kind: 'endpoint', key: 5, act: 'list' }, told(), /are listed/],
  ['an adapter that was disabled', { ...DOOR, act: 'disable' }, told({ endpointId: 'whe_a' }), /was taken/],
  ['an adapter that is shown', { ...DOOR, act: 'show' }, told({ endpointId: 'whe_a', url: 'adapter:epusdt' }), null],
  ['an answer beyond the limit of endpoints', { ...OF_ONE, key: 7, act: 'show' }, told(), /no token/],
  ['that limit', { ...OF_ONE, key: 7, act: 'show' }, failed(429, 'RATE_LIMITED'), null],
  ['a limit that is not reached', { ...OF_ONE, act: 'show' }, failed(429, 'RATE_LIMITED'), /has a token/],
  ['an answer to a key without the scope', { ...OF_ONE, key: 0, act: 'show' }, told(), /without the scope/],
])('of endpoints the model judges %s', (_what, operation, outcome, complaint) => {
  const model = cloneModel(MODEL);
  const keyOf = (project: number, endpointTokens: number) => ({
    ...{ project, isRevoked: false, tokens: 5, endpointTokens, scopes: ['webhooks' as const] },
  });
  model.keys.push(keyOf(0, 2), keyOf(1, 2), keyOf(0, 0));
  const door = { project: 0, url: 'adapter:epusdt', description: '', isDisabled: false, isOwn: false };
  model.endpoints.set('whe_a', door);
  expect(judge(model, ADD, told({}, 201))).toBeNull();
  const wrong = judge(model, operation, outcome);
  if (complaint === null) expect(wrong).toBeNull();
  else expect(wrong).toMatch(complaint);
});

const LIST: Extract<Operation, { kind: 'list' }> = {
  ...{ kind: 'list', key: 0, limit: 1, status: null, createdAfterMs: null, after: null },
};
const TRANSFERS: Extract<Operation, { kind: 'transfers' }> = {
  kind: 'transfers',
  key: 0,
  limit: 1,
  only: null,
  after: null,
};
const paged = (next: string | null, ...data: object[]): Outcome => ({ ...NOTHING, status: 200, page: { data, next } });
const [FIRST, SECOND] = ['inv_1', 'inv_2'].map((invoiceId, index) => {
  return { invoiceId, externalId: ['e', 'e2'][index], status: 'PENDING' };
}) as [object, object];
const transferTold = (txId: string) => ({
  ...{ transferId: `trf_${txId}`, kind: 'unmatched', txId, to: A, amount: '24.000000', invoice: null },
  ...{ reason: { code: 'DUST' }, nearestInvoice: null },
});

/** Two invoices, and two unmatched transfers. */
function withLists(): Model {
  const model = withInvoice();
  expect(judge(model, other, { ...otherMade, reserved: { address: A, payableMicro: 25_000_014n } })).toBeNull();
  const transfer = { kind: 'unmatched' as const, to: A, amountMicro: 24_000_000n, invoiceId: null, id: null };
  model.transfers[0] = ['a', 'b'].map((txId) => ({ ...transfer, txId }));
  return model;
}

test.each<[what: string, operation: Operation, outcome: Outcome, complaint: RegExp | null]>([
  ['takes the first page', LIST, paged('inv_1', FIRST), null],
  ['takes the last page', { ...LIST, after: 'inv_1' }, paged(null, SECOND), null],
  ['refuses one that begins later', LIST, paged(null, SECOND), /other invoices/],
  ['refuses one that begins again', { ...LIST, after: 'inv_1' }, paged('inv_1', FIRST), /other invoices/],
  ['refuses one that ends too early', LIST, paged(null, FIRST), /cursor/],
  ['refuses another order', { ...LIST, limit: 3 }, paged(null, SECOND, FIRST), /another order/],
  ['refuses invoices of another project', { ...LIST, key: 1 }, paged('inv_1', FIRST), /other invoices/],
  ['refuses another status', { ...LIST, status: 'PAID' }, paged(null, FIRST), /other invoices/],
  ['refuses what was created before', { ...LIST, createdAfterMs: Date.parse(EXPIRES) }, paged(null, FIRST), /other/],
  ['takes the first transfers', TRANSFERS, paged('trf_a', transferTold('a')), null],
  ['refuses a transfer that is left out', TRANSFERS, paged('trf_b', transferTold('b')), /other transfers/],
  ['refuses transfers that end too early', TRANSFERS, paged(null, transferTold('a')), /cursor/],
  ['refuses those of another project', { ...TRANSFERS, key: 1 }, paged('trf_a', transferTold('a')), /are listed/],
  [
    'refuses a nearest invoice of nobody',
    TRANSFERS,
    paged('trf_a', { ...transferTold('a'), nearestInvoice: { invoiceId: 'inv_9' } }),
    /another project/,
  ],
])('of a list the model %s', (_what, operation, outcome, complaint) => {
  const wrong = judge(withLists(), operation, outcome);
  if (complaint === null) expect(wrong).toBeNull();
  else expect(wrong).toMatch(complaint);
});

test('two that run at once may come in either order, but not both first', () => {
  const second = { ...CREATE, idempotencyKey: 'k2' };
  const refused: Outcome = {
    ...failed(409, 'IDEMPOTENCY_CONFLICT'),
    conflict: { rule: 'externalId', fields: [], invoiceId: 'inv_1' },
  };
  const won = { operation: CREATE, outcome: made() };
  expect(linearize(MODEL, [{ operation: second, outcome: refused }, won])).toHaveProperty('model');
  const also = {
    operation: second,
    outcome: { ...made('inv_2'), reserved: { address: A, payableMicro: 25_000_014n } },
  };
  expect(linearize(MODEL, [won, also])).toHaveProperty('wrong');
});

test('the code words of the model are those that the documentation shows', () => {
  expect([25_000_009n, 25_000_014n, 25_000_023n, 25_009_994n].every(isCodeWord)).toBe(true);
  expect([25_000_000n, 25_000_008n, 25_000_010n].some(isCodeWord)).toBe(false);
});

test('a withdrawal is taken once, of the own invoice, unless it is paid', () => {
  const ask = { kind: 'withdraw', key: 0, invoiceId: 'inv_1' } as const;
  const at = '2026-09-01T00:10:00.000Z';
  const done = { ...made(), status: 200, withdrawnAt: at };
  const model = withInvoice();
  expect(judge(model, ask, { ...done, withdrawnAt: null })).toContain('otherwise');
  expect(judge(model, { ...ask, key: 1 }, done)).toContain('of nobody');
  expect(judge(model, ask, done)).toBeNull();
  expect(judge(model, ask, done)).toBeNull();
  expect(judge(model, ask, { ...done, withdrawnAt: '2026-09-01T00:10:00.001Z' })).toContain('otherwise');
  const paid = withInvoice();
  const invoice = paid.invoices.get('inv_1');
  if (invoice !== undefined) paid.invoices.set('inv_1', { ...invoice, status: 'PAID' });
  expect(judge(paid, ask, done)).toContain('a paid invoice');
  expect(judge(paid, ask, { ...NOTHING, status: 409, code: 'INVOICE_PAID' })).toBeNull();
});
