import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { asTyped } from '../../src/core/domain/money.ts';
import { isCodeWord, type Policy } from '../../src/core/domain/policy.ts';
import { payScenario } from '../../src/developer/scenarios/pay-scenario.ts';
import type { Scenario } from '../../src/developer/scenarios/scenarios.ts';
import { runSql } from '../contract/sql.ts';
import { ask, contractsOf, type Invoice, untilRecorded } from '../support/lookup-flow.ts';
import {
  call,
  createInvoice,
  createPatiently,
  createTestProject,
  eventually,
  startTestService,
  type TestProject,
  type TestService,
} from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

const COARSE = [
  { policy: 'tail-4', unit: 100n, perAddress: 90, decimals: 4, scenario: 'rounded-4' },
  { policy: 'tail-3', unit: 1000n, perAddress: 9, decimals: 3, scenario: 'rounded-3' },
] as const satisfies { policy: Policy; scenario: Scenario; [fact: string]: unknown }[];

const shopOf = (policy: Policy, addressCount = 1) => createTestProject(service.db, { policy, addressCount });

async function newInvoice(project: TestProject, amount = '25.00'): Promise<Invoice> {
  const { status, body } = await createPatiently(service, {
    ...{ apiKey: project.apiKey, idempotencyKey: randomUUID() },
    body: { amount },
  });
  expect(status, JSON.stringify(body)).toBe(201);
  const { payment } = (await read(project, body.invoiceId)).body;
  const micro = BigInt(payment.payableAmount.replace('.', ''));
  return {
    ...{ id: body.invoiceId, checkoutUrl: body.checkoutUrl, address: payment.address },
    ...{ amountMicro: micro, amount: payment.payableAmount },
  };
}

const read = (project: TestProject, id: string) =>
  call(`${service.url}/v1/invoices/${id}?expand=payment`, { headers: { 'x-api-key': project.apiKey } });

async function pay(invoice: Invoice, scenario: Scenario): Promise<string> {
  const { txIds } = await payScenario(service.payer, { scenario, contracts: contractsOf(service), invoice });
  service.devnet.mineUntilSolid();
  await untilRecorded(service);
  return txIds.at(-1) ?? '';
}

const untilPaid = (project: TestProject, { id }: Invoice) =>
  eventually(
    () => read(project, id),
    ({ body }) => body.status === 'PAID',
  );

const readPage = async ({ checkoutUrl }: Invoice) => (await fetch(checkoutUrl)).text();

test.each(COARSE)(
  'policy $policy: every payable amount is a word of $decimals decimals, and is shown and copied with as many',
  async ({ policy, unit, decimals }) => {
    const project = await shopOf(policy);
    for (const [amount, requested] of [
      ['25.00', 25_000_000n],
      ['24.999999', 24_999_999n],
      ['0.000001', 1n],
    ] as const) {
      const invoice = await newInvoice(project, amount);
      expect(isCodeWord(invoice.amountMicro, unit), invoice.amount).toBe(true);
      expect(invoice.amountMicro).toBeGreaterThanOrEqual(requested);
      expect(invoice.amountMicro - requested).toBeLessThan(100_000n);
      const shown = asTyped(invoice.amount);
      expect(shown).toMatch(new RegExp(`^\\d+\\.\\d{${decimals}}$`));
      const page = await readPage(invoice);
      expect(page).toContain(`data-copy="${shown}"`);
      expect(page).toContain(`fewer than ${decimals} decimals`);
      expect(page).not.toContain(invoice.amount);
    }
  },
);

test.each(COARSE)(
  'policy $policy: paid exactly, and cut off after $decimals decimals, an invoice is paid',
  async ({ policy, scenario }) => {
    const project = await shopOf(policy);
    for (const way of ['exact', scenario] as const) {
      const invoice = await newInvoice(project);
      await pay(invoice, way);
      await untilPaid(project, invoice);
    }
  },
);

test.each(COARSE)(
  'policy $policy: an address takes $perAddress invoices of an amount, then the next one does, then none is made',
  async ({ policy, perAddress }) => {
    const project = await shopOf(policy, 2);
    const places: string[] = [];
    for (let i = 0; i < perAddress * 2; i++) {
      const { address, amount } = await newInvoice(project);
      places.push(`${address} ${amount}`);
    }
    expect(new Set(places).size).toBe(perAddress * 2);
    const [first, second] = project.addresses;
    const addresses = places.map((place) => place.split(' ')[0]);
    expect(addresses).toEqual([...Array(perAddress).fill(first), ...Array(perAddress).fill(second)]);
    const refused = await createInvoice(service, { apiKey: project.apiKey });
    expect(refused).toMatchObject({ status: 409, body: { code: 'AMOUNT_UNAVAILABLE' } });
  },
);

test('with six decimals the same exchange pays nothing, and the look-up says that the amount was cut off', async () => {
  const project = await shopOf('tail');
  // Cut off, amounts below 25.001 are the price itself, which the look-up reports instead. Next to a 0, the same happens with 4 decimals.
  const isTold = (amountMicro: bigint) => amountMicro >= 25_001_000n && !/[09]..$/.test(String(amountMicro));
  let invoice = await newInvoice(project);
  while (!isTold(invoice.amountMicro)) invoice = await newInvoice(project);
  const transaction = await pay(invoice, 'rounded-3');
  const { body } = await ask(invoice, transaction);
  expect(body).toMatchObject({ code: 'short', expected: invoice.amount });
  expect(body.likely).toMatchObject({ kind: expect.stringMatching(/^(truncated|rounded)$/), decimals: 3 });
  expect((await read(project, invoice.id)).body.status).toBe('PENDING');
});

test('an address keeps its tail for life, and one of another tail takes no invoice', async () => {
  const project = await shopOf('tail');
  const six = await newInvoice(project);
  const set = (policy: string, micro: number) =>
    runSql(service, 'update projects set policy = $2, max_surcharge_micro = $3 where id = $1', [
      ...[project.id, policy, micro],
    ]);
  // The database itself refuses a limit that contains no code words.
  await expect(set('tail-3', 10_000)).rejects.toMatchObject({ code: '23514' });
  await set('tail-3', 100_000);
  const refused = await eventually(
    () => createInvoice(service, { apiKey: project.apiKey }),
    ({ status }) => status !== 201,
  );
  expect(refused.body).toMatchObject({ code: 'AMOUNT_UNAVAILABLE', detail: expect.stringContaining('"tail-3"') });
  await expect(
    runSql(service, "update addresses set policy = 'tail-3' where project_id = $1", [project.id]),
  ).rejects.toMatchObject({ code: '23514' });
  // Its existing invoices can be paid as before.
  await pay(six, 'exact');
  await untilPaid(project, six);
});
