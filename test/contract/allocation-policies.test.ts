import { randomBytes, randomUUID } from 'node:crypto';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { accountToAddress, parseAddress } from '@quittance/tron/address';
import { accountFromPublicKey } from '@quittance/tron/public-key';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { uuidV7 } from '../../src/core/domain/ids.ts';
import { insertAddress } from '../../src/core/store/ledger/addresses.ts';
import { type CliOutput, runCli } from '../cli/run-cli.ts';
import { DAMM } from '../support/damm-table.ts';
import {
  createTestProject,
  eventually,
  startTestService,
  type TestProject,
  type TestService,
  untilServed,
} from '../support/service.ts';
import { longTest } from '../support/some-cases.ts';
import { created, expectProblem, get, order, post } from './ask.ts';
import { runSql } from './sql.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

async function cli(...args: string[]): Promise<CliOutput> {
  const reply = await runCli([...args, '--json'], { env: { DATABASE_URL: service.connectionString } });
  return reply;
}

async function succeed(...args: string[]): Promise<CliOutput['json']> {
  const reply = await cli(...args);
  expect(reply.code, reply.stdout).toBe(0);
  return reply.json;
}

function newAddresses(count: number): string[] {
  return Array.from({ length: count }, () =>
    accountToAddress(accountFromPublicKey(secp256k1.getPublicKey(secp256k1.utils.randomSecretKey(), false))),
  );
}

type Payable = { address: string; payableAmount: string; requestedAmount: string };

async function payable(project: TestProject, invoiceId: string): Promise<Payable> {
  return (await get(service, `/v1/invoices/${invoiceId}?expand=payment`, project)).body.payment;
}

async function allocate(project: TestProject, amount: string): Promise<Payable> {
  return payable(project, (await created(service, { project, body: order({ amount }) })).invoiceId);
}

/** Sends one of many requests at the same time, some of which a busy machine refuses. */
const servedPost = (project: TestProject, amount: string) =>
  untilServed(() => post(service, { project, body: order({ amount }) }));

/** Creates a project that had the policy exact before the service saw it. */
async function exactProject(addressCount: number): Promise<TestProject> {
  const project = await createTestProject(service.db, { addressCount: 0 });
  await runSql(service, "update projects set policy = 'exact' where id = $1", [project.id]);
  const addresses = newAddresses(addressCount);
  for (const address of addresses) {
    const parsed = parseAddress(address);
    if (parsed.kind !== 'ok') throw new Error(parsed.reason);
    const id = uuidV7(Date.now(), randomBytes(10));
    await insertAddress(service.db, { id, projectId: project.id, ...parsed, policy: 'exact' });
  }
  return { ...project, addresses };
}

describe('exact', () => {
  test('the payable amount is the requested amount; each further invoice of the same amount takes another address', async () => {
    const project = await exactProject(3);
    const amounts = ['25', '25.00', '25.000000', '0.000001', '999999999999.999999', '19.99'];
    const payables = [];
    for (const amount of amounts) payables.push(await allocate(project, amount));
    for (const { payableAmount, requestedAmount } of payables) expect(payableAmount).toBe(requestedAmount);
    expect(new Set(payables.slice(0, 3).map(({ address }) => address))).toEqual(new Set(project.addresses));
    // Other amounts need no further addresses, because the fewest are used.
    expect(new Set(payables.slice(3).map(({ address }) => address)).size).toBe(1);
    expect(project.addresses).toContain(payables[3]?.address);
  });

  test('an amount is reserved for ever: an invoice that expired keeps its address', async () => {
    const project = await exactProject(2);
    const { invoiceId, expiresAt } = await created(service, { project, body: order({ amount: '12' }) });
    const first = await payable(project, invoiceId);
    service.devnet.mine(1, { timestampMs: Math.ceil(Date.parse(expiresAt) / 3000) * 3000 + 3000 });
    service.devnet.mineUntilSolid();
    service.clock.advance(31 * 60_000);
    await eventually(
      () => get(service, `/v1/invoices/${invoiceId}`, project),
      ({ body }) => body.status === 'EXPIRED',
    );
    const second = await allocate(project, '12');
    expect(second.payableAmount).toBe('12.000000');
    expect(second.address).not.toBe(first.address);
    expectProblem(await post(service, { project, body: order({ amount: '12' }) }), 409, 'AMOUNT_UNAVAILABLE');
  });

  test('200 concurrent creates of one amount take every address once, and no more', async () => {
    const project = await exactProject(60);
    const replies = await Promise.all(Array.from({ length: 200 }, () => servedPost(project, '25.00')));
    const made = replies.filter(({ status }) => status === 201);
    for (const refused of replies.filter(({ status }) => status !== 201)) {
      expectProblem(refused, 409, 'AMOUNT_UNAVAILABLE');
    }
    const payables = await Promise.all(made.map(({ body }) => payable(project, body.invoiceId)));
    expect(payables.map(({ address }) => address).toSorted()).toEqual(project.addresses.toSorted());
    expect(new Set(payables.map(({ payableAmount }) => payableAmount))).toEqual(new Set(['25.000000']));
  });
});

test('AMOUNT_UNAVAILABLE recovers the moment an address is added, with no restart: the same request then creates', async () => {
  const project = await exactProject(1);
  await allocate(project, '25');
  const request = { project, body: order({ amount: '25' }), headers: { 'idempotency-key': randomUUID() } };
  for (let i = 0; i < 3; i++) {
    const problem = expectProblem(await post(service, request), 409, 'AMOUNT_UNAVAILABLE');
    expect(problem.detail).toMatch(/add/i);
    expect(problem.detail).toMatch(/address/i);
  }
  const [address = ''] = newAddresses(1);
  await succeed('address', 'add', '--no-check', '--project', project.projectId, address);
  const reply = await post(service, request);
  expect(reply.status, reply.text).toBe(201);
  expect(reply.headers['idempotent-replayed']).toBeUndefined();
  expect(await payable(project, reply.body.invoiceId)).toMatchObject({ address, payableAmount: '25.000000' });
  const replay = await post(service, request);
  expect([replay.status, replay.headers['idempotent-replayed'], replay.body]).toEqual([201, 'true', reply.body]);
});

describe('an address serves one policy for life', () => {
  test('changing the policy needs addresses of the new one, and neither policy ever uses an address of the other', async () => {
    const project = await createTestProject(service.db, { addressCount: 2 });
    const tails = [await allocate(project, '25'), await allocate(project, '25')];
    await succeed('project', 'update', project.projectId, '--policy', 'exact');
    const attempt = () => post(service, { project, body: order({ amount: '40' }) });
    // Running services notice a changed project within ten seconds.
    const refused = await eventually(attempt, ({ status }) => status !== 201);
    const problem = expectProblem(refused, 409, 'AMOUNT_UNAVAILABLE');
    expect(problem.detail).toMatch(/exact/);

    const again = await cli(
      'address',
      'add',
      '--no-check',
      '--policy',
      'exact',
      '--project',
      project.projectId,
      ...project.addresses,
    );
    expect(again.code).not.toBe(0);
    expectProblem(await attempt(), 409, 'AMOUNT_UNAVAILABLE');
    await expect(
      runSql(service, "update addresses set policy = 'exact' where project_id = $1", [project.id]),
    ).rejects.toMatchObject({ code: '23514' });

    const [address = ''] = newAddresses(1);
    await succeed('address', 'add', '--no-check', '--project', project.projectId, address);
    expect(await allocate(project, '25')).toEqual({
      address,
      requestedAmount: '25.000000',
      payableAmount: '25.000000',
      transaction: null,
    });
    expectProblem(await post(service, { project, body: order({ amount: '25' }) }), 409, 'AMOUNT_UNAVAILABLE');

    await succeed('project', 'update', project.projectId, '--policy', 'tail');
    const back = await eventually(
      () => post(service, { project, body: order({ amount: '25' }) }),
      ({ status }) => status === 201,
    );
    const tail = await payable(project, back.body.invoiceId);
    expect(project.addresses).toContain(tail.address);
    expect(isDamm(tail.payableAmount)).toBe(true);
    for (const { payableAmount } of tails) expect(isDamm(payableAmount)).toBe(true);

    const mixed = await runSql(
      service,
      `select a.address from addresses a join invoices i on i.address_id = a.id
       group by a.address, a.policy having bool_or((i.payable_micro = i.requested_micro) <> (a.policy = 'exact'))`,
    );
    expect(mixed).toEqual([]);
  });
});

function isDamm(amount: string): boolean {
  const digits = amount.replace('.', '');
  let state = '0';
  for (const digit of digits) state = DAMM[Number(state)]?.[Number(digit)] ?? 'x';
  return state === '0' && !digits.endsWith('0');
}

/** Returns the amounts that payers, wallets and exchanges may turn an amount into, in micro-USDT. */
function mistakesWith(micro: bigint): bigint[] {
  const digits = micro.toString();
  const changed: string[] = [];
  for (let at = 0; at < digits.length; at++) {
    for (const digit of '0123456789') changed.push(digits.slice(0, at) + digit + digits.slice(at + 1));
    changed.push(digits.slice(0, at) + (digits[at + 1] ?? '') + (digits[at] ?? '') + digits.slice(at + 2));
  }
  const amounts = changed.map(BigInt);
  for (let decimals = 0; decimals <= 5; decimals++) {
    const unit = 10n ** BigInt(6 - decimals);
    amounts.push((micro / unit) * unit, ((micro + unit / 2n) / unit) * unit, ((micro + unit - 1n) / unit) * unit);
  }
  for (let places = 1; places <= 6; places++) amounts.push(micro * 10n ** BigInt(places));
  return amounts.filter((amount) => amount !== micro);
}

describe('at 100 % occupancy', () => {
  longTest(
    '900 invoices of one amount take exactly the 900 code words of its cent, and the next is refused',
    async () => {
      const project = await createTestProject(service.db);
      const payables: string[] = [];
      for (let batch = 0; batch < 18; batch++) {
        const replies = await Promise.all(Array.from({ length: 50 }, () => servedPost(project, '25.00')));
        expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([201]));
      }
      expectProblem(await post(service, { project, body: order({ amount: '25.00' }) }), 409, 'AMOUNT_UNAVAILABLE');
      const rows = await runSql(service, 'select payable_micro::text as micro from invoices where project_id = $1', [
        project.id,
      ]);
      for (const { micro } of rows) payables.push(String(micro));
      const words = Array.from({ length: 10_000 }, (_, tail) => String(25_000_000 + tail)).filter(isDamm);
      expect(words).toHaveLength(900);
      expect(words.slice(0, 3)).toEqual(['25000009', '25000014', '25000023']);
      expect(payables.toSorted()).toEqual(words);
    },
  );

  longTest(
    'no mistake with one invoice is the amount of another, in a shop of prices that differ by such mistakes',
    async () => {
      const project = await createTestProject(service.db, { maxSurchargeMicro: 500n });
      const prices = ['25', '24', '26', '52', '2.5', '250', '25.1', '15', '20', '19', '5', '2', '0.25', '25.0001'];
      for (const amount of prices) {
        const replies = await Promise.all(Array.from({ length: 46 }, () => servedPost(project, amount)));
        expect(replies.filter(({ status }) => status === 409).length, amount).toBeGreaterThan(0);
      }
      const rows = await runSql(service, 'select payable_micro::text as micro from invoices where project_id = $1', [
        project.id,
      ]);
      const reserved = new Set(rows.map(({ micro }) => BigInt(String(micro))));
      expect(reserved.size).toBe(rows.length);
      expect(reserved.size).toBeGreaterThan(500);
      const hits = [...reserved].flatMap((micro) =>
        mistakesWith(micro)
          .filter((mistake) => reserved.has(mistake))
          .map((mistake) => [micro, mistake]),
      );
      expect(hits).toEqual([]);
    },
  );
});
