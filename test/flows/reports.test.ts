import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { formatAmount, type MicroUsdt, microUsdt } from '../../src/core/domain/money.ts';
import { DAY_MS, toIso, type UnixMs, unixMs } from '../../src/core/domain/time.ts';
import { applySolidBlocks } from '../../src/core/payments/record-transfers.ts';
import { findCursor } from '../../src/core/store/chain/cursor.ts';
import { findInvoicePayment } from '../../src/core/store/ledger/payments.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { reconcileNow } from '../../src/faces/operator/subjects/balances.ts';
import { planRepair, repair } from '../../src/faces/operator/subjects/chain-repair.ts';
import { exportInvoices } from '../../src/faces/operator/subjects/invoices.ts';
import {
  dayOf,
  type ReportSums,
  type ReportView,
  readReportPeriod,
  showReport,
  writeReport,
} from '../../src/faces/operator/subjects/reports.ts';
import { resolveTransfers } from '../../src/faces/operator/subjects/transfer-decisions.ts';
import { exportTransfers, readSelection } from '../../src/faces/operator/subjects/transfer-export.ts';
import { newDirectory, runCli } from '../cli/run-cli.ts';
import { type Books, startBooks } from '../support/books.ts';
import { openTestDatabase } from '../support/postgres.ts';

const ACTOR = commandActor('anna');
let books: Books;
let client: pg.Client;
beforeAll(async () => {
  books = await startBooks();
  client = new pg.Client(books.database.ownerString);
  await client.connect();
});
afterAll(async () => {
  await client.end();
  await books.stop();
});

type Period = { from: string; to: string };
/** A period around today, whatever the time, because devnet's blocks may be minutes ahead. */
const around = (daysBefore: number): Period => ({
  from: dayOf(unixMs(books.now() - daysBefore * DAY_MS)),
  to: dayOf(unixMs(books.now() + 2 * DAY_MS)),
});

/** Makes a report at the time `at`, like the process that has `db`. */
async function report(projectId: string, given: Period, { db = books.db, at = books.now() } = {}): Promise<ReportView> {
  const period = readReportPeriod(given, at);
  return showReport.run({ db, now: () => at }, ACTOR, { projectId, period, patienceMs: 60_000 });
}

/** Makes the same report in a process without any kept sums. */
async function freshReport(projectId: string, given: Period, at: UnixMs): Promise<ReportView> {
  const db = openTestDatabase(books.database);
  try {
    return await report(projectId, given, { db, at });
  } finally {
    await db.close();
  }
}

type Sums = Record<'paid' | 'requested' | 'received' | 'lateCount' | 'late', bigint> &
  Record<'duplicate' | 'duplicateCount' | 'unmatched' | 'unmatchedCount' | 'out' | 'outCount', bigint>;

/** Sums up the exports by day, independently of the report's code. */
async function sumsOfExports(projectId: string, { from, to }: Period): Promise<Map<string, Sums>> {
  const asked = new Map<string, { requested: bigint; expiresAt: string }>();
  const wanted = exportInvoices.read({ status: 'PAID', projectId } as never, unixMs(0));
  const { batches } = await exportInvoices.run({ db: books.db, publicUrl: () => '' }, ACTOR, wanted);
  for await (const rows of batches) {
    for (const row of rows)
      asked.set(row.externalId, { requested: microOf(row.requestedAmount), expiresAt: row.expiresAt });
  }
  const days = new Map<string, Sums>();
  const selection = readSelection({ direction: 'both', kind: 'all', from, to });
  for await (const rows of await exportTransfers(books, ACTOR, { projectId, ...selection })) {
    for (const { transfer, incoming } of rows) {
      const day = dayOf(transfer.blockTime);
      const sums = days.get(day) ?? { ...NONE };
      days.set(day, sums);
      const add = (name: 'duplicate' | 'unmatched' | 'out' | 'late') => {
        sums[name] += transfer.amountMicro;
        sums[`${name}Count`] += 1n;
      };
      if (incoming?.kind !== 'matched') {
        add(incoming?.kind ?? 'out');
        continue;
      }
      const invoice = asked.get(incoming.invoice?.externalId ?? '');
      if (invoice === undefined) throw new Error('it paid no invoice');
      sums.paid += 1n;
      sums.requested += invoice.requested;
      sums.received += transfer.amountMicro;
      if (toIso(transfer.blockTime) > invoice.expiresAt) add('late');
    }
  }
  return days;
}

const NONE: Sums = {
  ...{ paid: 0n, requested: 0n, received: 0n, late: 0n, lateCount: 0n, duplicate: 0n, duplicateCount: 0n },
  ...{ unmatched: 0n, unmatchedCount: 0n, out: 0n, outCount: 0n },
};
const microOf = (amount: string) => BigInt(amount.replace('.', ''));

/** Converts a report's sums into the form of the exports' sums. */
function plain({ paid, requested, received, tails, late, duplicate, unmatched, out }: ReportSums): Sums {
  expect(microOf(tails)).toBe(microOf(received) - microOf(requested));
  return {
    ...{ paid: BigInt(paid), requested: microOf(requested), received: microOf(received) },
    ...{ late: microOf(late.amount), lateCount: BigInt(late.count) },
    ...{ duplicate: microOf(duplicate.amount), duplicateCount: BigInt(duplicate.count) },
    ...{ unmatched: microOf(unmatched.amount), unmatchedCount: BigInt(unmatched.count) },
    ...{ out: microOf(out.amount), outCount: BigInt(out.count) },
  };
}

function addUp(all: Iterable<Sums>): Sums {
  const sum = { ...NONE };
  for (const each of all) for (const name of Object.keys(NONE) as (keyof Sums)[]) sum[name] += each[name];
  return sum;
}

/** Returns the balance of a project's addresses according to `reconcile`. */
async function reconciled(addresses: readonly string[]): Promise<bigint> {
  const deps = { ...books.rescanning(), onProgress: () => undefined };
  const { view } = await reconcileNow(deps, { addresses: addresses as never });
  expect(view.data.map(({ status }) => status)).toEqual(addresses.map(() => 'good'));
  return view.data.reduce((sum, row) => sum + microOf(row.status === 'good' ? row.balance : 'x'), 0n);
}

async function pay({ isLate = false } = {}): Promise<{ address: string; payableMicro: bigint }> {
  const { id } = await books.invoice(microUsdt(25_000_000n));
  const invoice = await findInvoicePayment(books.db, books.project.id, id);
  if (invoice === null) throw new Error('no invoice');
  if (isLate) await client.query(`update invoices set expires_at = created_at + interval '1 ms' where id = $1`, [id]);
  await books.send(invoice.address, invoice.payableMicro);
  return invoice;
}

/** Records the sent transfers, together with one that never happened. */
async function recordWithLie(): Promise<{ from: number; to: number }> {
  books.devnet.mineUntilSolid();
  const from = ((await findCursor(books.db, 'devnet'))?.solid.number ?? 0) + 1;
  const to = books.devnet.solid().number;
  for (let number = from; number <= to; number += 1) {
    const block = await books.read(number);
    const lies = block.transfers.map((each) => ({
      ...each,
      logIndex: each.logIndex + 1,
      amount: 9_000_000n as MicroUsdt,
    }));
    await applySolidBlocks(books.watching, [{ ...block, transfers: [...block.transfers, ...lies] }]);
  }
  return { from, to };
}

test('a report has the sums of the export by kind, and its balance is the sum of what reconcile compares', async () => {
  const { projectId, addresses } = books.project;
  const period = around(2);
  const [first = '', second = ''] = addresses;
  // Transfers from before the first comparison belong to the opening balance.
  await books.send(first, 4_000_000n);
  await books.record();
  const payer = await books.adoptPayer();
  const all = [...addresses, payer];
  const before = await report(projectId, period);
  expect(before.balance).toMatchObject({ start: '0.000000', came: '4.000000', end: '4.000000', uncompared: 3 });
  const opening = await reconciled(all);
  expect((await report(projectId, period)).balance).toMatchObject({
    end: formatAmount(microUsdt(opening)),
    uncompared: 0,
  });

  const paid = await pay();
  await pay({ isLate: true });
  await books.record();
  await books.send(paid.address, paid.payableMicro);
  await books.send(second, 7n);
  await books.record();
  await books.send(second, 3_000_000n);
  const range = await recordWithLie();
  const denied = await report(projectId, period);
  expect(denied.total.unmatched).toEqual({ count: 4, amount: '16.000007' });
  const plan = await planRepair(books.rescanning(), range, () => undefined);
  await repair(books.rescanning(), plan, { actor: ACTOR, reason: 'two nodes lied together' });
  const unmatched = (await client.query(`select id from transfers where amount_micro = 7`)).rows;
  await resolveTransfers.run(books, ACTOR, {
    transferIds: unmatched.map(({ id }) => id),
    ...{ resolution: 'kept', note: '', invoice: null },
  });

  const ledger = await reconciled(all);
  const found = await report(projectId, period);
  const exported = await sumsOfExports(projectId, period);
  expect(plain(found.total)).toEqual(addUp(exported.values()));
  expect(found.total).toMatchObject({
    ...{ paid: 2, requested: '50.000000', late: { count: 1 }, duplicate: { count: 1 } },
    ...{ unmatched: { count: 3, amount: '7.000007' }, out: { count: 5 } },
  });
  expect(found.balance.end).toBe(formatAmount(microUsdt(ledger)));
  const { start, came, left, end } = found.balance;
  expect(microOf(start) + microOf(came) - microOf(left)).toBe(microOf(end));
  expect(found).toEqual(await freshReport(projectId, period, books.now()));
});

/** Creates a project with 45 days of generated data, including every kind of transfer. */
async function fill(): Promise<string> {
  const env = {
    ...{ DATABASE_URL: books.database.connectionString, QUITTANCE_DATA_DIR: newDirectory() },
    QUITTANCE_MASTER_KEY: 'A'.repeat(43).concat('='),
  };
  const { json } = await runCli(['sandbox', 'fill', '--invoices', '1500', '--days', '45', '--json'], { env });
  return json.projectId;
}

test('each day, each month and each line of the CSV has the sums of the exports, whatever was summed before', async () => {
  const projectId = await fill();
  const now = books.now();
  const period = { from: dayOf(unixMs(now - 50 * DAY_MS)), to: dayOf(now) };
  const other = openTestDatabase(books.database);
  try {
    // Kept ten days ago for a few months only, then extended.
    for (const daysAgo of [10, 3, 0]) {
      const at = unixMs(now - daysAgo * DAY_MS);
      const month = { from: dayOf(unixMs(at - 20 * DAY_MS)), to: dayOf(at) };
      expect(await report(projectId, month, { db: other, at })).toEqual(await freshReport(projectId, month, at));
    }
    const found = await report(projectId, period, { db: other, at: now });
    const exported = await sumsOfExports(projectId, period);
    expect(found.days.map(({ day }) => day)).toEqual([...exported.keys()].toSorted());
    expect(found.days.length).toBeGreaterThan(40);
    for (const { day, ...sums } of found.days) expect({ day, ...plain(sums) }).toEqual({ day, ...exported.get(day) });
    for (const { month, ...sums } of found.months) {
      const ofMonth = [...exported].filter(([day]) => day.startsWith(month)).map(([, each]) => each);
      expect({ month, ...plain(sums) }).toEqual({ month, ...addUp(ofMonth) });
    }
    expect(found.months.length).toBeGreaterThan(1);
    expect(plain(found.total)).toEqual(addUp(exported.values()));
    for (const name of ['late', 'duplicate', 'unmatched', 'out'] as const)
      expect(found.total[name].count, name).toBeGreaterThan(2);
    const [head = '', ...lines] = writeReport(found).trimEnd().split('\r\n');
    const cellsOf = (line: string) =>
      Object.fromEntries(line.split(',').map((cell, at) => [head.split(',')[at], cell]));
    expect(lines.map((line) => cellsOf(line)['received'])).toEqual(found.days.map(({ received }) => received));
    expect(lines.map((line) => cellsOf(line)['outCount'])).toEqual(found.days.map(({ out }) => String(out.count)));

    // The balance at the end of a day in the middle excludes all later transfers.
    const [middle] = found.days.slice(20, 21).map(({ day }) => day);
    const half = await report(projectId, { from: period.from, to: middle ?? '' }, { db: other, at: now });
    const rest = addUp([...exported].filter(([day]) => day > (middle ?? '')).map(([, each]) => each));
    const later = rest.received + rest.duplicate + rest.unmatched - rest.out;
    expect(signed(half.balance.end) + later).toBe(signed(found.balance.end));
  } finally {
    await other.close();
  }
});

const signed = (amount: string) => BigInt(amount.replace('.', ''));

test('what is taken back, and an old block that is recorded late, changes the sums that were kept', async () => {
  const { id, projectId } = books.project;
  const now = unixMs(books.now() + 3 * DAY_MS);
  const period = { ...around(60), to: dayOf(now) };
  const before = await report(projectId, period, { at: now });
  expect(before).toEqual(await freshReport(projectId, period, now));
  const insert = `insert into transfers (id, project_id, network, address_id, tx_id, log_index, block_number, block_id, block_time, from_address,
      amount_micro, kind, producer, verified, nodes)
    select (lpad(to_hex($2::int8), 12, '0') || '7000' || '8000' || '000000000001')::uuid, project_id, network, address_id,
      decode(repeat('ee', 32), 'hex'), 0, 1, block_id, now() - interval '20 days', from_address, 5, 'unmatched', producer, verified, nodes
    from transfers where project_id = $1 order by id limit 1`;
  await client.query(insert, [id, String(now)]);
  const added = await report(projectId, period, { at: now });
  expect(added.total.unmatched.count).toBe(before.total.unmatched.count + 1);
  expect(added).toEqual(await freshReport(projectId, period, now));
  await client.query(
    `insert into transfer_annulments (transfer_id, project_id, denied_by, annulled_at, annulled_by, reason)
     select id, project_id, decode(repeat('ab', 32), 'hex'), now(), 'somebody', 'x' from transfers where project_id = $1 and amount_micro = 7`,
    [id],
  );
  const left = await report(projectId, period, { at: now });
  expect(left.total.unmatched.count).toBe(before.total.unmatched.count);
  expect(left).toEqual(await freshReport(projectId, period, now));
});

test('sums that take longer than they may are given up, and the refusal says to choose a shorter period', async () => {
  const { projectId } = books.project;
  await client.query('begin');
  await client.query('lock table transfers in access exclusive mode');
  try {
    const period = readReportPeriod({ from: '2026-10-01', to: '2026-10-31' }, books.now());
    const given = showReport.run(books, ACTOR, { projectId, period, patienceMs: 300 });
    await expect(given).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message:
        'from 2026-10-01, up to to 2026-10-31: the calculation took longer than 0.3 s and was stopped. Choose a shorter period',
    });
  } finally {
    await client.query('rollback');
  }
});
