import { type AccountHex, parseAddress } from '@quittance/tron/address';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { describeError } from '../../src/cli/terminal/describe-error.ts';
import { reconcileAddress } from '../../src/core/chain/reconcile.ts';
import type { ChainTransfer, SolidBlock } from '../../src/core/domain/chain-block.ts';
import { encodeId } from '../../src/core/domain/ids.ts';
import { diagnoseTransfers } from '../../src/core/payments/mismatch/diagnose-transfers.ts';
import { applySolidBlocks } from '../../src/core/payments/record-transfers.ts';
import { listOperatorActions } from '../../src/core/store/access/audit-log.ts';
import { findOpenAlarms } from '../../src/core/store/chain/alarms.ts';
import { listBookedAddresses } from '../../src/core/store/chain/balance-checks.ts';
import { findCursor } from '../../src/core/store/chain/cursor.ts';
import { findInvoicePayment } from '../../src/core/store/ledger/payments.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { rescanRange, verifyRange } from '../../src/faces/operator/subjects/chain-ranges.ts';
import { deniedPayments, planRepair, type RepairPlan, repair } from '../../src/faces/operator/subjects/chain-repair.ts';
import { type Books, startBooks } from '../support/books.ts';

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
beforeEach(() => books.devnet.setFault());

const onProgress = () => undefined;
const ACTOR = commandActor('anna');
const ORDER = { actor: ACTOR, reason: 'two nodes lied together' };

async function openInvoice() {
  const { id } = await books.invoice(25_000_000n);
  const invoice = await findInvoicePayment(books.db, books.project.id, id);
  if (invoice === null) throw new Error('no invoice');
  const status = async () => (await findInvoicePayment(books.db, books.project.id, id))?.status;
  return { id, address: invoice.address, payableMicro: invoice.payableMicro, status };
}

async function rows(sql: string, values: unknown[] = []): Promise<Record<string, unknown>[]> {
  return (await client.query(sql, values)).rows;
}

function accountOf(address: string): AccountHex {
  const parsed = parseAddress(address);
  if (parsed.kind !== 'ok') throw new Error(parsed.reason);
  return parsed.account;
}

/** Records transfers as colluding nodes show them: `report` returns what they show instead of each true transfer. */
async function recordLies(report: (transfer: ChainTransfer) => ChainTransfer[]): Promise<{ from: number; to: number }> {
  books.devnet.mineUntilSolid();
  const from = ((await findCursor(books.db, 'devnet'))?.solid.number ?? 0) + 1;
  const to = books.devnet.solid().number;
  for (let number = from; number <= to; number += 1) {
    const block: SolidBlock = await books.read(number);
    await applySolidBlocks(books.watching, [{ ...block, transfers: block.transfers.flatMap(report) }]);
  }
  return { from, to };
}

async function check(address: string) {
  const booked = (await listBookedAddresses(books.db, 'devnet', 100)).find((entry) => entry.address === address);
  if (booked === undefined) throw new Error(`no address ${address}`);
  return reconcileAddress({ ...books.rescanning(), node: books.node, patienceMs: 0, confirmAfterMs: 0 }, booked);
}

const differencesOf = async (range: { from: number; to: number }) =>
  (await verifyRange({ ...books.rescanning(), onProgress }, range)).view.differences;

async function planned(range: { from: number; to: number }): Promise<RepairPlan> {
  return planRepair(books.rescanning(), range, onProgress);
}

/**
 * Creates a payment of the victim's invoice that lying nodes show as two transfers: a smaller one to another invoice, the rest to someone
 * else.
 */
async function splitPayment() {
  const [victim, unpaid] = [await openInvoice(), await openInvoice()];
  await books.send(victim.address, victim.payableMicro);
  const range = await recordLies((transfer) => [
    { ...transfer, to: accountOf(unpaid.address), amount: unpaid.payableMicro },
    { ...transfer, logIndex: transfer.logIndex + 1, amount: 1n },
  ]);
  return { victim, unpaid, range };
}

describe('a payment that lying nodes showed as another invoice’s', () => {
  test('is refused by a rescan, which names the repair; the repair shows it and changes nothing by itself', async () => {
    const { victim, unpaid, range } = await splitPayment();
    expect([await victim.status(), await unpaid.status()]).toEqual(['PENDING', 'PAID']);
    const advice = `quittance chain repair --network devnet --from ${range.from} --to ${range.to}`;
    const refused = rescanRange({ ...books.rescanning(), onProgress }, ACTOR, range);
    expect(await refused.then(() => null, describeError)).toMatchObject({
      code: 'CHAIN_CONTRADICTION',
      message: expect.stringContaining(advice),
    });

    const plan = await planned(range);
    expect(plan.differences.map(({ kind, side }) => [kind, side])).toEqual([
      ['wrong', 'in'],
      ['not-on-chain', 'in'],
    ]);
    const [payment, ...others] = deniedPayments(plan);
    expect(others).toEqual([]);
    expect(payment?.recorded?.incoming?.invoice).toMatchObject({ id: unpaid.id, status: 'PAID' });
    expect(payment?.onChain).toMatchObject({ address: victim.address, amountMicro: victim.payableMicro });
    expect([await victim.status(), await unpaid.status()]).toEqual(['PENDING', 'PAID']);
    expect(await rows('select 1 from transfer_annulments')).toEqual([]);
    await repair(books.rescanning(), plan, ORDER);
  });

  test('pays its own invoice after the repair; the other stays PAID, an alarm says so, and the books balance', async () => {
    await check(books.project.addresses[0] ?? '');
    await check(books.project.addresses[1] ?? '');
    const { victim, unpaid, range } = await splitPayment();
    const done = await repair(books.rescanning(), await planned(range), ORDER);
    expect(done).toEqual({
      takenBack: 2,
      added: { matched: 1, duplicate: 0, unmatched: 0, outgoing: 0 },
      left: [],
    });
    expect([await victim.status(), await unpaid.status()]).toEqual(['PAID', 'PAID']);
    expect(await differencesOf(range)).toEqual([]);
    for (const each of books.project.addresses) expect(await check(each)).toMatchObject({ kind: 'good' });

    const [annulment] = await rows('select * from transfer_annulments where invoice_id = $1', [unpaid.id]);
    expect(annulment).toMatchObject({ annulled_by: 'anna', reason: ORDER.reason });
    const alarms = await findOpenAlarms(books.db, 'devnet');
    const alarm = alarms.find(({ subject }) => subject === encodeId('inv', unpaid.id));
    expect(alarm).toMatchObject({
      kind: 'payment-denied',
      detail: expect.stringContaining('is not on the chain'),
    });
    const action = (await listOperatorActions(books.db, 'devnet')).at(-1);
    expect(action).toMatchObject({ projectId: null, action: 'chain.repaired', actedBy: 'anna' });
    expect(action?.detail).toMatchObject({ ...range, reason: ORDER.reason });
  });

  test('is told once: a repair that is repeated, or runs twice at a time, changes nothing more', async () => {
    const { victim, range } = await splitPayment();
    const plan = await planned(range);
    const both = await Promise.all([1, 2].map(() => repair(books.rescanning(), plan, ORDER)));
    expect(both.map(({ takenBack }) => takenBack).sort()).toEqual([0, 2]);
    expect(both.map(({ added }) => added.matched).sort()).toEqual([0, 1]);
    expect((await planned(range)).differences).toEqual([]);
    const again = await repair(books.rescanning(), plan, ORDER);
    expect(again).toMatchObject({ takenBack: 0, added: { matched: 0, duplicate: 0, unmatched: 0 } });
    const types = await rows('select type from events where invoice_id = $1', [victim.id]);
    expect(types).toEqual([{ type: 'invoice.paid' }]);
  });
});

describe('a transfer that was taken back', () => {
  test('pays nothing again: neither the watcher’s rescan nor PostgreSQL lets it', async () => {
    const { unpaid, range } = await splitPayment();
    await repair(books.rescanning(), await planned(range), ORDER);
    const [denied] = await rows(
      `select t.id, encode(t.tx_id, 'hex') as tx_id, t.log_index, t.block_number::int as number, t.amount_micro::int8 as amount
       from transfers t join transfer_annulments n on n.transfer_id = t.id where n.invoice_id = $1`,
      [unpaid.id],
    );
    const block = await books.read(Number(denied?.['number']));
    const [truth] = block.transfers;
    if (truth === undefined) throw new Error('no transfer');
    const lie = { ...truth, to: accountOf(unpaid.address), amount: unpaid.payableMicro, logIndex: truth.logIndex };
    const further = { ...truth, to: accountOf(unpaid.address), amount: 1n, logIndex: truth.logIndex + 1 };
    for (const transfers of [[lie], [truth, further]]) {
      const added = await books.rescanned([{ ...block, transfers }]);
      expect(added).toMatchObject({ matched: 0, duplicate: 0 });
    }
    const open = await openInvoice();
    const update = "update invoices set status = 'PAID', paid_transfer_id = $2 where id = $1";
    await expect(client.query(update, [open.id, denied?.['id']])).rejects.toThrow(/was taken back and pays nothing/);
  });

  test('cannot be hidden: without the invoice that it paid PostgreSQL refuses, and what is taken back stays taken back', async () => {
    const { unpaid, range } = await splitPayment();
    const [paid] = await rows(`select id, project_id from transfers where invoice_id = $1`, [unpaid.id]);
    const insert = `insert into transfer_annulments (transfer_id, project_id, denied_by, annulled_at, annulled_by, reason)
      values ($1, $2, decode(repeat('ab', 32), 'hex'), now(), 'somebody', 'x')`;
    await expect(client.query(insert, [paid?.['id'], paid?.['project_id']])).rejects.toThrow(/only with the invoice/);
    await expect(client.query('delete from transfer_annulments')).rejects.toThrow(/never deleted/);
    const twice = `insert into transfers (id, project_id, network, address_id, tx_id, log_index, block_number, block_id, block_time,
        from_address, amount_micro, kind, verified, nodes, correction)
      select gen_random_uuid(), project_id, network, address_id, tx_id, log_index, block_number, block_id, block_time,
        from_address, 1, 'unmatched', verified, nodes, 1 from transfers where id = $1`;
    await expect(client.query(twice, [paid?.['id']])).rejects.toThrow(/recorded already, and was not taken back/);
    await repair(books.rescanning(), await planned(range), ORDER);
  });

  test('that was true all the same is recorded by a second repair only, and a rescan says so', async () => {
    const invoice = await openInvoice();
    await books.send(invoice.address, 3_000_001n);
    const range = await books.record();
    // As if lying nodes had denied it during an operator's repair.
    const [row] = await rows(
      `select id, project_id from transfers where amount_micro = 3000001 and block_number between $1 and $2`,
      [range.from, range.to],
    );
    await client.query(
      `insert into transfer_annulments (transfer_id, project_id, denied_by, annulled_at, annulled_by, reason)
       values ($1, $2, decode(repeat('ab', 32), 'hex'), now(), 'somebody', 'x')`,
      [row?.['id'], row?.['project_id']],
    );
    expect(await differencesOf(range)).toEqual([expect.objectContaining({ kind: 'taken-back', side: 'in' })]);
    await expect(rescanRange({ ...books.rescanning(), onProgress }, ACTOR, range)).rejects.toThrow(
      /but an operator took it back/,
    );
    const { added, left } = await repair(books.rescanning(), await planned(range), ORDER);
    expect([added.unmatched, left]).toEqual([1, []]);
    const kept = await rows('select correction from transfers where amount_micro = 3000001 order by correction');
    expect(kept).toEqual([{ correction: 0 }, { correction: 1 }]);
  });

  test('that paid an invoice is not called a second payment when a second repair records it again', async () => {
    const invoice = await openInvoice();
    await books.send(invoice.address, invoice.payableMicro);
    const range = await books.record();
    expect(await invoice.status()).toBe('PAID');
    await client.query(
      `insert into transfer_annulments (transfer_id, project_id, invoice_id, denied_by, annulled_at, annulled_by, reason)
       select id, project_id, invoice_id, decode(repeat('ab', 32), 'hex'), now(), 'somebody', 'x' from transfers where invoice_id = $1`,
      [invoice.id],
    );
    const { added } = await repair(books.rescanning(), await planned(range), ORDER);
    expect(added.duplicate).toBe(1);
    const [again] = await rows(`select id from transfers where invoice_id = $1 and kind = 'duplicate'`, [invoice.id]);
    const causes = await diagnoseTransfers(books.db, [String(again?.['id'])]);
    expect([...causes.values()]).toMatchObject([
      [{ code: 'UNKNOWN', explanation: expect.stringContaining('whose recorded payment was annulled') }],
    ]);
  });
});

test('what left by the word of lying nodes is taken back and recorded as it was, on the outgoing side too', async () => {
  const payer = await books.adoptPayer();
  await check(payer);
  const [to = ''] = books.project.addresses;
  await books.send(to, 8_000_001n);
  const range = await recordLies((transfer) => [{ ...transfer, amount: 7_000_001n }]);
  const plan = await planned(range);
  expect(plan.differences.map(({ kind, side }) => [kind, side]).sort()).toEqual([
    ['wrong', 'in'],
    ['wrong', 'out'],
  ]);
  const { takenBack, added, left } = await repair(books.rescanning(), plan, ORDER);
  expect([takenBack, added, left]).toEqual([2, { matched: 0, duplicate: 0, unmatched: 1, outgoing: 1 }, []]);
  expect(await check(payer)).toMatchObject({ kind: 'good' });
  expect(await check(to)).toMatchObject({ kind: 'good' });
  const kept = await rows('select amount_micro::int, correction from outgoing_transfers order by correction');
  expect(kept).toEqual([
    { amount_micro: 7_000_001, correction: 0 },
    { amount_micro: 8_000_001, correction: 1 },
  ]);
  expect(await rescanRange({ ...books.rescanning(), onProgress }, ACTOR, range)).toMatchObject({
    added: { unmatched: 0, outgoing: 0 },
  });
});

test('a true payment that was recorded in a block of somebody’s own stays PAID, and stands as it is on the chain beside it', async () => {
  const invoice = await openInvoice();
  await books.send(invoice.address, invoice.payableMicro);
  const range = await books.record(() => true);
  for (let number = range.from; number <= range.to; number += 1) {
    await books.rescanned([{ ...(await books.read(number)), id: 'ee'.repeat(32) }]);
  }
  expect(await invoice.status()).toBe('PAID');
  const plan = await planned(range);
  expect(deniedPayments(plan).map(({ recorded }) => recorded?.incoming?.invoice?.id)).toEqual([invoice.id]);
  const { added, left } = await repair(books.rescanning(), plan, ORDER);
  expect([added.matched, added.duplicate, left]).toEqual([0, 1, []]);
  expect(await invoice.status()).toBe('PAID');
  expect(await check(invoice.address)).toMatchObject({ kind: 'good' });
});

// From here on, the books of these addresses are wrong.
test.each<[string, (transfer: ChainTransfer) => ChainTransfer]>([
  ['of any amount', (transfer) => transfer],
  ['beyond every amount of an invoice', (transfer) => ({ ...transfer, amount: 2n ** 70n })],
  ['to its own sender', (transfer) => ({ ...transfer, from: transfer.to })],
])('what was taken back is not recorded again by the same block: a transfer %s', async (_name, report) => {
  const { address } = await openInvoice();
  await books.send(address, 3_000_002n);
  const range = await recordLies((transfer) => [report(transfer)]);
  const [row] = await rows(
    'select id, project_id, block_number::int as number from transfers where block_number between $1 and $2',
    [range.from, range.to],
  );
  await client.query(
    `insert into transfer_annulments (transfer_id, project_id, denied_by, annulled_at, annulled_by, reason)
     values ($1, $2, decode(repeat('ab', 32), 'hex'), now(), 'somebody', 'x')`,
    [row?.['id'], row?.['project_id']],
  );
  const block = await books.read(Number(row?.['number']));
  const again = await books.rescanned([{ ...block, transfers: block.transfers.map(report) }]);
  expect(again).toMatchObject({ matched: 0, duplicate: 0, unmatched: 0 });
});
