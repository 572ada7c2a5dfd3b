import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Cause } from '../../src/core/domain/mismatch.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { diagnoseTransfers } from '../../src/core/payments/mismatch/diagnose-transfers.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { listTransfers } from '../../src/faces/operator/subjects/transfers.ts';
import { runSql } from '../contract/sql.ts';
import {
  call,
  createInvoice,
  createTestProject,
  eventually,
  type Json,
  payableOf,
  startTestService,
  type TestService,
  untilStatus,
} from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ addressCount: 2 });
});
afterAll(() => service.stop());

type Created = { id: string; externalId: string; address: string; amountMicro: bigint };

async function create(amount: string): Promise<Created> {
  const externalId = `order-${randomUUID()}`;
  const { body } = await createInvoice(service, { body: { amount, externalId } });
  return { id: body.invoiceId, externalId, ...(await payableOf(service, body.invoiceId)) };
}

/** Sends an amount and waits until it's recorded. Returns the transfer's id in the ledger. */
async function send(to: string, amountMicro: bigint): Promise<string> {
  const txId = await service.payer.transfer({ contract: service.devnet.usdtContract, to, amountMicro });
  service.devnet.mineUntilSolid();
  const rows = await eventually(
    () => runSql(service, `select id from transfers where encode(tx_id, 'hex') = $1`, [txId]),
    (found) => found.length === 1,
  );
  return rows[0]?.['id'] as string;
}

async function causesOf(transferId: string): Promise<Cause[]> {
  return (await diagnoseTransfers(service.db, [transferId])).get(transferId) ?? [];
}

test.each([
  ['a fee of 1 USDT deducted', '31.00', 'FEE_DEDUCTED', (micro: bigint) => micro - 1_000_000n],
  ['one digit wrong', '42.00', 'ONE_DIGIT_WRONG', (micro: bigint) => (micro % 10n === 9n ? micro - 1n : micro + 1n)],
  ['the requested amount', '64.00', 'REQUESTED_AMOUNT', () => 64_000_000n],
  ['twice the amount', '75.00', 'PAID_TWICE', (micro: bigint) => micro * 2n],
  ['the decimal point forgotten', '0.86', 'POINT_MISPLACED', (micro: bigint) => micro * 1_000_000n],
])('%s: the cause is named with its invoice', async (_name, amount, code, slip) => {
  const { externalId, address, amountMicro } = await create(amount);
  const arrivedMicro = slip(amountMicro);
  const [first] = await causesOf(await send(address, arrivedMicro));
  expect(first).toMatchObject({
    code,
    confidence: 'high',
    invoices: [
      { externalId, status: 'PENDING', payableMicro: amountMicro, differenceMicro: arrivedMicro - amountMicro },
    ],
  });
});

test('an amount without its last decimal is told as such, never as certain: the last digit may be mistyped as well', async () => {
  const { externalId, address, amountMicro } = await create('53.00');
  const arrivedMicro = (amountMicro / 10n) * 10n;
  const [first] = await causesOf(await send(address, arrivedMicro));
  expect(first?.code).toMatch(/^(ROUNDED|TRUNCATED)$/);
  expect(first).toMatchObject({ invoices: [{ externalId }] });
  // 5 decimals, or fewer if those before it are zeros.
  const unit = 10n ** BigInt(6 - Number(first?.evidence['decimals']));
  expect(unit).toBeGreaterThan(1n);
  expect((amountMicro / unit) * unit).toBe(arrivedMicro);
});

test('an amount of an invoice at another address is told with the address where it belongs', async () => {
  const { externalId, address, amountMicro } = await create('97.00');
  const other = service.project.addresses.find((candidate) => candidate !== address) ?? '';
  const [first] = await causesOf(await send(other, amountMicro));
  expect(first).toMatchObject({
    code: 'OTHER_ADDRESS',
    evidence: { expectedAddress: address },
    invoices: [{ externalId, differenceMicro: 0n }],
  });
});

test('two invoices in one transfer, and one invoice in two, are told', async () => {
  const [one, two] = [await create('108.00'), await create('119.00')];
  const sum = await causesOf(await send(one.address, one.amountMicro + two.amountMicro));
  expect(sum[0]).toMatchObject({ code: 'SUM_OF_INVOICES' });
  expect(new Set(sum[0]?.invoices.map(({ externalId }) => externalId))).toEqual(
    new Set([one.externalId, two.externalId]),
  );
  const whole = await create('131.00');
  await send(whole.address, 50_300_000n);
  // About 80.70, which no mistake could turn into another invoice's amount.
  const rest = await causesOf(await send(whole.address, whole.amountMicro - 50_300_000n));
  expect(rest[0]).toMatchObject({
    code: 'PART_OF_INVOICE',
    evidence: { otherParts: '50.300000' },
    invoices: [{ externalId: whole.externalId }],
  });
});

test('an earlier transfer of the sender that was sent back is no part of a payment', async () => {
  const { address, amountMicro } = await create('153.00');
  const sentBack = await send(address, 80_000_000n);
  await resolve(sentBack, 'refunded');
  const [first] = await causesOf(await send(address, amountMicro - 80_000_000n));
  expect(first?.code).not.toBe('PART_OF_INVOICE');
});

test('a payment that came again is PAID_TWICE, and the one that paid is left out', async () => {
  const { id, externalId, address, amountMicro } = await create('142.00');
  const paying = await send(address, amountMicro);
  await untilStatus(service, id, 'PAID');
  const again = await send(address, amountMicro);
  const causes = await diagnoseTransfers(service.db, [paying, again, randomUUID()]);
  expect([...causes.keys()]).toEqual([again]);
  expect(causes.get(again)?.[0]).toMatchObject({
    code: 'PAID_TWICE',
    confidence: 'high',
    evidence: { sender: service.payer.address },
    invoices: [{ externalId, status: 'PAID', differenceMicro: 0n }],
  });
});

test('dust is told, and an amount beyond all invoices does no harm', async () => {
  const address = service.project.addresses[0] ?? '';
  expect((await causesOf(await send(address, 3n)))[0]).toMatchObject({ code: 'DUST', invoices: [] });
  const [{ id: beyond } = { id: '' }] = await copyTransfer({ amount: (2n ** 200n).toString() });
  expect((await causesOf(beyond))[0]).toMatchObject({ code: 'UNKNOWN', confidence: 'low' });
});

test('what came from our own addresses, a known depositor, or an imitation of either is told by its sender', async () => {
  const { addresses } = service.project;
  const codes: (string | undefined)[] = [];
  for (const from of addresses) {
    const [transfer] = await copyTransfer({ amount: '500000000', from });
    const [cause] = await causesOf(transfer?.id ?? '');
    const code = transfer?.address === from ? 'SELF_TRANSFER' : 'OWN_DEPOSIT';
    expect(cause).toMatchObject({ code, confidence: 'high' });
    codes.push(cause?.code);
  }
  expect(codes.sort()).toEqual(['OWN_DEPOSIT', 'SELF_TRANSFER']);
  const own = addresses[0] ?? '';
  const imitation = `${own.slice(0, 4)}${'x'.repeat(26)}${own.slice(30)}`;
  const [fromImitation] = await copyTransfer({ amount: '20', from: imitation });
  expect((await causesOf(fromImitation?.id ?? ''))[0]).toMatchObject({
    code: 'LOOK_ALIKE_SENDER',
    evidence: { sender: imitation, resembles: own },
  });
  const depositor = `T${'y'.repeat(33)}`;
  const [earlier] = await copyTransfer({ amount: '300000000', from: depositor });
  expect((await causesOf(earlier?.id ?? ''))[0]).toMatchObject({ code: 'UNKNOWN' });
  await resolve(earlier?.id ?? '', 'own-deposit');
  const [later] = await copyTransfer({ amount: '200000000', from: depositor });
  expect((await causesOf(later?.id ?? ''))[0]).toMatchObject({
    code: 'OWN_DEPOSIT',
    evidence: { reason: 'earlier-deposit' },
  });
});

// Everything above has been sent by now.
test('shops are told over HTTP of each what operators are, page by page, and of no others', async () => {
  const ask = async (query: string, apiKey = service.project.apiKey): Promise<{ status: number; body: Json }> =>
    call(`${service.url}/v1/transfers${query}`, { headers: { 'x-api-key': apiKey } });
  const wanted = { projectId: service.project.projectId, state: 'all', limit: '500' } as const;
  const list = listTransfers.read(wanted, unixMs(0));
  const { view: told } = await listTransfers.run({ db: service.db }, commandActor('test'), list);
  expect(told.data.length).toBeGreaterThan(10);
  const expected = told.data.map(({ transferId, kind, amount, invoice, reason, nearestInvoice, claimedBy }) => {
    return { transferId, kind, amount, invoice, reason, nearestInvoice, claimedBy };
  });
  const pages: Json[][] = [];
  for (let query = '?limit=4'; query !== ''; ) {
    const { status, body } = await ask(query);
    expect(status).toBe(200);
    pages.push(body.data);
    query = body.next === null ? '' : `?limit=4&after=${body.next}`;
  }
  expect(pages.slice(0, -1).map(({ length }) => length)).toEqual(Array(pages.length - 1).fill(4));
  expect(pages.flat()).toEqual(expected.toReversed().map((each) => expect.objectContaining(each)));
  const [first] = pages[0] ?? [];
  expect(Object.keys(first ?? {})).toEqual([
    ...['transferId', 'txId', 'logIndex', 'blockNumber', 'blockTime', 'from', 'to', 'amount'],
    ...['kind', 'invoice', 'reason', 'nearestInvoice', 'claimedBy', 'refund'],
  ]);
  const duplicates = (await ask('?kind=duplicate')).body.data;
  expect(duplicates.map(({ kind }: Json) => kind)).toEqual(duplicates.map(() => 'duplicate'));
  const matched = (await ask('?kind=matched')).body.data;
  expect(matched.every(({ reason, invoice }: Json) => reason === null && invoice !== null)).toBe(true);
  expect([duplicates.length, matched.length].every((length) => length > 0)).toBe(true);
  const stranger = await createTestProject(service.db);
  expect((await ask('', stranger.apiKey)).body).toEqual({ data: [], next: null });
});

test('500 transfers are diagnosed at once, and no more', async () => {
  const rows = await copyTransfer({ amount: '7', from: `T${'z'.repeat(33)}`, count: 500 });
  const ids = rows.map(({ id }) => id);
  const causes = await diagnoseTransfers(service.db, ids);
  expect(causes.size).toBe(500);
  expect([...causes.values()].every(([first]) => first?.code === 'DUST')).toBe(true);
  await expect(diagnoseTransfers(service.db, [...ids, randomUUID()])).rejects.toThrow(RangeError);
});

async function resolve(transferId: string, resolution: 'refunded' | 'own-deposit'): Promise<void> {
  await runSql(
    service,
    `insert into transfer_resolutions (project_id, transfer_id, resolution, note, resolved_by, resolved_at)
     select project_id, id, $2, '', 'test', now() from transfers where id = $1`,
    [transferId, resolution],
  );
}

/** Adds transfers that no wallet on devnet can send, as copies of a recorded one with another amount and sender. */
async function copyTransfer(as: { amount: string; from?: string; count?: number }) {
  return (await runSql(
    service,
    `insert into transfers (id, project_id, network, address_id, tx_id, log_index, block_number, block_id, block_time,
       from_address, amount_micro, kind, producer, verified, nodes)
     select gen_random_uuid(), t.project_id, t.network, t.address_id,
       sha256(convert_to(n::text || $1 || coalesce($2, ''), 'UTF8')), 0, t.block_number, t.block_id, t.block_time,
       coalesce($2, t.from_address), $1::numeric, 'unmatched', t.producer, t.verified, t.nodes
     from (select * from transfers order by block_number desc, id limit 1) t, generate_series(1, $3) n
     returning id, (select address from addresses a where a.id = address_id)`,
    [as.amount, as.from ?? null, as.count ?? 1],
  )) as { id: string; address: string }[];
}

test.each(['kind=paid', 'after=inv_1', 'limit=0', 'limit=101', 'state=open', 'kind=matched&kind=matched'])(
  'GET /v1/transfers?%s is refused by its name',
  async (query) => {
    const headers = { 'x-api-key': service.project.apiKey };
    const { status, body } = await call(`${service.url}/v1/transfers?${query}`, { headers });
    expect({ status, code: body.code }).toEqual({ status: 400, code: 'INVALID_REQUEST' });
    expect(body.errors).toEqual([expect.objectContaining({ field: query.split('=')[0] })]);
  },
);
