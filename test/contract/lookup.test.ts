import { randomBytes } from 'node:crypto';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { accountToAddress } from '@quittance/tron/address';
import { accountFromPublicKey } from '@quittance/tron/public-key';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { uuidV7 } from '../../src/core/domain/ids.ts';
import { formatAmount, microUsdt } from '../../src/core/domain/money.ts';
import { insertAddress } from '../../src/core/store/ledger/addresses.ts';
import { payScenario } from '../../src/developer/scenarios/pay-scenario.ts';
import type { Scenario } from '../../src/developer/scenarios/scenarios.ts';
import { untilRecorded, withApiOnly } from '../support/lookup-flow.ts';
import {
  createTestProject,
  eventually,
  startTestService,
  type TestProject,
  type TestService,
  untilStatus,
} from '../support/service.ts';
import { created, ask as exchange, expectNoTrace, expectProblem, get, order, type Reply } from './ask.ts';
import { runSql } from './sql.ts';

/** Every cause that a payer may be shown, according to the decision record. */
const CODES = [
  'paid',
  'confirming',
  'exact_but_already_paid',
  'exact_not_yet_examined',
  'exact_not_recorded',
  'exact_not_confirmed',
  'before_invoice',
  'short',
  'over',
  'other_address',
  'other_token',
  'failed',
  'no_usdt_transfer',
  'not_found',
  'orphaned',
  'other_network',
  'not_tron',
  'not_a_transaction_id',
  'unavailable',
];

type Invoice = { invoiceId: string; path: string; address: string; amountMicro: bigint; amount: string };

let service: TestService;
beforeAll(async () => {
  // All payers share one client address here.
  service = await startTestService({ addressCount: 2, config: { lookupsPerMinute: 600 } });
});
beforeEach(() => {
  // Restores the limits used up by the previous test.
  service.clock.advance(120_000);
});
afterAll(() => service.stop());

const contracts = () => ({
  usdt: service.devnet.usdtContract,
  fakeUsdt: service.devnet.fakeUsdtContract,
  multisend: service.devnet.multisendContract,
});

async function newInvoice(amount = '25.00', project: TestProject = service.project): Promise<Invoice> {
  const { invoiceId, checkoutUrl } = await created(service, { project, body: order({ amount }) });
  const { payment } = (await get(service, `/v1/invoices/${invoiceId}?expand=payment`, project)).body;
  const amountMicro = BigInt(payment.payableAmount.replace('.', ''));
  const path = new URL(checkoutUrl).pathname;
  return { invoiceId, path, address: payment.address, amountMicro, amount: payment.payableAmount };
}

const usdt = (micro: bigint) => formatAmount(microUsdt(micro));

const newAccount = () => accountFromPublicKey(secp256k1.getPublicKey(secp256k1.utils.randomSecretKey(), false));

/** Creates a project of policy exact with one address, so that the test decides the payable amounts. */
async function exactShop(account = newAccount()): Promise<TestProject> {
  const project = await createTestProject(service.db, { addressCount: 0 });
  await runSql(service, "update projects set policy = 'exact' where id = $1", [project.id]);
  const [id, address] = [uuidV7(Date.now(), randomBytes(10)), accountToAddress(account)];
  await insertAddress(service.db, { id, projectId: project.id, account, address, policy: 'exact' });
  return { ...project, addresses: [address] };
}

async function untilStatusOf(project: TestProject, invoiceId: string, status: string): Promise<void> {
  await eventually(
    () => get(service, `/v1/invoices/${invoiceId}`, project),
    ({ body }) => body.status === status,
  );
}

/** Removes everything that differs between any two answers. */
function without({ status, headers, text, body }: Reply): object {
  const { date: _date, 'x-request-id': _id, ...rest } = headers;
  return { status, headers: rest, text: text.replace(body?.requestId ?? '', '') };
}

async function pay(invoice: Invoice, scenario: Scenario, requestedMicro?: bigint): Promise<string> {
  const { txIds } = await payScenario(service.payer, {
    ...{ scenario, contracts: contracts(), invoice },
    ...(requestedMicro === undefined ? {} : { requestedMicro }),
  });
  return txIds.at(-1) ?? '';
}

function send(to: string, amountMicro: bigint): Promise<string> {
  return service.payer.transfer({ contract: contracts().usdt, to, amountMicro });
}

async function settle(): Promise<void> {
  service.devnet.mineUntilSolid();
  await untilRecorded(service);
}

/** Sends the same request as a page. `url` may be another process. */
function lookUp(invoice: Pick<Invoice, 'path'>, transaction: unknown, url = service.url): Promise<Reply> {
  return exchange(`${url}${invoice.path}/lookup`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-forwarded-for': `2001:db8:${randomBytes(2).toString('hex')}:1::1`,
    },
    body: JSON.stringify({ transaction }),
  });
}

async function answerTo(invoice: Invoice, transaction: unknown): Promise<Reply['body']> {
  const reply = await lookUp(invoice, transaction);
  expect(reply.status, reply.text).toBe(200);
  expect(CODES).toContain(reply.body.code);
  expect(reply.text.length).toBeLessThan(2000);
  return reply.body;
}

const PLACED = { blockNumber: expect.any(Number), blockTime: expect.stringMatching(/^\d{4}-.*Z$/) };

describe('an answer out of a closed set of causes, each with its figures', () => {
  test('of money that came: paid, paid twice, short, over, to somebody else, another token, failed, nothing', async () => {
    const [paid, open] = [await newInvoice('25.00'), await newInvoice('61.00')];
    const first = await pay(paid, 'exact');
    const second = await pay(paid, 'exact');
    const sent: [transaction: string, reported: object][] = [
      [
        await pay(open, 'fee'),
        {
          code: 'short',
          arrived: usdt(open.amountMicro - 1_000_000n),
          expected: open.amount,
          by: '1.000000',
          likely: { kind: 'fee' },
        },
      ],
      [
        await pay(open, 'over'),
        { code: 'over', arrived: usdt(open.amountMicro + 1_000_000n), expected: open.amount, by: '1.000000' },
      ],
      [
        await pay(open, 'requested-amount', 61_000_000n),
        {
          code: 'short',
          arrived: '61.000000',
          expected: open.amount,
          by: usdt(open.amountMicro - 61_000_000n),
          likely: { kind: 'requested_amount' },
        },
      ],
      [await pay(open, 'typo'), { expected: open.amount, likely: { kind: 'one_digit' } }],
      [await pay(open, 'swapped'), { expected: open.amount, likely: { kind: 'swapped_digits' } }],
      [
        await pay(open, 'wrong-address'),
        { code: 'other_address', amount: open.amount, to: expect.stringMatching(/^T/) },
      ],
      [await pay(open, 'fake-token'), { code: 'other_token', contract: contracts().fakeUsdt }],
      [await pay(open, 'reverted'), { code: 'failed', why: 'reverted' }],
      [await pay(open, 'out-of-energy'), { code: 'failed', why: 'out_of_energy' }],
      [
        await service.payer.sendTrx({ to: open.address, amountSun: 2_500_000n }),
        { code: 'no_usdt_transfer', moved: 'trx', amountTrx: expect.stringMatching(/^2\.5/) },
      ],
    ];
    await settle();
    expect(await answerTo(paid, first)).toEqual({ code: 'paid', amount: paid.amount, ...PLACED });
    expect(await answerTo(paid, second)).toEqual({
      ...{ code: 'exact_but_already_paid', amount: paid.amount, paidBy: first, ...PLACED },
    });
    for (const [index, [transaction, reported]] of sent.entries()) {
      // One link answers ten questions at once.
      if (index === 5) service.clock.advance(120_000);
      expect(await answerTo(open, transaction)).toMatchObject({ ...reported, ...PLACED });
    }
    expect((await get(service, `/v1/invoices/${open.invoiceId}`)).body.status).toBe('PENDING');
  });

  test('of money on its way: not found, then confirming, then paid; an orphaned block takes it back', async () => {
    const invoice = await newInvoice();
    const transaction = await pay(invoice, 'exact');
    expect(await answerTo(invoice, transaction)).toEqual({ code: 'not_found', checkAgainSeconds: expect.any(Number) });
    service.devnet.mine();
    await untilStatus(service, invoice.invoiceId, 'CONFIRMING');
    service.clock.advance(60_000);
    const confirming = await answerTo(invoice, transaction);
    expect(confirming).toMatchObject({ code: 'confirming', amount: invoice.amount, ...PLACED });
    expect(confirming.confirmations).toBeLessThan(confirming.required);
    service.devnet.fork({ depth: 1, keepTransactions: false });
    await untilStatus(service, invoice.invoiceId, 'PENDING');
    service.clock.advance(60_000);
    // Tools that use JSON-RPC write ids with 0x.
    for (const id of [transaction, `0x${transaction}`]) expect((await answerTo(invoice, id)).code).toBe('orphaned');
    // An unknown transaction, and this transaction on another invoice's page, get no information.
    expect((await answerTo(invoice, 'fe'.repeat(32))).code).toBe('not_found');
    expect((await answerTo(await newInvoice(), transaction)).code).toBe('not_found');
    const again = await pay(invoice, 'exact');
    await settle();
    service.clock.advance(60_000);
    expect((await answerTo(invoice, again)).code).toBe('paid');
  });

  test('of what is no transaction of TRON', async () => {
    const invoice = await newInvoice();
    const asked: [unknown, object][] = [
      [`https://etherscan.io/tx/0x${'ab'.repeat(32)}`, { code: 'not_tron', looksLike: 'ethereum' }],
      ['ab'.repeat(31), { code: 'not_a_transaction_id', looksLike: 'part-of-an-id', characters: 62 }],
      [invoice.address, { code: 'not_a_transaction_id', looksLike: 'address' }],
      ['https://example.com/', { code: 'not_a_transaction_id', looksLike: 'link' }],
      ['<script>alert(1)</script>', { code: 'not_a_transaction_id', looksLike: 'other' }],
      ['\u0000\u202e ＡＢ', { code: 'not_a_transaction_id' }],
      ['', { code: 'not_a_transaction_id' }],
      ['ff'.repeat(32), { code: 'not_found' }],
    ];
    for (const [transaction, reported] of asked) expect(await answerTo(invoice, transaction)).toMatchObject(reported);
    const echoed = await lookUp(invoice, '<script>alert(1)</script>');
    expect(echoed.text).not.toContain('script');
  });

  test('of an exact transfer that came before the invoice was created, which pays nothing', async () => {
    // Before the address is added: for a day, an amount received on a new address isn't issued to an order.
    const account = newAccount();
    const transaction = await send(accountToAddress(account), 25_000_000n);
    await settle();
    const shop = await exactShop(account);
    const invoice = await newInvoice('25.00', shop);
    expect(await answerTo(invoice, transaction)).toMatchObject({
      ...{ code: 'before_invoice', amount: '25.000000', invoiceCreatedAt: expect.any(String), ...PLACED },
    });
    expect((await get(service, `/v1/invoices/${invoice.invoiceId}`, shop)).body.status).toBe('PENDING');
  });

  test('a pasted Tronscan link, capitals and spaces around it are the same question', async () => {
    const invoice = await newInvoice();
    const transaction = await pay(invoice, 'exact');
    await settle();
    for (const pasted of [
      `https://tronscan.org/#/transaction/${transaction}`,
      `https://nile.tronscan.org/#/transaction/${transaction}`,
      ` ${transaction.toUpperCase()}\n`,
    ]) {
      expect((await answerTo(invoice, pasted)).code, pasted).toBe('paid');
    }
  });
});

describe('reveals no other invoice, not even that one exists', () => {
  test('money that paid, may pay or paid twice another invoice is told of byte for byte as money that pays nobody', async () => {
    // The same shop twice, but one has other invoices besides the asking payer's. Earlier tests have moved our clock, so the chain's clock
    // follows it; otherwise the money would be older than the invoices.
    service.devnet.mine(1, { timestampMs: Math.ceil(service.clock.now() / 3000) * 3000 });
    const [lone, busy] = [await exactShop(), await exactShop()];
    const [alone, beside] = [await newInvoice('25.00', lone), await newInvoice('25.00', busy)];
    const others = [];
    for (const amount of ['24', '26', '30.5', '25.000001']) others.push(await newInvoice(amount, busy));
    expect(new Set(others.map(({ address }) => address))).toEqual(new Set([beside.address]));

    const pairs: [string, string, string][] = [];
    const sendBoth = async (what: string, micro: bigint) => {
      pairs.push([what, await send(alone.address, micro), await send(beside.address, micro)]);
    };
    await sendBoth('paid another', 24_000_000n);
    await sendBoth('paid another', 26_000_000n);
    await sendBoth('paid another twice', 26_000_000n);
    await sendBoth('paid another, near', 25_000_001n);
    await sendBoth('paid nobody', 24_500_000n);
    await settle();
    await untilStatusOf(busy, others[0]?.invoiceId ?? '', 'PAID');
    await sendBoth('confirming for another', 30_500_000n);
    service.devnet.mine();
    await untilStatusOf(busy, others[2]?.invoiceId ?? '', 'CONFIRMING');
    for (const [what, plain, telling] of pairs) {
      service.clock.advance(10_000);
      const [reported, compared] = [await lookUp(beside, telling), await lookUp(alone, plain)];
      expect([reported.status, reported.text], what).toEqual([compared.status, compared.text]);
      expect(without(reported), what).toEqual(without(compared));
      expect(['short', 'over']).toContain(reported.body.code);
    }
  });

  test("an address of ours is told of as a stranger's is", async () => {
    const invoice = await newInvoice();
    const other = await createTestProject(service.db);
    const theirs = await newInvoice('25.00', other);
    const stranger = accountToAddress(newAccount());
    const transactions = [];
    for (const to of [theirs.address, service.project.addresses[1] ?? '', stranger]) {
      transactions.push(await send(to, theirs.amountMicro));
    }
    await settle();
    await untilStatusOf(other, theirs.invoiceId, 'PAID');
    const reported = [];
    for (const transaction of transactions) {
      const { text, body } = await lookUp(invoice, transaction);
      expect(body.code).toBe('other_address');
      reported.push(text.replace(body.to, 'T…'));
    }
    expect(new Set(reported).size).toBe(1);
  });

  test('of a transaction that paid two invoices, each payer hears of their own part', async () => {
    const [a, b] = [await newInvoice('25.00'), await newInvoice('90.00')];
    const { txIds } = await payScenario(service.payer, {
      ...{ scenario: 'two-in-one', contracts: contracts(), invoice: a, second: b },
    });
    await settle();
    for (const [mine, other] of [
      [a, b],
      [b, a],
    ] as const) {
      const reply = await lookUp(mine, txIds[0]);
      expect(reply.body).toEqual({ code: 'paid', amount: mine.amount, ...PLACED });
      expect(reply.text).not.toContain(other.amount);
    }
  });

  test('a token that is unknown and one that is malformed are the same to the asker', async () => {
    const transaction = 'ab'.repeat(32);
    const replies = [];
    for (const token of ['Q7m1wCiHMoBqsVd3HqqRAD', 'Q7m1wCiHMoBqsVd3HqqRA', '0OIl', 'x'.repeat(200)]) {
      replies.push(await lookUp({ path: `/c/${token}` }, transaction));
    }
    for (const reply of replies) {
      expect(reply.status).toBe(404);
      expect(without(reply)).toEqual(without(replies[0] as Reply));
    }
  });

  test('names neither ids nor orders, and changes nothing but that a claim is told of', async () => {
    const invoice = await newInvoice();
    const transaction = await pay(invoice, 'fee');
    await settle();
    await eventually(
      () => runSql(service, 'select from untold_transfers'),
      ([untold]) => untold === undefined,
    );
    const rows = async () => [
      await runSql(service, 'select * from invoices order by id'),
      await runSql(service, 'select * from transfers order by id'),
      await runSql(service, "select * from events where type <> 'transfer.claimed' order by id"),
    ];
    const before = await rows();
    const { text, headers } = await lookUp(invoice, transaction);
    expect(text).not.toMatch(/inv_|prj_|trf_|evt_|order-/);
    expect(headers['cache-control']).toContain('no-store');
    expect(await rows()).toEqual(before);
  });
});

describe('bounded, cached and rate limited', () => {
  test('asking too often is 429 RATE_LIMITED with Retry-After, and goes on after that time', async () => {
    const invoice = await newInvoice();
    const asked = [];
    for (let i = 0; i < 30; i++) asked.push(await lookUp(invoice, 'ab'.repeat(32)));
    const refused = asked.filter(({ status }) => status !== 200);
    expect(asked[0]?.status).toBe(200);
    expect(refused.length).toBeGreaterThan(5);
    for (const reply of refused) {
      expectProblem(reply, 429, 'RATE_LIMITED');
      expect(String(reply.headers['retry-after'])).toMatch(/^[1-9][0-9]*$/);
    }
    service.clock.advance(Number(refused.at(-1)?.headers['retry-after']) * 1000);
    const patient = await lookUp(invoice, 'ab'.repeat(32));
    expect(patient.status, patient.text).toBe(200);
  });

  test('a body over 16 KiB, of another type, or without a text is refused', async () => {
    const invoice = await newInvoice();
    const url = `${service.url}${invoice.path}/lookup`;
    const json = { 'content-type': 'application/json' };
    const body = (value: unknown) => ({ method: 'POST', headers: json, body: JSON.stringify(value) });
    const transaction = 'ab'.repeat(32);
    expectProblem(await exchange(url, body({ transaction: 'a'.repeat(17_000) })), 413, 'PAYLOAD_TOO_LARGE');
    for (const value of [{}, [], null, 'x', { transaction: 5 }, { transaction: [transaction] }]) {
      const reply = await exchange(url, body(value));
      expect([400, 429], JSON.stringify(value)).toContain(reply.status);
      if (reply.status === 400) expectProblem(reply, 400, 'INVALID_REQUEST');
    }
    service.clock.advance(120_000);
    expectProblem(await exchange(url, { method: 'POST', headers: json, body: '{' }), 400, 'INVALID_JSON');
    const text = await exchange(url, { method: 'POST', headers: { 'content-type': 'text/plain' }, body: transaction });
    expectProblem(text, 415, 'UNSUPPORTED_MEDIA_TYPE');
    service.clock.advance(120_000);
    const long = await lookUp(invoice, 'a'.repeat(16_000));
    expect(long.text.length).toBeLessThan(2000);
    expectNoTrace(long.text);
  });

  test('asks a node what the ledger does not know, once; and says so when no node answers', async () => {
    const invoice = await newInvoice();
    const transaction = await pay(invoice, 'wrong-address');
    await settle();
    await withApiOnly(service, async (api) => {
      expect((await lookUp(invoice, transaction, api.url)).body.code).toBe('other_address');
      const asked = await api.requests();
      expect(asked).toBeGreaterThan(0);
      expect(asked).toBeLessThan(10);
      for (let i = 0; i < 5; i++) expect((await lookUp(invoice, transaction, api.url)).body.code).toBe('other_address');
      expect(await api.requests()).toBe(asked);
    });
    await withApiOnly(
      service,
      async (api) => {
        const reply = await lookUp(invoice, transaction, api.url);
        expect(reply.body).toEqual({ code: 'unavailable', checkAgainSeconds: expect.any(Number) });
      },
      { withoutNodes: true },
    );
  });

  test('what paid this invoice is told without any node', async () => {
    const invoice = await newInvoice();
    const transaction = await pay(invoice, 'exact');
    await settle();
    await withApiOnly(
      service,
      async (api) => expect((await lookUp(invoice, transaction, api.url)).body.code).toBe('paid'),
      { withoutNodes: true },
    );
  });
});
