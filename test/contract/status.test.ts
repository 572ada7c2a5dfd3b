import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { payScenario } from '../../src/developer/scenarios/pay-scenario.ts';
import type { Scenario } from '../../src/developer/scenarios/scenarios.ts';
import {
  call,
  eventually,
  payableOf,
  readInvoice,
  startTestService,
  type TestService,
  untilStatus,
} from '../support/service.ts';
import { created, expectProblem, get, post } from './ask.ts';
import { runSql } from './sql.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
beforeEach(() => {
  // After a test that moved a clock, the chain's and ours may be far apart: makes a block now, then moves on by a minute.
  const nowMs = Math.ceil(service.clock.now() / 3000) * 3000;
  if (nowMs > service.devnet.head().timestampMs) service.devnet.mine(1, { timestampMs: nowMs });
  service.devnet.mineUntilSolid();
  service.clock.advance(Math.max(0, service.devnet.head().timestampMs - service.clock.now()) + 60_000);
});
afterAll(() => service.stop());

const newInvoice = async (): Promise<string> => (await created(service)).invoiceId;

async function pay(invoiceId: string, scenario: Scenario = 'exact'): Promise<string[]> {
  const invoice = await payableOf(service, invoiceId);
  const { usdtContract: usdt, fakeUsdtContract: fakeUsdt, multisendContract: multisend } = service.devnet;
  const { txIds } = await payScenario(service.payer, { scenario, contracts: { usdt, fakeUsdt, multisend }, invoice });
  return [...txIds];
}

/** Makes a block at or after an invoice's deadline. */
async function minePastDeadline(invoiceId: string): Promise<void> {
  const { expiresAt } = (await readInvoice(service, invoiceId)).body;
  const deadline = Math.ceil(Date.parse(expiresAt) / 3000) * 3000;
  service.devnet.mine(1, { timestampMs: Math.max(deadline, service.devnet.head().timestampMs) + 3000 });
}

/** Waits until the service has recorded everything that is irreversible now. */
async function untilExamined(): Promise<void> {
  const { number } = service.devnet.solid();
  await eventually(
    () => call(`${service.metricsUrl}/readyz`),
    ({ body }) => body.networks.devnet.solidBlock >= number,
  );
}

test('PENDING: waiting for the exact transfer', async () => {
  expect((await created(service)).status).toBe('PENDING');
});

test('PENDING → CONFIRMING when the transfer stands in a block, → PAID when that is irreversible', async () => {
  const id = await newInvoice();
  await pay(id);
  service.devnet.mine();
  await untilStatus(service, id, 'CONFIRMING');
  service.devnet.mineUntilSolid();
  await untilStatus(service, id, 'PAID');
});

test('PENDING → PAID at once when the block is already irreversible when it is seen', async () => {
  const id = await newInvoice();
  await pay(id);
  await service.stopService();
  service.devnet.mineUntilSolid();
  await service.restart();
  await untilStatus(service, id, 'PAID');
});

test('CONFIRMING → back to PENDING if that block is orphaned', async () => {
  const id = await newInvoice();
  service.devnet.mineUntilSolid();
  await pay(id);
  service.devnet.mine();
  await untilStatus(service, id, 'CONFIRMING');
  service.devnet.fork({ depth: 1, keepTransactions: false });
  const { payment } = await untilStatus(service, id, 'PENDING');
  expect(payment.transaction).toBeNull();
});

test('CONFIRMING → back to EXPIRED if that block is orphaned after the deadline', async () => {
  const id = await newInvoice();
  service.devnet.mineUntilSolid();
  await minePastDeadline(id);
  await untilStatus(service, id, 'EXPIRED');
  await pay(id);
  service.devnet.mine();
  await untilStatus(service, id, 'CONFIRMING');
  service.devnet.fork({ depth: 1, keepTransactions: false });
  await untilStatus(service, id, 'EXPIRED');
});

test('an expired invoice is still paid by a late exact transfer', async () => {
  const id = await newInvoice();
  await minePastDeadline(id);
  await untilStatus(service, id, 'EXPIRED');
  await pay(id);
  service.devnet.mineUntilSolid();
  const { payment } = await untilStatus(service, id, 'PAID');
  expect(payment.transaction.late).toBe(true);
});

describe('an invoice expires on the chain’s clock', () => {
  test('our own clock expires nothing', async () => {
    const id = await newInvoice();
    service.clock.advance(24 * 3600 * 1000);
    service.devnet.mineUntilSolid();
    await untilExamined();
    expect((await readInvoice(service, id)).body.status).toBe('PENDING');
  });

  test('while the nodes are down nothing expires; once blocks up to expiresAt have been examined it does', async () => {
    const id = await newInvoice();
    service.devnet.setFault({ kind: 'unavailable-503' });
    await minePastDeadline(id);
    service.clock.advance(3600 * 1000);
    // Invoices are still created: a chain outage never stops that.
    for (let i = 0; i < 10; i++) expect((await post(service)).status).toBe(201);
    expect((await readInvoice(service, id)).body.status).toBe('PENDING');
    service.devnet.setFault();
    await untilStatus(service, id, 'EXPIRED');
  });

  test('a transfer in time that is seen only after the deadline pays, and is not late', async () => {
    const id = await newInvoice();
    await pay(id);
    // The payment gets into a block before the deadline while the service sees nothing.
    service.devnet.setFault({ kind: 'reset' });
    service.devnet.mine();
    await minePastDeadline(id);
    service.devnet.mineUntilSolid();
    service.devnet.setFault();
    const { payment } = await untilStatus(service, id, 'PAID');
    expect(payment.transaction.late).toBe(false);
    const events = await runSql(service, "select type from events where body::json->'data'->>'invoiceId' = $1", [id]);
    expect(events.map(({ type }) => type)).not.toContain('invoice.expired');
  });
});

describe('exact-amount matching', () => {
  test.each(['short', 'over', 'fake-token'] as const)('a transfer that is %s does not pay', async (scenario) => {
    const id = await newInvoice();
    await pay(id, scenario);
    service.devnet.mineUntilSolid();
    await untilExamined();
    expect((await readInvoice(service, id)).body.status).toBe('PENDING');
  });

  test('partial payments are never accumulated', async () => {
    const id = await newInvoice();
    const { address, amountMicro } = await payableOf(service, id);
    const half = amountMicro / 2n;
    for (const part of [half, amountMicro - half]) {
      await service.payer.transfer({ contract: service.devnet.usdtContract, to: address, amountMicro: part });
    }
    service.devnet.mineUntilSolid();
    await untilExamined();
    expect((await readInvoice(service, id)).body).toMatchObject({ status: 'PENDING', payment: { transaction: null } });
  });

  test.each([-1n, 1n])('a transfer that differs by %d micro-USDT does not pay', async (difference) => {
    const id = await newInvoice();
    const { address, amountMicro } = await payableOf(service, id);
    const contract = service.devnet.usdtContract;
    await service.payer.transfer({ contract, to: address, amountMicro: amountMicro + difference });
    service.devnet.mineUntilSolid();
    await untilExamined();
    expect((await readInvoice(service, id)).body.status).toBe('PENDING');
  });

  test('the amount stays reserved for that invoice permanently: a second transfer pays no other, PAID is never left', async () => {
    const id = await newInvoice();
    const [first] = await pay(id);
    service.devnet.mineUntilSolid();
    await untilStatus(service, id, 'PAID');
    await pay(id);
    service.devnet.mineUntilSolid();
    await untilExamined();
    await minePastDeadline(id);
    service.devnet.mineUntilSolid();
    await untilExamined();
    const { body } = await readInvoice(service, id);
    expect(body.status).toBe('PAID');
    expect(body.payment.transaction.txId).toBe(first);
  });

  test('PAID is never left, not even in SQL', async () => {
    const id = await newInvoice();
    await pay(id);
    service.devnet.mineUntilSolid();
    await untilStatus(service, id, 'PAID');
    const attempt = runSql(
      service,
      "update invoices set status = 'PENDING', paid_transfer_id = null where status = 'PAID'",
    );
    await expect(attempt).rejects.toThrow(/never left/);
    await expect(runSql(service, 'delete from invoices')).rejects.toThrow(/never deleted/);
  });
});

test('the status is one of the four in every answer', async () => {
  const rows = await runSql(service, 'select distinct status from invoices');
  for (const { status } of rows) expect(['PENDING', 'CONFIRMING', 'EXPIRED', 'PAID']).toContain(status);
  expectProblem(await get(service, '/v1/invoices/none'), 404, 'INVOICE_NOT_FOUND');
});
