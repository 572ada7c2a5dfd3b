import { randomBytes } from 'node:crypto';
import { type AccountHex, accountToAddress } from '@quittance/tron/address';
import { expect, test } from 'vitest';
import { uuidV7 } from '../../src/core/domain/ids.ts';
import { type MicroUsdt, microUsdt } from '../../src/core/domain/money.ts';
import { codeWords, type Policy, wordRange } from '../../src/core/domain/policy.ts';
import { DAY_MS, type UnixMs, unixMs } from '../../src/core/domain/time.ts';
import { findCapacityProject, findRecentUse, measureCapacity } from '../../src/core/payments/measure-capacity.ts';
import { insertAddress } from '../../src/core/store/ledger/addresses.ts';
import { saveProject } from '../../src/core/store/ledger/projects.ts';
import { listReserved } from '../../src/faces/operator/subjects/capacity.ts';
import { databaseOfFile } from '../support/postgres.ts';
import { withClient } from '../support/postgres-template.ts';
import { createTestProject, type TestProject } from '../support/service.ts';

const { database, db } = await databaseOfFile(2);

const NOW = unixMs(Date.now());
const SURCHARGE = 200n;

type Address = { id: string; address: string; policy: Policy; isActive: boolean };
type Invoice = { address: Address; requested: MicroUsdt; payable: bigint; at: UnixMs };

function query(text: string, values: unknown[] = []): Promise<Record<string, unknown>[]> {
  return withClient(database.owner, async (client) => (await client.query(text, values)).rows);
}

async function addressesOf(project: TestProject): Promise<Address[]> {
  const rows = await query(
    'select id, address, policy, retired_at from addresses where project_id = $1 order by position',
    [project.id],
  );
  return rows.map((row) => ({
    id: String(row['id']),
    address: String(row['address']),
    policy: row['policy'] as Policy,
    isActive: row['retired_at'] === null,
  }));
}

async function insertInvoices(project: TestProject, invoices: readonly Invoice[]): Promise<void> {
  const ids = invoices.map(({ at }) => uuidV7(at, randomBytes(10)));
  await query(
    `insert into invoices (id, project_id, network, address_id, idempotency_key, external_id, requested_micro,
       payable_micro, checkout_token, created_at, expires_at)
     select i.id, $1, 'devnet', i.address_id, i.id::text, i.id::text, i.requested, i.payable,
       left(replace(reverse(i.id::text), '-', ''), 22), i.at, i.at + interval '30 minutes'
     from unnest($2::uuid[], $3::uuid[], $4::int8[], $5::int8[], $6::timestamptz[]) i (id, address_id, requested, payable, at)`,
    [
      project.id,
      ids,
      invoices.map(({ address }) => address.id),
      invoices.map(({ requested }) => requested.toString()),
      invoices.map(({ payable }) => payable.toString()),
      invoices.map(({ at }) => new Date(at)),
    ],
  );
}

async function measure(project: TestProject, asked?: MicroUsdt[]) {
  const found = await findCapacityProject(db, project.id, NOW);
  if (found === null) throw new Error('no project');
  return measureCapacity(db, found, NOW, asked);
}

/** A reproducible generator, so that a failure can be examined. */
function seededRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** Creates invoices of a few amounts, some with overlapping ranges, over 60 days and on all addresses. */
function inventInvoices(addresses: readonly Address[], randomBelow: (n: number) => number): Invoice[] {
  const requests = [5_000_000n, 5_000_050n, 5_000_150n, 5_000_400n, 900_000_000n].map(microUsdt);
  const taken = new Set<string>();
  const invoices: Invoice[] = [];
  for (let i = 0; i < 160; i++) {
    const [address, requested] = [addresses[randomBelow(addresses.length)], requests[randomBelow(requests.length)]];
    if (address === undefined || requested === undefined) continue;
    const words = address.policy === 'exact' ? [requested] : codeWords(wordRange(requested, SURCHARGE));
    const payable = words[randomBelow(words.length)];
    if (payable === undefined || taken.has(`${address.id} ${payable}`)) continue;
    taken.add(`${address.id} ${payable}`);
    const ageMs = randomBelow(10) < 7 ? randomBelow(30) * DAY_MS : randomBelow(60) * DAY_MS;
    invoices.push({ address, requested, payable, at: unixMs(NOW - ageMs - 1000) });
  }
  return invoices;
}

/** Calculates the counts from their definitions. */
function countByHand(
  policy: Policy,
  addresses: readonly Address[],
  invoices: readonly Invoice[],
  requested: MicroUsdt,
) {
  const words = policy === 'exact' ? [requested] : codeWords(wordRange(requested, SURCHARGE));
  const inRange = invoices.filter(
    ({ payable, address }) => address.policy === policy && words.includes(payable as MicroUsdt),
  );
  const active = addresses.filter((address) => address.policy === policy && address.isActive);
  const reserved = inRange.filter(({ address }) => address.isActive).length;
  const since = (days: number) => inRange.filter(({ at }) => at >= NOW - days * DAY_MS).length;
  return {
    total: BigInt(active.length * words.length),
    free: BigInt(active.length * words.length - reserved),
    used7Days: BigInt(since(7)),
    used30Days: BigInt(since(30)),
  };
}

/** Creates a project of this policy: four addresses with it, one of them retired, and two with the other policy, as after a change. */
async function newProject(policy: Policy): Promise<{ project: TestProject; addresses: Address[]; address: Address }> {
  const project = await createTestProject(db, { addressCount: 0, maxSurchargeMicro: SURCHARGE });
  const brand = { name: 'Shop', supportContact: null, returnUrl: null, embedOrigins: null, accent: null, logoId: null };
  const settings = {
    ...brand,
    maxUnpaid: null,
    maxUnpaidPerMinute: null,
    policy,
    maxSurchargeMicro: SURCHARGE,
    invoiceLifetimeMs: 1_800_000,
  };
  await saveProject(db, { id: project.id, network: 'devnet', archivedAt: null }, settings);
  const policies: Policy[] = ['tail', 'exact', policy, policy, policy];
  for (const [index, each] of policies.entries()) {
    const account = randomBytes(20).toString('hex') as AccountHex;
    const id = uuidV7(NOW, randomBytes(10));
    await insertAddress(db, { id, projectId: project.id, account, address: accountToAddress(account), policy: each });
    if (index === 3) await query('update addresses set retired_at = now() where id = $1', [id]);
  }
  const addresses = await addressesOf(project);
  const [address = expect.fail('no address')] = addresses;
  return { project, addresses, address };
}

test.each([
  ['tail', 1],
  ['tail', 2],
  ['tail', 3],
  ['exact', 4],
  ['exact', 5],
] as const)(
  'counts of %s addresses, retired ones and overlapping amounts among them, are those of a count by hand (seed %i)',
  async (policy, seed) => {
    const { project, addresses } = await newProject(policy);
    const invoices = inventInvoices(addresses, seededRandom(seed));
    await insertInvoices(project, invoices);
    const { amounts } = await measure(project);
    const recent = invoices.filter(({ at }) => at >= NOW - 30 * DAY_MS);
    expect(new Set(amounts.map(({ requestedMicro }) => requestedMicro))).toEqual(
      new Set(recent.map(({ requested }) => requested)),
    );
    for (const { requestedMicro, total, free, used7Days, used30Days } of amounts) {
      const counted = { total, free, used7Days, used30Days };
      expect(counted).toEqual(countByHand(policy, addresses, invoices, requestedMicro));
    }
  },
);

test('an amount that nobody asked for shares what its neighbours took of its range', async () => {
  const { project, addresses, address } = await newProject('tail');
  const [requested, asked] = [microUsdt(7_000_000n), microUsdt(7_000_150n)];
  const words = codeWords(wordRange(requested, SURCHARGE));
  await insertInvoices(
    project,
    words.map((payable) => ({ address, requested, payable, at: unixMs(NOW - DAY_MS) })),
  );
  const { amounts } = await measure(project, [asked]);
  const shared = BigInt(words.filter((word) => word >= asked).length);
  const perAddress = BigInt(codeWords(wordRange(asked, SURCHARGE)).length);
  expect(shared).toBeGreaterThan(0n);
  expect(amounts).toMatchObject([{ used7Days: shared, free: 3n * perAddress - shared, total: 3n * perAddress }]);
  const listed = await listReserved(db, project.id, 'tail', wordRange(asked, SURCHARGE));
  expect(listed.map(({ address: name, reserved }) => [name, reserved])).toEqual([
    [address.address, shared],
    [addresses[2]?.address, 0n],
    [addresses[4]?.address, 0n],
  ]);
});

test('a rate begins with the first use, unless the amount was used before the 30 days', async () => {
  const { project, address } = await newProject('tail');
  const [young, old] = [microUsdt(11_000_000n), microUsdt(12_000_000n)];
  const at = (requested: MicroUsdt, index: number, days: number): Invoice => {
    const payable = codeWords(wordRange(requested, SURCHARGE))[index] ?? 0n;
    return { address, requested, payable, at: unixMs(NOW - days * DAY_MS) };
  };
  await insertInvoices(project, [at(young, 0, 2), at(young, 1, 1), at(old, 0, 2), at(old, 1, 1), at(old, 2, 40)]);
  const { amounts } = await measure(project);
  const rateOf = (requested: MicroUsdt) => amounts.find(({ requestedMicro }) => requestedMicro === requested)?.perDay30;
  expect(rateOf(young)).toBe(1);
  expect(rateOf(old)).toBeCloseTo(2 / 30);
});

test('after a change of policy the rate begins anew, and only addresses of the new policy count', async () => {
  const { project, addresses } = await newProject('exact');
  const tail = addresses.find(({ policy }) => policy === 'tail');
  if (tail === undefined) throw new Error('no address');
  const requested = microUsdt(13_000_000n);
  const [payable = 0n] = codeWords(wordRange(requested, SURCHARGE));
  await insertInvoices(project, [{ address: tail, requested, payable, at: unixMs(NOW - DAY_MS) }]);
  const { amounts } = await measure(project);
  expect(amounts).toMatchObject([{ requestedMicro: requested, total: 3n, free: 3n, used30Days: 0n, daysLeft: null }]);
});

test('where 30 days hold too many invoices, the latest are counted, from the oldest of them on', async () => {
  const { project, address } = await newProject('tail');
  const requested = microUsdt(14_000_000n);
  const words = codeWords(wordRange(requested, SURCHARGE)).slice(0, 6);
  const invoices = words.map((payable, hours) => ({
    address,
    requested,
    payable,
    at: unixMs(NOW - hours * 3_600_000),
  }));
  await insertInvoices(project, invoices);
  const question = {
    projectId: project.id,
    policy: 'tail',
    width: SURCHARGE,
    since7Days: unixMs(NOW - 7 * DAY_MS),
    since30Days: unixMs(NOW - 30 * DAY_MS),
    amounts: { busiest: 1 },
  } as const;
  expect(await findRecentUse(db, { ...question, maxInvoices: 4 })).toMatchObject([
    { used7Days: 4n, used30Days: 4n, countedSince: invoices[3]?.at },
  ]);
  expect(await findRecentUse(db, { ...question, maxInvoices: 7 })).toMatchObject([
    { used30Days: 6n, countedSince: question.since30Days },
  ]);
});

test('where a project has more addresses, retired ones among them, fewer amounts are looked at', async () => {
  const { project, address } = await newProject('tail');
  const invoices = Array.from({ length: 5 }, (_, index): Invoice => {
    const requested = microUsdt(BigInt(20 + index) * 1_000_000n);
    return { address, requested, payable: requested + 7n, at: unixMs(NOW - DAY_MS) };
  });
  await insertInvoices(project, invoices);
  const found = await findCapacityProject(db, project.id, NOW);
  if (found === null) throw new Error('no project');
  expect(found).toMatchObject({ activeAddresses: 3n, retiredAddresses: 1n });
  const looked = async (retired: bigint) =>
    (await measureCapacity(db, { ...found, retiredAddresses: retired }, NOW)).amounts.length;
  expect([await looked(1n), await looked(300_000n), await looked(10_000_000n)]).toEqual([5, 3, 1]);
});

test('a project without an address is low while it has a key, and not once it is closed', async () => {
  const { project, address } = await newProject('tail');
  const requested = microUsdt(30_000_000n);
  const at = unixMs(NOW - DAY_MS);
  await insertInvoices(project, [{ address, requested, payable: requested + 7n, at }]);
  await query('update addresses set retired_at = now() where project_id = $1', [project.id]);
  expect(await measure(project)).toMatchObject({ freeShare: 0, daysLeft: 0, isLow: true });
  await query('update api_keys set revoked_at = now() where project_id = $1', [project.id]);
  const closed = { freeShare: null, daysLeft: null, isLow: false };
  expect(await measure(project)).toMatchObject({ ...closed, amounts: [{ requestedMicro: requested, isLow: false }] });
  const found = await findCapacityProject(db, project.id, NOW);
  if (found === null) throw new Error('no project');
  expect(await measureCapacity(db, found, unixMs(NOW + 90 * DAY_MS))).toEqual({ ...closed, amounts: [] });
});
