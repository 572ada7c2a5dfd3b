import { once } from 'node:events';
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { readRunningPostgres } from '../../src/core/store/embedded/connection.ts';
import { payWith } from '../../src/developer/sandbox/pay-invoice.ts';
import { withSandbox } from '../../src/developer/sandbox/sandbox-file.ts';
import { SCENARIO_NAMES, type Scenario, scenarioOf } from '../../src/developer/scenarios/scenarios.ts';
import { askNode } from '../support/devnet.ts';
import { createSandboxInvoice, runInSandbox, type SandboxProcess, startSandboxProcess } from '../support/sandbox.ts';
import { call, eventually, type Json } from '../support/service.ts';
import { someCases } from '../support/some-cases.ts';

let dataDir: string;
let sandbox: SandboxProcess;
let client: pg.Client;
beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'quittance-scenarios-'));
  await chmod(dataDir, 0o711);
  // With this many producers, a block can be orphaned for a second, even on a busy machine.
  sandbox = await startSandboxProcess(dataDir, { QUITTANCE_DEVNET_PRODUCERS: '9' });
  client = new pg.Client({ ...(await readRunningPostgres(dataDir)) });
  await client.connect();
});
afterAll(async () => {
  await client.end();
  await sandbox.end('SIGINT');
  await rm(dataDir, { recursive: true, force: true });
});

const pay = (invoice: string, scenario: string) =>
  runInSandbox(dataDir, 'sandbox', 'pay', invoice, '--scenario', scenario);
const create = (externalId: string, amount = '25.00') => createSandboxInvoice(sandbox.file, externalId, amount);
const read = async (id: string) =>
  (
    await call(`${sandbox.file.baseUrl}/v1/invoices/${id}?expand=payment`, {
      headers: { 'x-api-key': sandbox.file.apiKey },
    })
  ).body;
const untilPaid = (id: string) =>
  eventually(
    () => read(id),
    ({ status }) => status === 'PAID',
  );
const inboxOf = async (query = '') => (await call(`${sandbox.file.inboxUrl}${query}`)).body.data as Json[];

/** Waits until the watcher has recorded the block of a transaction. */
async function untilRecorded(txId: string): Promise<void> {
  const info = await eventually(
    () => askNode<Json>(sandbox.file.nodeUrl, '/walletsolidity/gettransactioninfobyid', { value: txId }),
    ({ id }) => id === txId,
  );
  await eventually(
    () => client.query<{ number: number }>('select solid_number::int as number from chain_cursors'),
    ({ rows: [cursor] }) => (cursor?.number ?? 0) >= info.blockNumber,
  );
}

/** Returns the ledger's transfers of these transactions, in chain order. */
async function ledgerOf(
  sent: readonly { txId: string }[],
): Promise<{ kind: string; micro: bigint; address: string }[]> {
  const { rows } = await client.query(
    `select t.kind, t.amount_micro, a.address from transfers t join addresses a on a.id = t.address_id
     where encode(t.tx_id, 'hex') = any ($1) order by t.id`,
    [sent.map(({ txId }) => txId)],
  );
  return rows.map(({ kind, amount_micro, address }) => ({ kind, micro: BigInt(amount_micro), address }));
}

const microOf = (amount: string) => BigInt(amount.replace('.', ''));

// Each of them is paid again below, over HTTP.
test.each(someCases(SCENARIO_NAMES, 3))(
  'sandbox pay --scenario %s does what its name says, and says what it does',
  async (scenario) => {
    const { invoiceId } = await create(`order-${scenario}`);
    const { payment } = await read(invoiceId);
    const paid = await pay(invoiceId, scenario);
    expect(paid).toMatchObject({ scenario, invoices: expect.arrayContaining([invoiceId]) });
    const payable = microOf(payment.payableAmount);
    const { kinds, needs, amountOf = () => payable } = scenarioOf(scenario);
    const micro = needs === 'requested amount' ? 25_000_000n : amountOf(payable);
    const recorded = needs === 'fork' ? [] : kinds.map((kind) => [kind, micro]);
    if (scenario === 'orphaned') {
      // With blocks of 200 ms, a busy machine may not see the payment before it's gone.
      expect(paid.orphaned).toEqual({
        blockNumber: expect.any(Number),
        blocks: expect.any(Number),
        wasConfirming: expect.any(Boolean),
      });
      const gone = await askNode(sandbox.file.nodeUrl, '/wallet/gettransactionbyid', { value: paid.sent[0].txId });
      expect(gone).toEqual({});
      await eventually(
        () => read(invoiceId),
        ({ status }) => status === 'PENDING',
      );
    } else {
      for (const { txId } of paid.sent) await untilRecorded(txId);
    }
    const ledger = await ledgerOf(paid.sent);
    expect((await read(invoiceId)).status).toBe(recorded.some(([kind]) => kind === 'matched') ? 'PAID' : 'PENDING');
    if (scenario === 'two-in-one') {
      for (const id of paid.invoices) await untilPaid(id);
      expect(ledger.map(({ kind }) => kind)).toEqual(['matched', 'matched']);
      return;
    }
    expect(ledger.map(({ kind, micro }) => [kind, micro])).toEqual(recorded);
    const recipient = scenario === 'to-retired' ? sandbox.file.retiredAddress : payment.address;
    for (const { address } of ledger) expect(address).toBe(recipient);
    const failure = { reverted: 'REVERT', 'out-of-energy': 'OUT_OF_ENERGY' }[scenario as string];
    if (failure !== undefined) {
      const ask = (path: string) => askNode<Json>(sandbox.file.nodeUrl, path, { value: paid.sent[0].txId });
      expect(await ask('/walletsolidity/gettransactionbyid')).toMatchObject({ ret: [{ contractRet: failure }] });
      const info = await ask('/walletsolidity/gettransactioninfobyid');
      expect(info).toMatchObject({ result: 'FAILED', receipt: { result: failure }, fee: expect.any(Number) });
      expect(info).not.toHaveProperty('log');
    }
    const reported = { matched: 'PAID', duplicate: 'duplicate', unmatched: 'unmatched' };
    const [kind = 'none'] = ledger.map(({ kind }) => kind).slice(-1);
    if (kind !== 'none') expect(paid.outcome).toContain(reported[kind as keyof typeof reported]);
    else expect(paid.outcome).toMatch(/no transfer is recorded$|the payment no longer exists/);
  },
);

test('late brings the deadline forward, waits for the expiry, and the page, the API and the events agree on it', async () => {
  const { invoiceId, checkoutUrl, expiresAt } = await create('order-late-by-url');
  const { invoices } = await pay(checkoutUrl, 'late');
  expect(invoices).toEqual([checkoutUrl]);
  const paid = await untilPaid(invoiceId);
  expect(Date.parse(paid.expiresAt)).toBeLessThan(Date.parse(expiresAt) - 60_000);
  expect(paid.payment.transaction).toMatchObject({ late: true });
  expect((await call(`${checkoutUrl}/status`)).body).toMatchObject({ state: 'paid', expiresAt: paid.expiresAt });
  const reported = await eventually(
    () => inboxOf(`?invoiceId=${invoiceId}`),
    (all) => all.some(({ type }) => type === 'invoice.paid'),
  );
  expect(reported[0].type).toBe('invoice.expired');
  for (const { body } of reported) expect(body.data.expiresAt).toBe(paid.expiresAt);
  expect(reported.at(-1)?.body.data.payment.transaction).toMatchObject({ late: true });
  await expect(pay(invoiceId, 'late')).rejects.toMatchObject({
    code: 4,
    stdout: expect.stringContaining('already has a payment (PAID)'),
  });
});

test('a transfer to the retired address is told as unmatched, and no invoice is put on that address', async () => {
  const { retiredAddress } = sandbox.file;
  const { invoiceId } = await create('order-to-retired-address');
  const { sent } = await pay(invoiceId, 'to-retired');
  const reported = await eventually(
    async () => (await inboxOf()).filter(({ body }) => body.data.txId === sent[0].txId),
    (all) => all.length > 0,
  );
  expect(reported[0].body.data.to).toBe(retiredAddress);
  expect(reported.map(({ type }) => type)).toEqual(['transfer.unmatched']);
  const { rows } = await client.query(
    `select a.address, a.retired_at is null as in_use, count(i.id)::int as invoices
     from addresses a left join invoices i on i.address_id = a.id group by a.id order by a.position`,
  );
  expect(rows.filter(({ in_use }) => !in_use)).toEqual([{ address: retiredAddress, in_use: false, invoices: 0 }]);
  expect(rows.map(({ address }) => address)).toEqual([...sandbox.file.addresses, retiredAddress]);
});

test('a second payment of a paid invoice is announced as a duplicate', async () => {
  const { invoiceId } = await create('order-paid-again');
  await pay(invoiceId, 'exact');
  await untilPaid(invoiceId);
  const again = await pay('order-paid-again', 'contract');
  expect(again.outcome).toContain('as a duplicate');
  await untilRecorded(again.sent[0].txId);
  expect(await ledgerOf(again.sent)).toMatchObject([{ kind: 'duplicate' }]);
});

test.each(['inv_2026_001', 'inv_01h455vb4pex5vsknk084sn02r', 'https://shop.example/c/42', 'a/c/2NEpo7TZRRrLZSi2V'])(
  'an external id that looks like an invoice id or a link is found: %s',
  async (externalId) => {
    const { invoiceId } = await create(externalId);
    expect(await pay(externalId, 'short')).toMatchObject({ invoices: [invoiceId] });
  },
);

test('two-in-one never pays an existing invoice as its new second one', async () => {
  const [first, existing] = [await create('order-first-of-two'), await create('order-existing')];
  const conflict = JSON.stringify({ code: 'IDEMPOTENCY_CONFLICT', detail: 'it exists', invoiceId: existing.invoiceId });
  const api = createServer((_request, response) => void response.writeHead(409).end(conflict)).listen(0, '127.0.0.1');
  onTestFinished(() => void api.close());
  await once(api, 'listening');
  const baseUrl = `http://127.0.0.1:${(api.address() as AddressInfo).port}`;
  const options = { target: first.invoiceId, scenario: 'two-in-one', withInvoice: null } as const;
  await expect(withSandbox(dataDir, (opened) => payWith({ ...opened, baseUrl }, options))).rejects.toMatchObject({
    code: 'SANDBOX_REFUSED',
    message: expect.stringContaining('it exists'),
  });
});

test('an unknown invoice is not found, however it is named', async () => {
  const unknown = ['inv_01h455vb4pex5vsknk084sn02q', 'no-such-order', `${sandbox.file.baseUrl}/c/2NEpo7TZRRrLZSi2U`];
  const refusal = { code: 3, stdout: expect.stringMatching(/the sandbox (demo project )?has no invoice/) };
  await Promise.all(unknown.map((target) => expect(pay(target, 'exact')).rejects.toMatchObject(refusal)));
});

test('an invoice of another project is paid by its checkout link, and a mistake that hits another invoice is foretold as such', async () => {
  const quittance = (...args: string[]) => runInSandbox(dataDir, ...args);
  const shop = ['--name', 'Exact shop', '--network', 'devnet', '--policy', 'exact'];
  const { projectId } = await quittance('project', 'create', ...shop);
  const { apiKey } = await quittance('key', 'create', '--project', projectId);
  await quittance('address', 'add', '--project', projectId, 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH');
  const createExact = (externalId: string, amount: string) =>
    createSandboxInvoice({ ...sandbox.file, apiKey }, externalId, amount);
  const [hit, meant] = [await createExact('exact-1', '12.00'), await createExact('exact-2', '12.01')];
  await expect(pay(meant.invoiceId, 'exact')).rejects.toMatchObject({
    code: 3,
    stdout: expect.stringContaining('use its checkout page URL'),
  });
  const { outcome, sent } = await pay(meant.checkoutUrl, 'rounded');
  expect(outcome).toContain(`invoice ${hit.invoiceId} asks for exactly this amount at the same address`);
  expect(outcome).not.toContain('unmatched');
  await untilRecorded(sent[0].txId);
  expect(await ledgerOf(sent)).toMatchObject([{ kind: 'matched', micro: 12_000_000n }]);
  expect((await pay(meant.checkoutUrl, 'short')).outcome).toContain('as unmatched');
});

test('a checkout link whose payment is there is not paid again by mistake', async () => {
  const { invoiceId, checkoutUrl } = await create('order-link-paid');
  await pay(checkoutUrl, 'exact');
  await untilPaid(invoiceId);
  await expect(pay(checkoutUrl, 'exact')).rejects.toMatchObject({
    code: 4,
    stdout: expect.stringContaining('use its invoiceId'),
  });
});

const post = async (path: string, body: unknown, headers: Record<string, string> = {}) =>
  call(sandbox.file.baseUrl + path, {
    method: 'POST',
    headers: { 'x-api-key': sandbox.file.apiKey, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });

test('over HTTP: an invoice is paid, another wrongly, and the shop is told why it did not pay', async () => {
  const [paid, short] = [await create('http-exact'), await create('http-fee', '31.00')];
  const exact = await post('/sandbox/pay', { invoice: 'http-exact' });
  expect(exact).toMatchObject({ status: 200, body: { scenario: 'exact', invoices: [paid.invoiceId] } });
  const fee = await post('/sandbox/pay', { invoice: short.invoiceId, scenario: 'fee' });
  expect(fee.body.outcome).toContain('a fee was deducted from it');
  expect((await untilPaid(paid.invoiceId)).payment.transaction.txId).toBe(exact.body.sent[0].txId);
  const headers = { 'x-api-key': sandbox.file.apiKey };
  const told = await eventually(
    async () => {
      const { body } = await call(`${sandbox.file.baseUrl}/v1/transfers?limit=100`, { headers });
      return body.data.find(({ txId }: Json) => txId === fee.body.sent[0].txId);
    },
    (found) => found !== undefined,
  );
  expect(told).toMatchObject({
    reason: { code: 'FEE_DEDUCTED' },
    nearestInvoice: { externalId: 'http-fee', invoiceId: short.invoiceId },
  });
});

/** Returns what the API says about a transaction: the invoice's payment, the list of unmatched transfers, or the look-up of its page. */
async function causeOf({ invoiceId, checkoutUrl }: Json, txId: string): Promise<string> {
  const { payment } = await read(invoiceId);
  if (payment.transaction?.txId === txId) return payment.transaction.late ? 'payment, late' : 'payment';
  const headers = { 'x-api-key': sandbox.file.apiKey };
  const { body } = await call(`${sandbox.file.baseUrl}/v1/transfers?limit=100`, { headers });
  const transfer = body.data.find((each: Json) => each.txId === txId);
  if (transfer !== undefined) {
    const isOurs = [transfer.invoice, transfer.nearestInvoice].some((each) => each?.invoiceId === invoiceId);
    return `${transfer.kind}: ${transfer.reason?.code}${isOurs ? '' : ', of no invoice'}`;
  }
  const answer = await call(`${checkoutUrl}/lookup`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ transaction: txId }),
  });
  return `look-up: ${answer.body.code}${answer.body.why === undefined ? '' : `, ${answer.body.why}`}`;
}

test('over HTTP: the API says of each scenario what came of it and why, as the documentation has it', async () => {
  const payFor = async (scenario: Scenario) => {
    // No price becomes another through a usual mistake, and only one is below an exchange's minimum.
    const price = scenario === 'below-minimum' ? 7 : 101 + 2 * SCENARIO_NAMES.indexOf(scenario);
    const invoice = await create(`cause-${scenario}`, `${price}.00`);
    const { body } = await post('/sandbox/pay', { invoice: invoice.invoiceId, scenario });
    return { scenario, invoice, txId: body.sent.at(-1).txId };
  };
  const paid: Awaited<ReturnType<typeof payFor>>[] = [];
  for (const scenario of SCENARIO_NAMES) if (scenario !== 'orphaned') paid.push(await payFor(scenario));
  for (const { txId } of paid) await untilRecorded(txId);
  // Runs last, because it orphans a block.
  const orphaned = await payFor('orphaned');
  await eventually(
    () => read(orphaned.invoice.invoiceId),
    ({ status }) => status === 'PENDING',
  );
  const page = await readFile(new URL('../../docs/guides/listen.md', import.meta.url), 'utf8');
  const rows = page.split('\n').filter((line) => line.startsWith('|'));
  for (const { scenario, invoice, txId } of [...paid, orphaned]) {
    const cause = await causeOf(invoice, txId);
    const { cause: expected, kinds } = scenarioOf(scenario);
    const place = { payment: '', transfers: `${kinds.at(-1)}: `, lookup: 'look-up: ' }[expected.at];
    expect(
      expected.codes.map((each) => place + each),
      scenario,
    ).toContain(cause);
    const [, code = 'payment.transaction'] = /: (\w+)/.exec(cause) ?? [];
    expect(rows.find((row) => row.includes(`\`${scenario}\``))).toContain(`\`${code}\``);
  }
});

test('over HTTP: deadlines come forward, and what waits expires with the next block', async () => {
  const { invoiceId } = await create('http-expired', '33.00');
  const { status, body } = await post('/sandbox/advance', { seconds: 86_400 });
  expect({ status, isOne: body.invoices >= 1 }).toEqual({ status: 200, isOne: true });
  await eventually(
    () => read(invoiceId),
    (invoice) => invoice.status === 'EXPIRED',
  );
});

test.each([
  ['/sandbox/pay', {}, 400, 'INVALID_REQUEST', ['invoice']],
  ['/sandbox/pay', { invoice: 7, scenario: 'x', more: 1 }, 400, 'INVALID_REQUEST', ['invoice', 'more', 'scenario']],
  ['/sandbox/pay', { invoice: '' }, 400, 'INVALID_REQUEST', ['invoice']],
  ['/sandbox/pay', { invoice: 'nobody' }, 404, 'INVOICE_NOT_FOUND', undefined],
  ['/sandbox/projects', { name: '', more: 1 }, 400, 'INVALID_REQUEST', ['more']],
  ['/sandbox/projects', { name: 'x'.repeat(101) }, 400, 'INVALID_REQUEST', ['name']],
  ['/sandbox/projects', { name: 7, webhookUrl: 8 }, 400, 'INVALID_REQUEST', ['name', 'webhookUrl']],
  ['/sandbox/projects', { webhookUrl: 'shop.example.com' }, 400, 'INVALID_REQUEST', ['webhookUrl']],
  ['/sandbox/pay', 'exact', 400, 'INVALID_REQUEST', ['']],
  ['/sandbox/advance', { seconds: -1 }, 400, 'INVALID_REQUEST', ['seconds']],
  ['/sandbox/advance', { seconds: '60' }, 400, 'INVALID_REQUEST', ['seconds']],
  ['/sandbox/advance', { seconds: 1e9 }, 400, 'INVALID_REQUEST', ['seconds']],
])('over HTTP %s refuses %j', async (path, body, status, code, fields) => {
  const answer = await post(path, body);
  expect({ status: answer.status, code: answer.body.code }).toEqual({ status, code });
  expect(answer.body.errors?.map(({ field }: Json) => field).sort()).toEqual(fields);
});

test('over HTTP it takes a key and JSON, so that no page that somebody looks at can do it', async () => {
  expect((await post('/sandbox/pay', {}, { 'x-api-key': 'x' })).status).toBe(401);
  expect((await post('/sandbox/pay', {}, { 'content-type': 'text/plain' })).status).toBe(415);
});

type Fresh = { projectId: string; apiKey: string; endpoint: { url: string; secret: string } | null };

const startProject = async (body: object = {}): Promise<Fresh> => {
  const answer = await post('/sandbox/projects', body);
  expect(answer.status).toBe(201);
  return answer.body;
};
const of = ({ apiKey }: Fresh) => ({
  create: (externalId: string) => createSandboxInvoice({ ...sandbox.file, apiKey }, externalId),
  post: (path: string, body: unknown) => post(path, body, { 'x-api-key': apiKey }),
  get: async (path: string) => call(sandbox.file.baseUrl + path, { headers: { 'x-api-key': apiKey } }),
  end: () => call(`${sandbox.file.baseUrl}/sandbox/projects`, { method: 'DELETE', headers: { 'x-api-key': apiKey } }),
});

/** A shop's test suite: it pays an order, lets another expire, pays a third one wrongly, and reports what it saw. */
async function runSuite(name: string) {
  const receiver = await startReceiver();
  const fresh = await startProject({ name, webhookUrl: receiver.url });
  const project = of(fresh);
  const [paid, expired, retired] = [
    await project.create('order-1'),
    await project.create('order-2'),
    await project.create('order-3'),
  ];
  expect((await project.post('/sandbox/pay', { invoice: 'order-1' })).status).toBe(200);
  await eventually(
    () => project.get('/v1/invoices?externalId=order-1'),
    ({ body }) => body.data[0].status === 'PAID',
  );
  await project.post('/sandbox/pay', { invoice: retired.checkoutUrl, scenario: 'to-retired' });
  await eventually(
    () => project.get('/v1/transfers'),
    ({ body }) => body.data.length > 0,
  );
  const advanced = (await project.post('/sandbox/advance', { seconds: 86_400 })).body;
  const events = await eventually(
    () => project.get('/v1/events?limit=100&types=invoice.paid,invoice.expired,transfer.unmatched'),
    ({ body }) => body.data.length >= 4,
  );
  await eventually(
    async () => receiver.types(),
    (types) => ['invoice.expired', 'invoice.paid', 'transfer.unmatched'].every((type) => types.includes(type)),
  );
  await receiver.stop();
  const told = new Set([paid, expired, retired].map(({ invoiceId }) => invoiceId));
  const strangers = events.body.data.filter(({ data }: Json) => data.invoiceId && !told.has(data.invoiceId));
  const kinds = events.body.data.map(({ type }: Json) => type).sort();
  return { fresh, advanced, kinds, strangers, paid };
}

async function startReceiver() {
  const types: string[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    types.push(JSON.parse(Buffer.concat(chunks).toString()).type);
    response.writeHead(204).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const stop = async () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${port}/hook`, types: () => types, stop };
}

test('two test suites that run at once on one sandbox use the same order ids and never see each other', async () => {
  const bystander = await create('waits-meanwhile', '55.00');
  const suites = await Promise.all([runSuite('first'), runSuite('second')]);
  for (const { advanced, kinds, strangers } of suites) {
    expect({ advanced, kinds, strangers }).toEqual({
      advanced: { invoices: 2 },
      kinds: ['invoice.expired', 'invoice.expired', 'invoice.paid', 'transfer.unmatched'],
      strangers: [],
    });
  }
  expect(await read(bystander.invoiceId)).toMatchObject({ status: 'PENDING', expiresAt: bystander.expiresAt });
  const [first, second] = suites;
  const theirs = { ...(first?.paid as Json) };
  for (const invoice of [
    theirs.invoiceId,
    theirs.checkoutUrl,
    bystander.invoiceId,
    bystander.checkoutUrl,
    'waits-meanwhile',
  ]) {
    const answer = await of(second?.fresh as Fresh).post('/sandbox/pay', { invoice });
    expect({ invoice, status: answer.status, code: answer.body.code }).toEqual({
      ...{ invoice, status: 404, code: 'INVOICE_NOT_FOUND' },
    });
  }
});

test('an orphaned block takes only the payment that was asked for: the other one of the block comes again', async () => {
  const project = of(await startProject());
  const [kept, gone] = [await project.create('kept'), await create('gone', '77.00')];
  const [, orphaned] = await Promise.all([
    project.post('/sandbox/pay', { invoice: 'kept' }),
    post('/sandbox/pay', { invoice: gone.invoiceId, scenario: 'orphaned' }),
  ]);
  expect(orphaned.status).toBe(200);
  await eventually(
    () => project.get(`/v1/invoices/${kept.invoiceId}`),
    ({ body }) => body.status === 'PAID',
  );
  expect((await read(gone.invoiceId)).status).toBe('PENDING');
});

test('a project that has ended is known to no key, and the demo project stays', async () => {
  const project = of(await startProject({ webhookUrl: 'http://127.0.0.1:9/hook' }));
  expect((await project.get('/v1/webhook-endpoints')).body.data).toHaveLength(1);
  expect((await project.end()).status).toBe(200);
  expect([(await project.end()).status, (await project.get('/v1/invoices')).status]).toEqual([401, 401]);
  const demo = await of(sandbox.file as unknown as Fresh).end();
  expect(demo).toMatchObject({ status: 400, body: { code: 'INVALID_REQUEST' } });
  expect(demo.body.detail).toContain('belongs to the demo project, which cannot be ended');
});

test('a project of a sandbox has the limits of production', async () => {
  const project = of(await startProject());
  const answers: Json[] = [];
  for (let order = 1; order <= 121; order += 1) answers.push(await project.create(`flood-${order}`));
  expect(answers.filter(({ code }) => code === 'TOO_MANY_UNPAID')).toHaveLength(1);
  expect(await runInSandbox(dataDir, 'project', 'show', sandbox.file.projectId)).toMatchObject({
    ...{ maxUnpaid: 600, maxUnpaidPerMinute: 120 },
  });
});
