import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseAmount } from '../../src/core/domain/money.ts';
import { payScenario } from '../../src/developer/scenarios/pay-scenario.ts';
import { SCENARIO_NAMES, type Scenario, scenarioOf } from '../../src/developer/scenarios/scenarios.ts';
import { type CliOutput, runCli } from '../cli/run-cli.ts';
import {
  call,
  createTestProject,
  eventually,
  inboxOf,
  type Json,
  payableOf,
  startTestService,
  type TestService,
  untilStatus,
  untilTold,
} from '../support/service.ts';
import { created, order } from './ask.ts';
import { runSql } from './sql.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ addressCount: 3 });
});
afterAll(() => service.stop());

type Invoice = { id: string; address: string; amountMicro: bigint; requestedMicro: bigint };
type Kind = 'matched' | 'duplicate' | 'unmatched';
/** A transfer to one of our addresses, which the ledger must therefore contain once. */
type Due = { txId: string; to: string; micro: string; kind: Kind };

async function cli(...args: string[]): Promise<CliOutput> {
  const env = {
    DATABASE_URL: service.connectionString,
    QUITTANCE_DEVNET_NODES: service.devnet.url,
    QUITTANCE_DEVNET_USDT: service.devnet.usdtContract,
  };
  const reply = await runCli([...args, '--json'], { env });
  expect(reply.code, `${args.join(' ')}: ${reply.stdout}`).toBe(0);
  return reply;
}

async function newInvoice(amount: string): Promise<Invoice> {
  const { invoiceId } = await created(service, { body: order({ amount }) });
  const requested = parseAmount(amount);
  if (requested.kind !== 'ok') throw new Error(requested.reason);
  return { id: invoiceId, requestedMicro: requested.amountMicro, ...(await payableOf(service, invoiceId)) };
}

async function untilRecorded(): Promise<void> {
  service.devnet.mineUntilSolid();
  const { number } = service.devnet.solid();
  await eventually(
    async () => (await call(`${service.metricsUrl}/readyz`)).body?.networks?.devnet?.solidBlock ?? 0,
    (solid) => solid >= number,
  );
}

const contracts = () => ({
  usdt: service.devnet.usdtContract,
  fakeUsdt: service.devnet.fakeUsdtContract,
  multisend: service.devnet.multisendContract,
});

/** Scenarios whose cause no other invoice of this test makes less likely. Missing digits may have any of three causes. */
const SURE: readonly Scenario[] = ['fee', 'requested-amount', 'rounded', 'typo', 'swapped', 'to-retired'];
const CUT_OFF = ['REQUESTED_AMOUNT', 'ROUNDED', 'TRUNCATED'];

/** Pays in a scenario, and returns the transfers that the ledger should contain. */
async function pay(scenario: Scenario, invoice: Invoice, extra: { second?: Invoice } = {}): Promise<Due[]> {
  const { sent } = await payScenario(service.payer, {
    ...{ scenario, contracts: contracts(), invoice, requestedMicro: invoice.requestedMicro, ...extra },
    retiredAddress: service.project.addresses[2] ?? '',
  });
  // The network decides the result of `orphaned`; this call makes an exact payment.
  const { kinds } = scenarioOf(scenario);
  return kinds.map((kind, index) => {
    const { txId, to, amountMicro } = sent[index] as (typeof sent)[number];
    return { txId, to, micro: amountMicro.toString(), kind };
  });
}

const ledger = () =>
  runSql(
    service,
    `select encode(t.tx_id, 'hex') as "txId", a.address as "to", t.amount_micro::text as micro, t.kind, t.log_index as "logIndex",
       t.id, t.invoice_id as "invoiceId"
     from transfers t join addresses a on a.id = t.address_id order by t.id`,
  );

const events = () =>
  runSql(
    service,
    'select id, type, invoice_id as "invoiceId", transfer_id as "transferId", body from events order by id',
  );

const key = ({ txId, to, micro, kind }: Record<string, unknown>) => `${txId} ${to} ${micro} ${kind}`;

test('every incoming transfer is in the ledger exactly once, whatever the scenario, over restarts and rescans', async () => {
  const other = await createTestProject(service.db);
  const [used = '', , retired = ''] = service.project.addresses;
  await cli('address', 'retire', retired, '--project', service.project.projectId);
  const due: Due[] = [];
  const reasons = new Map<string, readonly string[]>();
  let price = 30;
  const nextInvoice = () => {
    price += 7;
    return newInvoice(`${price}.00`);
  };
  const run = async (scenario: Scenario, extra: { second?: Invoice } = {}) => {
    const invoice = await nextInvoice();
    const made = await pay(scenario, invoice, extra);
    due.push(...made);
    return { invoice, made };
  };
  const isLate = (scenario: Scenario) => scenario === 'late' || scenario === 'orphaned' || scenario === 'two-in-one';
  const plain = SCENARIO_NAMES.filter((scenario) => !isLate(scenario));
  const runAll = async (scenarios: readonly Scenario[]) => {
    for (const scenario of scenarios) {
      const { made } = await run(scenario);
      const { cause } = scenarioOf(scenario);
      if (SURE.includes(scenario))
        for (const { txId } of made)
          reasons.set(txId, CUT_OFF.some((code) => cause.codes.includes(code)) ? CUT_OFF : cause.codes);
    }
  };

  // While the service is watching.
  await runAll(plain);
  await run('two-in-one', { second: await nextInvoice() });
  const twin = await nextInvoice();
  const parts = [twin, twin].map(({ address, amountMicro }) => ({ to: address, amountMicro }));
  const { usdt, multisend } = contracts();
  const twinTx = await service.payer.multisend({ multisendContract: multisend, token: usdt, transfers: parts });
  const twinDue = { txId: twinTx, to: twin.address, micro: twin.amountMicro.toString() };
  due.push({ ...twinDue, kind: 'matched' }, { ...twinDue, kind: 'duplicate' });
  await untilRecorded();

  // An orphaned block takes its payment with it. One whose transactions are mined again pays once.
  for (const keepTransactions of [false, true]) {
    const { invoice, made } = await run('orphaned');
    service.devnet.mine();
    await untilStatus(service, invoice.id, 'CONFIRMING');
    service.devnet.fork({ depth: 1, keepTransactions });
    if (keepTransactions) continue;
    due.splice(due.indexOf(made[0] as Due), 1);
    await untilStatus(service, invoice.id, 'PENDING');
  }
  await untilRecorded();

  // While no one is watching, and to an address that was retired with an unpaid invoice.
  const unpaid = await nextInvoice();
  expect(unpaid.address).toBe(used);
  const late = await nextInvoice();
  const prepared = await Promise.all(plain.map(() => nextInvoice()));
  await cli('address', 'retire', used, '--project', service.project.projectId);
  await service.stopService();
  due.push(...(await pay('fee', unpaid)), ...(await pay('twice', unpaid)));
  for (const [index, scenario] of plain.entries()) due.push(...(await pay(scenario, prepared[index] as Invoice)));
  service.devnet.mineUntilSolid();
  await service.restart();
  await untilRecorded();
  await untilStatus(service, unpaid.id, 'PAID');

  // Late: after the deadline by the chain's clock.
  service.devnet.mine(1, { timestampMs: service.devnet.head().timestampMs + 45 * 60_000 });
  service.devnet.mineUntilSolid();
  await untilStatus(service, late.id, 'EXPIRED');
  due.push(...(await pay('late', late)));
  await untilRecorded();
  await untilStatus(service, late.id, 'PAID');

  const rows = await ledger();
  expect(rows.map(key).toSorted()).toEqual(due.map(key).toSorted());
  for (const kind of ['matched', 'duplicate', 'unmatched']) {
    const sum = (list: readonly Record<string, unknown>[]) =>
      list.filter((row) => row['kind'] === kind).reduce((total, row) => total + BigInt(String(row['micro'])), 0n);
    expect(sum(rows), kind).toBe(sum(due));
    expect(sum(rows)).toBeGreaterThan(0n);
  }
  expect(new Set(rows.map(({ txId, logIndex }) => `${txId}:${logIndex}`)).size).toBe(rows.length);

  // Each has one event with its own facts.
  await untilTold(service);
  const reported = await events();
  for (const row of rows) {
    const own = reported.filter(({ transferId }) => transferId === row['id']);
    const type = { matched: 'invoice.paid', duplicate: 'transfer.duplicate', unmatched: 'transfer.unmatched' };
    expect(own.map((event) => event['type'])).toEqual([type[row['kind'] as Kind]]);
    const { data } = JSON.parse(String(own[0]?.['body']));
    const facts = row['kind'] === 'matched' ? data.payment.transaction : data;
    expect(facts).toMatchObject({ txId: row['txId'], logIndex: row['logIndex'] });
    expect(facts.amount.replace('.', '').replace(/^0+/, '')).toBe(row['micro']);
    expect('invoiceId' in data).toBe(row['kind'] !== 'unmatched');
  }
  expect(reported.filter(({ type }) => String(type).startsWith('transfer.'))).toHaveLength(
    rows.filter(({ kind }) => kind !== 'matched').length,
  );
  await eventually(
    async () => new Set((await inboxOf(service)).map(({ id }: Json) => id)).size,
    (count) => count === reported.length,
  );

  // Reading every block again finds nothing new, and the chain agrees with the ledger.
  const { number } = service.devnet.solid();
  for (let i = 0; i < 2; i++) {
    await cli('chain', 'rescan', '--from', '1', '--to', String(number), '--network', 'devnet');
  }
  await service.restart();
  await untilRecorded();
  expect(await ledger()).toEqual(rows);
  expect(await events()).toEqual(reported);
  await cli('reconcile');

  // Each unmatched transfer has a reason code, and none claims certainty.
  const { json } = await cli('transfers', 'list', '--project', service.project.projectId, '--all', '--limit', '500');
  expect(json.nextBefore).toBeNull();
  expect(json.data.map(({ txId, logIndex }: Json) => `${txId}:${logIndex}`).toSorted()).toEqual(
    rows
      .filter(({ kind }) => kind !== 'matched')
      .map(({ txId, logIndex }) => `${txId}:${logIndex}`)
      .toSorted(),
  );
  for (const { txId, kind, reason } of json.data) {
    expect(reason.code).toMatch(/^[A-Z]+(_[A-Z]+)*$/);
    expect(['high', 'medium', 'low']).toContain(reason.confidence);
    if (kind === 'duplicate') expect(reason.code).toBe('PAID_TWICE');
    const likely = reasons.get(txId);
    if (likely !== undefined) expect(reason.code).toBeOneOf([...likely]);
  }
  const theirs = await cli('transfers', 'list', '--project', other.projectId, '--all', '--kind', 'all');
  expect(theirs.json.data).toEqual([]);
});

test('the ledger is append-only, and a transfer can stand in it only once', async () => {
  for (const text of [
    "update transfers set kind = 'matched'",
    'update transfers set amount_micro = 1',
    'delete from transfers',
    'truncate transfers cascade',
  ]) {
    await expect(runSql(service, text), text).rejects.toThrow();
  }
  await expect(
    runSql(
      service,
      `insert into transfers select copy.* from transfers t,
         jsonb_populate_record(t, jsonb_build_object('id', gen_random_uuid())) copy where t.kind = 'unmatched' limit 1`,
    ),
  ).rejects.toMatchObject({ code: '23505' });
});
