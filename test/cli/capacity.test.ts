import { randomBytes } from 'node:crypto';
import { type AccountHex, accountToAddress, type TronAddress } from '@quittance/tron/address';
import { expect, test } from 'vitest';
import { decodeId, encodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import { microUsdt } from '../../src/core/domain/money.ts';
import { codeWords, type Policy, wordRange } from '../../src/core/domain/policy.ts';
import { insertAddress } from '../../src/core/store/ledger/addresses.ts';
import { insertProject } from '../../src/core/store/ledger/projects.ts';
import { type CliOutput, openLedger, runCli } from './run-cli.ts';

const { db, env, query } = await openLedger();

function capacity(...args: string[]): Promise<CliOutput> {
  return runCli(['address', 'capacity', ...args], { env });
}

type Address = { id: string; address: TronAddress };

/** A project with the narrowest surcharge: 9 code words for each amount and address. */
async function newProject(policy: Policy, addressCount: number): Promise<{ id: string; addresses: Address[] }> {
  const id = uuidV7(Date.now(), randomBytes(10));
  const settings = { name: 'Shop', network: 'nile', maxSurchargeMicro: 100n, invoiceLifetimeMs: 1_800_000 } as const;
  await insertProject(db, { ...settings, id, policy });
  const addresses: Address[] = [];
  for (let i = 0; i < addressCount; i++) {
    const account = randomBytes(20).toString('hex') as AccountHex;
    const entry = { id: uuidV7(Date.now(), randomBytes(10)), address: accountToAddress(account) };
    await insertAddress(db, { ...entry, projectId: id, account });
    addresses.push(entry);
  }
  return { id: encodeId('prj', id), addresses };
}

/** Inserts an invoice that was created some days ago. */
function take(address: Address | undefined, requested: bigint, payable: bigint, daysAgo: number): Promise<unknown> {
  const at = Date.now() - daysAgo * 86_400_000;
  const id = uuidV7(at, randomBytes(10));
  return query(
    `insert into invoices (id, project_id, network, address_id, idempotency_key, external_id, requested_micro,
       payable_micro, checkout_token, created_at, expires_at)
     select $1::uuid, project_id, network, id, $1::uuid::text, $1::uuid::text, $3, $4, $5, $6, $6::timestamptz + interval '30 minutes'
     from addresses where id = $2`,
    [id, address?.id, requested.toString(), payable.toString(), randomBytes(8).toString('hex'), new Date(at)],
  );
}

/** Returns when a project was created, to the millisecond, as stored in the database. */
async function createdAtOf(projectId: string): Promise<string> {
  const [row] = await query('select created_at from projects where id = $1', [decodeId('prj', projectId)]);
  return new Date(row?.['created_at'] as Date).toISOString();
}

const wordAt = (requested: bigint, index: number) => codeWords(wordRange(microUsdt(requested), 100n))[index] ?? 0n;

test('with no project yet, it says how to make one', async () => {
  expect(await capacity()).toMatchObject({ code: 3, stderr: expect.stringContaining('quittance project create') });
});

test('a project that nobody used is good, and one without an address says what to do', async () => {
  const { id } = await newProject('tail', 1);
  const unused = await capacity('--project', id);
  expect(unused).toMatchObject({ code: 0, stderr: '' });
  expect(unused.stdout).toContain('good: no invoices in the last 30 days');
  const bare = await newProject('exact', 0);
  const { code, stdout, stderr } = await capacity('--project', bare.id);
  expect(code).toBe(0);
  expect(stdout).toContain('no active address with the policy exact, so no invoice can be created');
  expect(stderr).toContain(`quittance address add --project ${bare.id} T…`);
});

test('the amounts in use stand in a table, the most urgent first, with the verdict', async () => {
  const { id, addresses } = await newProject('tail', 2);
  for (let i = 0; i < 8; i++) await take(addresses[0], 25_000_000n, wordAt(25_000_000n, i), i < 7 ? 2 : 20);
  await take(addresses[1], 7_000_000n, wordAt(7_000_000n, 0), 20);
  const { code, json } = await capacity('--project', id, '--json');
  expect(code).toBe(0);
  const createdAt = await createdAtOf(id);
  expect(json).toEqual({
    projectId: id,
    network: 'nile',
    policy: 'tail',
    maxSurcharge: '0.000100',
    activeAddresses: 2,
    policies: [
      { policy: 'tail', perAddress: 9, addedBelow: '0.000100', decimals: 6, addressesFor90Days: 10 },
      { policy: 'tail-4', perAddress: 90, addedBelow: '0.100000', decimals: 4, addressesFor90Days: 1 },
      { policy: 'tail-3', perAddress: 9, addedBelow: '0.100000', decimals: 3, addressesFor90Days: 10 },
      { policy: 'exact', perAddress: 1, addedBelow: '0.000000', decimals: null, addressesFor90Days: 90 },
    ],
    low: true,
    freeShare: 10 / 18,
    daysLeft: 10,
    amounts: [
      {
        amount: '25.000000',
        total: 18,
        free: 10,
        freeShare: 10 / 18,
        used7Days: 7,
        used30Days: 8,
        countedSince: createdAt,
        perDay7: 1,
        perDay30: expect.closeTo(0.4, 3),
        daysLeft7: 10,
        daysLeft30: 25,
        daysLeft: 10,
        low: true,
      },
      expect.objectContaining({ amount: '7.000000', total: 18, free: 17, used7Days: 0, daysLeft7: null, low: false }),
    ],
  });
  const { stdout, stderr } = await capacity('--project', id);
  expect(stdout).toMatch(/verdict +LOW: the free amounts will last less than 14 days for 25\.000000$/m);
  expect(stdout).toMatch(/^tail-3 +9 +0\.100000 +3 +10$/m);
  expect(stdout).toMatch(/25\.000000 +10 +18 +55\.5 +1\.0 +0\.4 +10 +LOW\n7\.000000 +17 +18 +94\.4/);
  expect(stderr).toContain('add addresses');
});

test('the verdict says which amounts are scarce, and which are gone so that invoices are refused', async () => {
  const { id, addresses } = await newProject('tail', 1);
  const prices = [5_000_000n, 6_000_000n, 7_000_000n, 8_000_000n, 9_000_000n];
  for (const price of prices) {
    for (let i = 0; i < (price === 9_000_000n ? 8 : 9); i++) await take(addresses[0], price, wordAt(price, i), 20);
  }
  const { stdout } = await capacity('--project', id);
  expect(stdout).toMatch(/^verdict +LOW: no amount is free, so Quittance refuses invoices for \d\.0{6}, \d\.0{6}, /m);
  expect(stdout).toMatch(/ and 1 more; less than 20 % of the amounts are free for 9\.000000$/m);
});

test('an amount that was used fewer than 5 times has days left, and is not low by them', async () => {
  const { id, addresses } = await newProject('exact', 3);
  await take(addresses[0], 12_000_000n, 12_000_000n, 0);
  const { stdout } = await capacity('--project', id);
  expect(stdout).toMatch(/^12\.000000 +2 +3 +66\.6 +1\.0 +1\.0 +2 *$/m);
  expect(stdout).toMatch(/^verdict +good: there is no forecast for amounts with fewer than 5 uses in 30 days$/m);
});

test('one amount is shown on each active address and in all, under both policies', async () => {
  const { id, addresses } = await newProject('tail', 3);
  for (let i = 0; i < 9; i++) await take(addresses[0], 25_000_000n, wordAt(25_000_000n, i), 40);
  await take(addresses[2], 25_000_000n, wordAt(25_000_000n, 4), 1);
  await query('update addresses set retired_at = now() where id = $1', [addresses[1]?.id]);
  const { json } = await capacity('--project', id, '--amount', '25', '--json');
  expect(json).toMatchObject({ amount: '25.000000', total: 18, free: 8, used30Days: 1 });
  expect(json.addresses).toEqual([
    { address: addresses[0]?.address, position: 1, total: 9, free: 0 },
    { address: addresses[2]?.address, position: 3, total: 9, free: 8 },
  ]);

  const exact = await newProject('exact', 2);
  await take(exact.addresses[0], 25_000_000n, 25_000_000n, 40);
  const { code, stdout } = await capacity('--project', exact.id, '--amount', '25.00');
  expect(code).toBe(0);
  expect(stdout).toMatch(/free +1 of 2 \(50\.0 %\)/);
  expect(stdout).toContain('not used in the last 30 days');
  expect(stdout).toMatch(
    new RegExp(`1 +${exact.addresses[0]?.address} +0 +1\\n2 +${exact.addresses[1]?.address} +1 +1`),
  );
});

test('an amount that is none is refused with the reason', async () => {
  const { id } = await newProject('tail', 1);
  expect(await capacity('--project', id, '--amount', '25,00')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--amount "25,00" must contain only the digits 0-9 and one decimal point'),
  });
});
