import { randomBytes } from 'node:crypto';
import { beforeAll, expect, test } from 'vitest';
import { firstIdOf, uuidV7 } from '../../src/core/domain/ids.ts';
import { microUsdt } from '../../src/core/domain/money.ts';
import { codeWords, wordRange } from '../../src/core/domain/policy.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import {
  diagnoseTransfers,
  findFewRecentUnpaid,
  findRecentUnpaid,
  readMismatches,
} from '../../src/core/payments/mismatch/diagnose-transfers.ts';
import { findCandidates } from '../../src/faces/operator/explain/explain-invoice.ts';
import { databaseOfFile } from '../support/postgres.ts';
import { withClient } from '../support/postgres-template.ts';
import { createTestProject, type TestProject } from '../support/service.ts';
import { letRowsStandAlone } from '../support/stand-alone.ts';

const { database, db } = await databaseOfFile(2);

let project: TestProject;
beforeAll(async () => {
  project = await createTestProject(db, { addressCount: 1 });
  await letRowsStandAlone(database.owner);
});

const NOW = Date.now();
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

function query(text: string, values: unknown[]): Promise<Record<string, unknown>[]> {
  return withClient(database.owner, async (client) => (await client.query(text, values)).rows);
}

/** Adds invoices of one price with these payable amounts. */
async function insertInvoices(requested: bigint, payables: bigint[], status: string, ageMs: number): Promise<void> {
  await query(
    `insert into invoices (id, project_id, network, address_id, idempotency_key, external_id, requested_micro,
       payable_micro, checkout_token, status, created_at, expires_at)
     select i.id, $1, 'devnet', a.id, i.id::text, i.id::text, $4, i.payable,
       left(replace(reverse(i.id::text), '-', ''), 22), $5, $6, $6::timestamptz + interval '30 minutes'
     from unnest($2::uuid[], $3::int8[]) i (id, payable), addresses a where a.project_id = $1`,
    [
      project.id,
      payables.map(() => uuidV7(NOW - ageMs, randomBytes(10))),
      payables.map(String),
      String(requested),
      status,
      new Date(NOW - ageMs),
    ],
  );
}

async function insertUnmatched(amounts: readonly bigint[], ageMs = 0): Promise<string[]> {
  const rows = await query(
    `insert into transfers (id, project_id, network, address_id, tx_id, log_index, block_number, block_id, block_time,
       from_address, amount_micro, kind, verified, nodes)
     select u.id, $1, 'devnet', a.id, sha256(convert_to(u.id::text, 'UTF8')), 0, 1, sha256('block'), $4,
       rpad('T', 34, u.id::text), u.amount, 'unmatched', 'proven', '{}'
     from unnest($2::uuid[], $3::numeric[]) u (id, amount), addresses a where a.project_id = $1 returning id`,
    [project.id, amounts.map(() => uuidV7(NOW - ageMs, randomBytes(10))), amounts.map(String), new Date(NOW - ageMs)],
  );
  return rows.map(({ id }) => String(id));
}

test('where every amount of two neighbouring prices was used, open invoices are found, alone as among 500 transfers', async () => {
  const wordsOf = (requested: bigint) => codeWords(wordRange(microUsdt(requested), 10_000n));
  const words = wordsOf(25_000_000n);
  await insertInvoices(24_990_000n, wordsOf(24_990_000n), 'EXPIRED', 20 * DAY_MS);
  await insertInvoices(25_000_000n, words.slice(0, 700), 'EXPIRED', 20 * DAY_MS);
  await insertInvoices(25_000_000n, words.slice(700), 'PENDING', 20 * MINUTE_MS);
  // Adds newer ones of another price, so the open ones of 25.00 aren't among the newest 200.
  await insertInvoices(49_000_000n, wordsOf(49_000_000n).slice(0, 300), 'PENDING', 5 * MINUTE_MS);
  const [requested = ''] = await insertUnmatched([25_000_000n]);
  const cut = words[860] ?? 0n;
  const [truncated = ''] = await insertUnmatched([(cut / 100n) * 100n]);
  const others = await insertUnmatched(Array.from({ length: 498 }, (_, index) => BigInt(31 + index) * 1_000_000n + 3n));

  const alone = await diagnoseTransfers(db, [requested, truncated]);
  const [first] = alone.get(requested) ?? [];
  expect(first).toMatchObject({ code: 'REQUESTED_AMOUNT', confidence: 'low' });
  expect(first?.invoices.map(({ status }) => status)).toEqual(Array(5).fill('PENDING'));
  const [lost] = alone.get(truncated) ?? [];
  expect(lost?.code).toMatch(/^(ROUNDED|TRUNCATED)$/);
  expect(lost?.evidence['equallyNear']).toBeGreaterThan(1);

  const together = await diagnoseTransfers(db, [...others, requested, truncated]);
  expect(together.get(requested)).toEqual(alone.get(requested));
  expect(together.get(truncated)).toEqual(alone.get(truncated));
});

test.each([
  [200, findRecentUnpaid],
  [50, findFewRecentUnpaid],
])('before each moment at most %i unpaid invoices are read', async (most, find) => {
  const amount = 60_000_000 + most * 1000;
  await insertInvoices(
    BigInt(amount),
    [...Array(300).keys()].map((n) => BigInt(amount + n)),
    'PENDING',
    0,
  );
  const question = { projectId: project.id, belowId: firstIdOf(NOW + DAY_MS) };
  expect(await find(db, [question, question])).toHaveLength(2 * most);
});

test.each([
  [10, 200],
  [11, 50],
])(
  'each of %i transfers of different moments is compared with %i of the newest unpaid invoices',
  async (count, most) => {
    const far = Array.from({ length: count }, (_, index) => BigInt(900 + index) * 1_000_000n);
    const ids = [];
    for (const [index, amount] of far.entries())
      ids.push(...(await insertUnmatched([amount], -(index + 2) * 20 * MINUTE_MS)));
    const read = [];
    for await (const { facts } of readMismatches(db, ids, true)) read.push(facts.invoices.length);
    expect(read).toEqual(Array(count).fill(most));
    // Notifications don't depend on how many transfers are judged at once.
    for await (const { facts } of readMismatches(db, ids)) expect(facts.invoices).toHaveLength(200);
  },
);

test('an invoice is compared with few of the transfers that paid nothing: the first, the last, and the nearest in amount', async () => {
  const far = (start: number) => Array.from({ length: 100 }, (_, index) => BigInt(start + index) * 1_000_000n);
  await insertUnmatched(far(70), 3 * MINUTE_MS);
  const [nearest] = await insertUnmatched([26_000_000n], 2 * MINUTE_MS);
  await insertUnmatched(far(270), MINUTE_MS);
  const [address] = await query('select id from addresses where project_id = $1', [project.id]);
  const createdAt = unixMs(NOW - 4 * MINUTE_MS);
  const invoice = { projectId: project.id, addressId: String(address?.['id']), createdAt, payableAfter: createdAt };
  const amounts = { requestedMicro: microUsdt(26_000_001n), payableMicro: microUsdt(26_000_009n) };
  const { ids, isAll } = await findCandidates(db, { ...invoice, ...amounts }, 20);
  expect([ids.length <= 60, isAll]).toEqual([true, true]);
  expect(ids).toContain(nearest);
});
