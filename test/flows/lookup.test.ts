import { randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { decodeId } from '../../src/core/domain/ids.ts';
import { likelyMistake } from '../../src/core/domain/lookup/lookup.ts';
import { formatAmount, microUsdt } from '../../src/core/domain/money.ts';
import { payScenario } from '../../src/developer/scenarios/pay-scenario.ts';
import type { Scenario } from '../../src/developer/scenarios/scenarios.ts';
import { runSql } from '../contract/sql.ts';
import { type FaultKind, untilHeadIsExamined } from '../support/fault-flow.ts';
import { ask, contractsOf, type Invoice, newInvoice, pay, untilRecorded, withApiOnly } from '../support/lookup-flow.ts';
import { type Answer, call, eventually, startTestService, type TestService, untilStatus } from '../support/service.ts';

const LOOKUP_PATHS = ['/wallet/gettransactioninfobyid', '/wallet/gettransactionbyid'];

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ nodeCount: 2, config: { trustProxy: ['127.0.0.1'] } });
});
afterEach(() => {
  for (const node of service.nodes) node.setFault();
});
afterAll(() => service.stop());

/** Returns the answer without cached answers of nodes, except final ones. */
function lookUp(invoice: Invoice, transaction: string): Promise<Answer['body']> {
  // After the clock was moved, a block that one node shows later than another looks overdue, which pauses the first node for a second.
  return eventually(
    () => lookUpOnce(invoice, transaction),
    ({ code }) => code !== 'unavailable',
  );
}

async function lookUpOnce(invoice: Invoice, transaction: string): Promise<Answer['body']> {
  service.clock.advance(5000);
  const { status, body } = await ask(invoice, transaction);
  expect(status).toBe(200);
  return body;
}

async function paySolid(invoice: Invoice, scenario: Scenario): Promise<string> {
  const txId = await pay(service, invoice, scenario);
  service.devnet.mineUntilSolid();
  await untilRecorded(service);
  return txId;
}

const placed = { blockNumber: expect.any(Number), blockTime: expect.stringMatching(/^\d{4}-.*Z$/) };

describe('a payment on its way', () => {
  test('is not found, found without a stale answer, confirming, and paid', async () => {
    const invoice = await newInvoice(service);
    const txId = await pay(service, invoice, 'exact');
    expect(await lookUp(invoice, txId)).toEqual({ code: 'not_found', checkAgainSeconds: 60 });
    service.devnet.mine();
    await untilStatus(service, invoice.id, 'CONFIRMING');
    expect((await ask(invoice, txId)).body).toEqual({
      code: 'confirming',
      ...placed,
      amount: invoice.amount,
      confirmations: 1,
      required: 19,
      earlierTransaction: null,
    });
    service.devnet.mineUntilSolid();
    await untilStatus(service, invoice.id, 'PAID');
    const paid = { code: 'paid', ...placed, amount: invoice.amount };
    expect(await lookUp(invoice, txId)).toEqual(paid);
    expect(await lookUp(invoice, ` https://tronscan.org/#/transaction/${txId.toUpperCase()} `)).toEqual(paid);
  });

  test('a second one is told to be the second, before and after the first has paid', async () => {
    const invoice = await newInvoice(service);
    const first = await pay(service, invoice, 'exact');
    service.devnet.mine();
    await untilStatus(service, invoice.id, 'CONFIRMING');
    const second = await pay(service, invoice, 'exact');
    service.devnet.mine();
    await untilHeadIsExamined(service);
    expect(await lookUp(invoice, second)).toMatchObject({ code: 'confirming', earlierTransaction: first });
    service.devnet.mineUntilSolid();
    await untilRecorded(service);
    const answer = { code: 'exact_but_already_paid', ...placed, amount: invoice.amount, paidBy: first };
    expect(await lookUp(invoice, second)).toEqual(answer);
    const third = await pay(service, invoice, 'exact');
    service.devnet.mine();
    await untilHeadIsExamined(service);
    expect(await lookUp(invoice, third)).toEqual(answer);
  });

  test('that nodes show before the watcher has examined its block is told as such', async () => {
    const invoice = await newInvoice(service);
    await withApiOnly(service, async ({ url }) => {
      await service.stopService();
      const txId = await pay(service, invoice, 'exact');
      service.devnet.mine();
      expect((await ask(invoice, txId, { at: url })).body).toEqual({
        code: 'exact_not_yet_examined',
        ...placed,
        amount: invoice.amount,
        earlierTransaction: null,
      });
      await service.restart();
      await untilStatus(service, invoice.id, 'CONFIRMING');
      expect((await ask(invoice, txId, { at: url })).body).toMatchObject({ code: 'confirming' });
    });
  });
});

describe('what only a node shows', () => {
  test('of an exact payment in a block that was examined is not said to pay before it is confirmed', async () => {
    const invoice = await newInvoice(service);
    const txId = await pay(service, invoice, 'exact');
    service.devnet.mine();
    await untilStatus(service, invoice.id, 'CONFIRMING');
    await untilHeadIsExamined(service);
    // As if our nodes didn't agree on that block's logs yet, or one node had invented the payment.
    await runSql(service, 'delete from sightings where invoice_id = $1', [decodeId('inv', invoice.id)]);
    expect(await lookUp(invoice, txId)).toEqual({
      code: 'exact_not_confirmed',
      ...placed,
      amount: invoice.amount,
      checkAgainSeconds: 60,
    });
    service.devnet.mineUntilSolid();
    await untilStatus(service, invoice.id, 'PAID');
    expect(await lookUp(invoice, txId)).toMatchObject({ code: 'paid' });
  });

  test('of a second payment in a block that is not examined yet is told with the first one', async () => {
    const invoice = await newInvoice(service);
    const first = await pay(service, invoice, 'exact');
    service.devnet.mine();
    await untilStatus(service, invoice.id, 'CONFIRMING');
    await withApiOnly(service, async ({ url }) => {
      await service.stopService();
      const second = await pay(service, invoice, 'exact');
      service.devnet.mine();
      expect((await ask(invoice, second, { at: url })).body).toMatchObject({
        code: 'exact_not_yet_examined',
        earlierTransaction: first,
      });
      await service.restart();
    });
  });
});

describe('a payment that fits nothing', () => {
  test.each<[Scenario, string, object]>([
    ['fee', 'short', { by: '1.000000', likely: { kind: 'fee' } }],
    ['requested-amount', 'short', { arrived: '25.000000', likely: { kind: 'requested_amount' } }],
    ['swapped', 'short or over', { likely: { kind: 'swapped_digits' } }],
    ['over', 'over', { by: '1.000000', likely: { kind: 'fee' } }],
    ['wrong-address', 'other_address', {}],
    ['fake-token', 'other_token', {}],
    ['reverted', 'failed', { why: 'reverted', result: 'REVERT' }],
    ['out-of-energy', 'failed', { why: 'out_of_energy', result: 'OUT_OF_ENERGY' }],
    ['zero-value', 'no_usdt_transfer', { moved: 'nothing' }],
  ])('%s is told as %s, at once and when it is irreversible', async (scenario, codes, figures) => {
    const invoice = await newInvoice(service);
    const options = { scenario, contracts: contractsOf(service), invoice, requestedMicro: 25_000_000n };
    const [sent] = (await payScenario(service.payer, options)).sent;
    if (sent === undefined) throw new Error(`${scenario} sent nothing`);
    service.devnet.mine();
    const first = await lookUp(invoice, sent.txId);
    expect(codes.split(' or ')).toContain(first.code);
    const amounts = { arrived: formatAmount(microUsdt(sent.amountMicro)), expected: invoice.amount };
    const known: Record<string, object> = {
      short: amounts,
      over: amounts,
      other_address: { to: sent.to, amount: invoice.amount },
      other_token: { contract: service.devnet.fakeUsdtContract },
    };
    expect(first).toMatchObject({ ...placed, ...known[first.code], ...figures });
    service.devnet.mineUntilSolid();
    await untilRecorded(service);
    expect(await lookUp(invoice, sent.txId)).toEqual(first);
  });

  test('TRX is told as TRX', async () => {
    const invoice = await newInvoice(service);
    const txId = await service.payer.sendTrx({ to: invoice.address, amountSun: 25_000_137n });
    service.devnet.mine();
    expect(await lookUp(invoice, txId)).toEqual({
      code: 'no_usdt_transfer',
      ...placed,
      moved: 'trx',
      amountTrx: '25.000137',
      toAddress: true,
    });
  });

  test('two payments in one transaction are told to each payer as their own', async () => {
    const [first, second] = [await newInvoice(service, '7.00'), await newInvoice(service, '9.00')];
    const txId = await pay(service, first, 'two-in-one', second);
    service.devnet.mineUntilSolid();
    await untilStatus(service, second.id, 'PAID');
    expect(await lookUp(first, txId)).toEqual({ code: 'paid', ...placed, amount: first.amount });
    expect(await lookUp(second, txId)).toEqual({ code: 'paid', ...placed, amount: second.amount });
  });

  test.each([
    [`https://etherscan.io/tx/0x${'a1'.repeat(32)}`, { code: 'not_tron', looksLike: 'ethereum' }],
    ['TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t', { code: 'not_a_transaction_id', looksLike: 'address', characters: 34 }],
    ['a1'.repeat(31), { code: 'not_a_transaction_id', looksLike: 'part-of-an-id', characters: 62 }],
  ])('%s is not asked for', async (pasted, expected) => {
    const invoice = await newInvoice(service);
    await withApiOnly(service, async ({ url, requests }) => {
      expect((await ask(invoice, pasted, { at: url })).body).toEqual(expected);
      expect(await requests()).toBe(0);
    });
  });

  test('an id behind 0x is asked for, as tools write ids of TRON so, and never said to be of another chain', async () => {
    const invoice = await newInvoice(service);
    const short = await paySolid(invoice, 'short');
    expect(await lookUp(invoice, `0x${short}`)).toMatchObject({ code: 'short' });
    const exact = await paySolid(invoice, 'exact');
    expect(await lookUp(invoice, `0x${exact}`)).toMatchObject({ code: 'paid' });
    const unknown = { code: 'not_found', checkAgainSeconds: 60 };
    expect(await lookUp(invoice, `0x${'a1'.repeat(32)}`)).toEqual(unknown);
    for (const node of service.nodes) node.setFault({ kind: 'error-200', paths: LOOKUP_PATHS });
    expect(await lookUpOnce(invoice, `0x${'a2'.repeat(32)}`)).toMatchObject({ code: 'unavailable' });
  });
});

describe('a look-up tells nothing of other invoices', () => {
  test('a payment of another invoice is what a stranger’s transfer of that amount is, in figures, headers and requests', async () => {
    const [mine, theirs] = [await newInvoice(service), await newInvoice(service)];
    expect(theirs.address).toBe(mine.address);
    const strangersMicro = theirs.amountMicro + 1_000_000n;
    const stranger = await service.payer.transfer({
      contract: service.devnet.usdtContract,
      to: mine.address,
      amountMicro: strangersMicro,
    });
    const theirPayment = await pay(service, theirs, 'exact');
    service.devnet.mine();
    await untilStatus(service, theirs.id, 'CONFIRMING');
    await withApiOnly(service, async ({ url, requests, advance }) => {
      // The first question makes each node report its network.
      await ask(mine, 'a1'.repeat(32), { at: url });
      const asked = async (txId: string) => {
        advance(20_000);
        const before = await requests();
        const answers = [await ask(mine, txId, { at: url }), await ask(mine, txId, { at: url })];
        return { answers, requests: (await requests()) - before };
      };
      const expectAlike = async () => {
        // Another payer's own look-up must not make this one faster either.
        advance(20_000);
        await ask(theirs, theirPayment, { at: url });
        const [their, strange] = [await asked(theirPayment), await asked(stranger)];
        expect(their.requests).toBe(strange.requests);
        const [first] = their.answers;
        const differenceMicro = theirs.amountMicro - mine.amountMicro;
        expect(first?.body).toEqual({
          code: differenceMicro > 0n ? 'over' : 'short',
          ...placed,
          arrived: theirs.amount,
          expected: mine.amount,
          by: formatAmount(microUsdt(differenceMicro > 0n ? differenceMicro : -differenceMicro)),
          // By chance, one amount in a hundred is a mistyped form of another.
          likely: likelyMistake({
            payableMicro: microUsdt(mine.amountMicro),
            requestedMicro: microUsdt(25_000_000n),
            arrivedMicro: microUsdt(theirs.amountMicro),
          }),
        });
        expect(their.answers[1]?.body).toEqual(first?.body);
        expect(Object.keys(strange.answers[0]?.body)).toEqual(Object.keys(first?.body));
        expect(headersOf(strange.answers[0])).toEqual(headersOf(first));
      };
      await expectAlike();
      service.devnet.mineUntilSolid();
      await untilStatus(service, theirs.id, 'PAID');
      await untilRecorded(service);
      await expectAlike();
    });
  });

  test('a link that does not exist gets the answer of every such link', async () => {
    const unknown = { ...(await newInvoice(service)), checkoutUrl: `${service.url}/c/${'1'.repeat(22)}` };
    const status = await call(`${unknown.checkoutUrl}/status`);
    for (const pasted of ['a1'.repeat(32), 'nonsense']) {
      const answer = await ask(unknown, pasted);
      expect({ status: answer.status, body: answer.body }).toEqual({ status: 404, body: status.body });
    }
    const malformed = await ask({ ...unknown, checkoutUrl: `${service.url}/c/x` }, 'a1'.repeat(32));
    expect({ status: malformed.status, body: malformed.body }).toEqual({ status: 404, body: status.body });
  });

  test('nothing is kept, framed or sent on by a browser', async () => {
    expect((await ask(await newInvoice(service), 'nonsense')).headers).toMatchObject({
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'content-security-policy': expect.stringContaining("default-src 'none'"),
    });
  });
});

describe('a payer who goes on asking', () => {
  test('leaves an answer to others, and what our books know to themselves', async () => {
    const [greedy, other] = [await newInvoice(service), await newInvoice(service)];
    const paid = await paySolid(greedy, 'exact');
    const short = await paySolid(other, 'short');
    await withApiOnly(service, async ({ url, advance }) => {
      const askAnything = async () => {
        advance(5000);
        return (await ask(greedy, randomBytes(32).toString('hex'), { at: url })).body.code;
      };
      const codes: string[] = [];
      for (let index = 0; index < 60; index++) codes.push(await askAnything());
      expect(codes[0]).toBe('not_found');
      expect(codes).toContain('unavailable');
      expect((await ask(greedy, paid, { at: url })).body).toMatchObject({ code: 'paid' });
      const reported: string[] = [];
      for (let index = 0; index < 30; index++) {
        await askAnything();
        await askAnything();
        reported.push((await ask(other, short, { at: url })).body.code);
      }
      expect(reported).toEqual(Array(30).fill('short'));
    });
  });
});

describe('nodes that do not help', () => {
  const all = (kind: FaultKind) => {
    for (const node of service.nodes) node.setFault({ kind, paths: LOOKUP_PATHS });
  };

  test('while none answers it is unavailable, and after that it is told', async () => {
    const invoice = await newInvoice(service);
    const txId = await paySolid(invoice, 'short');
    all('unavailable-503');
    expect(await lookUpOnce(invoice, txId)).toEqual({ code: 'unavailable', checkAgainSeconds: 5 });
    all('error-200');
    expect(await lookUpOnce(invoice, txId)).toMatchObject({ code: 'unavailable' });
    for (const node of service.nodes) node.setFault();
    await eventually(
      () => lookUp(invoice, txId),
      ({ code }) => code === 'short',
    );
  });

  test('one that hangs keeps a payer waiting for seconds, not for ever', async () => {
    const invoice = await newInvoice(service);
    const txId = await paySolid(invoice, 'short');
    all('hang');
    expect(await lookUpOnce(invoice, txId)).toEqual({ code: 'unavailable', checkAgainSeconds: 5 });
  });

  test.each(['forged-direct-log', 'hidden-direct-log', 'flipped-info-result', 'omitted-transaction'] as const)(
    'what one makes up (%s) is refused, and the other one’s truth is told',
    async (kind) => {
      const invoice = await newInvoice(service);
      const txId = await paySolid(invoice, 'short');
      service.nodes[0]?.setFault({ kind, amountMicro: invoice.amountMicro, paths: LOOKUP_PATHS });
      await eventually(
        () => lookUp(invoice, txId),
        ({ code }) => code === 'short',
      );
    },
  );

  test('a lie that fits changes what a payer reads, and no status', async () => {
    const invoice = await newInvoice(service);
    const txId = await paySolid(invoice, 'contract');
    const other = await newInvoice(service);
    all('flipped-result');
    await eventually(
      () => lookUp(other, txId),
      ({ code }) => code === 'failed',
    );
    expect(await lookUp(invoice, txId)).toMatchObject({ code: 'paid' });
    await untilStatus(service, invoice.id, 'PAID');
  });

  test('a network of which this process has no nodes is unavailable', async () => {
    const invoice = await newInvoice(service);
    await withApiOnly(
      service,
      async ({ url }) => {
        expect((await ask(invoice, 'a1'.repeat(32), { at: url })).body).toMatchObject({ code: 'unavailable' });
      },
      { withoutNodes: true },
    );
  });
});

function headersOf(answer: Answer | undefined): Answer['headers'] {
  const { date: _1, 'x-request-id': _2, 'content-length': _3, ...kept } = answer?.headers ?? {};
  return kept;
}
