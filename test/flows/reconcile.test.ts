import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { type AccountHex, accountToAddress } from '@quittance/tron/address';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { reconcileAddress, startReconciler, startStateWatch } from '../../src/core/chain/reconcile.ts';
import { AppError } from '../../src/core/domain/errors.ts';
import { followStates, setFreeze } from '../../src/core/payments/contract-states.ts';
import { createHealthProblems, createLiveness } from '../../src/core/payments/health-problems.ts';
import { whileLeading } from '../../src/core/payments/watching.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { createLoopHealth } from '../../src/core/runtime/loop.ts';
import { findOpenAlarms, raiseAlarm, resolveAlarms } from '../../src/core/store/chain/alarms.ts';
import { listBookedAddresses, markChecksDue } from '../../src/core/store/chain/balance-checks.ts';
import { lockCursor } from '../../src/core/store/chain/cursor.ts';
import type { Database, Sql } from '../../src/core/store/db/database.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { rescanRange } from '../../src/faces/operator/subjects/chain-ranges.ts';
import { type Books, startBooks } from '../support/books.ts';
import { PATIENCE_MS } from '../support/patience.ts';
import { eventually } from '../support/service.ts';

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
const everything = () => true;

async function check(
  address: string,
  { patienceMs = 0, ...others }: { patienceMs?: number; db?: Database; node?: Books['node'] } = {},
) {
  const booked = (await listBookedAddresses(books.db, 'devnet', 100)).find((entry) => entry.address === address);
  if (booked === undefined) throw new Error(`no address ${address}`);
  const deps = { ...books.rescanning(), node: books.node, patienceMs, confirmAfterMs: 0, ...others };
  return reconcileAddress(deps, booked);
}

const [FIRST, SECOND] = [0, 1];
const addressAt = (index: number) => books.project.addresses[index] ?? '';
const alarmKinds = async () =>
  (await findOpenAlarms(books.db, 'devnet')).map(({ kind, subject }) => ({ kind, subject }));

test('what an address held before the ledger knew it is its opening', async () => {
  const payer = await books.adoptPayer();
  const held = await check(payer);
  expect(held).toMatchObject({ kind: 'good', isFirst: true });
  expect(held.kind === 'good' && held.openingMicro > 0n && held.openingMicro === held.balanceMicro).toBe(true);
  expect(await check(addressAt(FIRST))).toMatchObject({ kind: 'good', balanceMicro: 0n, openingMicro: 0n });
});

test('the books of both sides of a transfer balance after it', async () => {
  await books.send(addressAt(FIRST), 7_000_001n);
  await books.record();
  expect(await check(addressAt(FIRST))).toMatchObject({ kind: 'good', balanceMicro: 7_000_001n, isFirst: false });
  expect(await check(books.devnet.payer.address)).toMatchObject({ kind: 'good', isFirst: false });
});

test('a transfer that the ledger missed is an alarm that names the amount and the blocks, and its rescan ends it', async () => {
  await books.send(addressAt(FIRST), 9_000_005n);
  const range = await books.record(everything);
  const found = await check(addressAt(FIRST));
  expect(found).toMatchObject({ kind: 'differs', ledgerMicro: 7_000_001n, chainMicro: 16_000_006n, to: range.to });
  if (found.kind !== 'differs') throw new Error(found.kind);
  expect(found.from).toBeLessThanOrEqual(range.from);
  const [alarm] = await findOpenAlarms(books.db, 'devnet');
  expect(alarm).toMatchObject({ kind: 'balance-differs', subject: addressAt(FIRST) });
  expect(alarm?.detail).toContain('difference is 9.000005');
  expect(alarm?.detail).toContain(`quittance chain repair --network devnet --from ${found.from} --to ${found.to}`);

  await rescanRange({ ...books.rescanning(), onProgress }, ACTOR, { from: found.from, to: found.to });
  expect(await check(addressAt(FIRST))).toMatchObject({ kind: 'good', balanceMicro: 16_000_006n });
  expect(await check(books.devnet.payer.address)).toMatchObject({ kind: 'good' });
  expect(await alarmKinds()).toEqual([]);
});

test('a transfer out that was missed is a difference as well', async () => {
  const { payer } = books.devnet;
  await books.send(addressAt(SECOND), 2_000_003n);
  const range = await books.record((transfer) => transfer.amount === 2_000_003n);
  const found = await check(payer.address);
  expect(found.kind === 'differs' && found.chainMicro - found.ledgerMicro).toBe(-2_000_003n);
  await rescanRange({ ...books.rescanning(), onProgress }, ACTOR, range);
  expect(await check(payer.address)).toMatchObject({ kind: 'good' });
});

test('a difference that the second reading does not confirm is no alarm', async () => {
  let readings = 0;
  const node: Books['node'] = {
    ...books.node,
    ask: async (question, options) => {
      const isBalance = JSON.stringify(question.http.body).includes('balanceOf');
      if (isBalance) readings += 1;
      if (isBalance && readings === 1) books.devnet.setFault({ kind: 'wrong-balance' });
      const answer = await books.node.ask(question, options);
      books.devnet.setFault();
      return answer;
    },
  };
  expect(await check(addressAt(FIRST), { node })).toMatchObject({ kind: 'good' });
  expect(readings).toBe(2);
  expect(await alarmKinds()).toEqual([]);
});

test('a process that follows the network no more keeps nothing of what it has compared', async () => {
  const state = async () => (await client.query('select * from balance_checks order by address_id')).rows;
  const before = await state();
  books.devnet.setFault({ kind: 'wrong-balance' });
  let leads = true;
  const node: Books['node'] = {
    ...books.node,
    ask: (...request) => books.node.ask(...request).finally(() => (leads = false)),
  };
  const db = whileLeading(books.db, 'devnet', () => leads);
  await expect(check(addressAt(FIRST), { node, db })).rejects.toMatchObject({ code: 'LEASE_LOST' });
  expect(await state()).toEqual(before);
  expect(await alarmKinds()).toEqual([]);
});

test('a transaction in which a process stops to follow the network is rolled back', async () => {
  let leads = true;
  const db = whileLeading(books.db, 'devnet', () => leads);
  const alarm = { id: randomUUID(), kind: 'blind', subject: '', detail: 'nothing is seen' } as const;
  const raised = db.transaction(async (tx) => {
    await raiseAlarm(tx, 'devnet', alarm);
    leads = false;
    await resolveAlarms(tx, 'devnet', 'balance-differs');
  });
  await expect(raised).rejects.toMatchObject({ code: 'LEASE_LOST' });
  await expect(raiseAlarm(db, 'devnet', alarm)).rejects.toMatchObject({ code: 'LEASE_LOST' });
  expect(await alarmKinds()).toEqual([]);
});

test('a node that says a wrong balance twice is an alarm, which ends when it says the right one', async () => {
  books.devnet.setFault({ kind: 'wrong-balance' });
  expect(await check(addressAt(FIRST))).toMatchObject({ kind: 'differs' });
  expect(await alarmKinds()).toEqual([{ kind: 'balance-differs', subject: addressAt(FIRST) }]);
  books.devnet.setFault();
  expect(await check(addressAt(FIRST))).toMatchObject({ kind: 'good' });
  expect(await alarmKinds()).toEqual([]);
});

test('nothing is said about heights that the ledger has not reached', async () => {
  await books.send(addressAt(FIRST), 1_000_009n);
  books.devnet.mineUntilSolid();
  expect(await check(addressAt(FIRST))).toMatchObject({ kind: 'too-early' });
  expect(await alarmKinds()).toEqual([]);
  // The ledger reaches the block while the check is waiting.
  const checked = check(addressAt(FIRST), { patienceMs: PATIENCE_MS });
  await books.record();
  expect(await checked).toMatchObject({ kind: 'good' });
});

test('an address that was frozen in a block that the ledger does not know is found by asking, and so is that it is not any more', async () => {
  books.devnet.usdt.addBlackList(addressAt(SECOND));
  await books.record();
  expect(await check(addressAt(SECOND))).toMatchObject({ kind: 'good' });
  expect(await alarmKinds()).toEqual([{ kind: 'address-frozen', subject: addressAt(SECOND) }]);
  books.devnet.usdt.removeBlackList(addressAt(SECOND));
  await books.record();
  await check(addressAt(SECOND));
  expect(await alarmKinds()).toEqual([]);
});

test('money that the ledger saw come in and never saw leave, but which was not there at the first check, is an alarm', async () => {
  const [address = ''] = (await books.addAddresses(1)).slice(-1);
  const id = (await listBookedAddresses(books.db, 'devnet', 100)).find((entry) => entry.address === address)?.id;
  const { to } = await books.record();
  await client.query(
    `insert into transfers (id, project_id, network, address_id, tx_id, log_index, block_number, block_id, block_time,
       from_address, amount_micro, kind, producer, verified, nodes)
     select gen_random_uuid(), project_id, network, id, decode(repeat('ab', 32), 'hex'), 0, $1, decode(repeat('cd', 32), 'hex'),
       now(), address, 7, 'unmatched', account, 'proven', '{}' from addresses where id = $2`,
    [to, id],
  );
  const found = await check(address);
  expect(found).toMatchObject({ kind: 'differs', ledgerMicro: 7n, chainMicro: 0n, from: to, to });
  expect(await check(address)).toMatchObject({ kind: 'differs', ledgerMicro: 7n });
});

test('a leader checks every address that is due, and all of them again after an incident; others check none', async () => {
  let isLeader = false;
  const reconciler = startReconciler({
    ...books,
    network: 'devnet',
    agreement: 1,
    isLeader: () => isLeader,
    pauseMs: 20,
    confirmAfterMs: 0,
  });
  try {
    await client.query("update balance_checks set due_at = now() + interval '1 hour'");
    const due = async () =>
      (await client.query('select address_id from balance_checks where due_at <= now()')).rowCount;
    await markChecksDue(books.db, 'devnet');
    expect(await due()).toBeGreaterThan(0);
    isLeader = true;
    await eventually(due, (count) => count === 0);
  } finally {
    await reconciler.stop();
  }
});

/** A node of another operator that answers everything but calls of contracts. */
const withoutCalls = (): Books['node'] => ({
  ...books.node,
  ...{ operator: 'another', origin: 'http://another.example' },
  ask: async (question, options) => {
    if (JSON.stringify(question.http.body).includes('function_selector'))
      throw new AppError('NODE_REFUSED', 'it does not answer calls', { retryable: true });
    return books.node.ask(question, options);
  },
});

test('if the last node does not answer calls, the next operator is asked; if none does, the loop counts as failing', async () => {
  const loops = createLoopHealth();
  const lines: Record<string, unknown>[] = [];
  const log = createLogger({ level: 'warn', destination: { write: (line) => lines.push(JSON.parse(line)) } });
  let nodes = [withoutCalls()];
  const pool = { ...books.pool, available: async () => nodes };
  const following = { ...books, pool, loops, log, network: 'devnet', agreement: 1, isLeader: () => true } as const;
  await client.query('update balance_checks set due_at = now()');
  const reconciler = startReconciler({ ...following, pauseMs: 5, confirmAfterMs: 0 });
  const states = startStateWatch(following);
  try {
    const failing = () =>
      loops
        .look(0)
        .map(({ name }) => name)
        .sort();
    await expect.poll(failing).toEqual(['books of devnet', 'states of the contract of devnet']);
    // Rounds in which every address is put off follow.
    await delay(300);
    expect(failing()).toEqual(['books of devnet', 'states of the contract of devnet']);
    const madeUpFor = () => lines.filter(({ msg }) => String(msg).startsWith('a node refused a call'));
    expect(madeUpFor()).toEqual([]);
    nodes = [books.node, withoutCalls()];
    await expect.poll(failing).toEqual([]);
    expect(madeUpFor()).toMatchObject([{ node: 'http://another.example', reason: 'it does not answer calls' }]);
  } finally {
    await Promise.all([reconciler.stop(), states.stop()]);
  }
});

test('if the nodes have no such contract, the alarm about the checks names the contract and no node', async () => {
  const loops = createLoopHealth();
  const log = createLogger({ level: 'silent' });
  const usdt = 'ab'.repeat(20) as AccountHex;
  const states = startStateWatch({ ...books, usdt, loops, log, network: 'devnet', agreement: 1, isLeader: () => true });
  await expect.poll(() => loops.look(0)).toHaveLength(1);
  await states.stop();
  const troubles = createHealthProblems({ log });
  const liveness = createLiveness({ troubles, loops });
  let ms = performance.now();
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => (ms += 5000));
  onTestFinished(() => clock.mockRestore());
  for (let looks = 0; looks < 10; looks += 1) await liveness.look(books.db);
  const found = troubles.list().find(({ subject }) => subject === 'states of the contract of devnet');
  expect(found?.detail).toContain(`${accountToAddress(usdt)} is not a contract`);
  expect(found?.detail).toContain('QUITTANCE_DEVNET_USDT');
  expect(found?.detail).not.toContain('invalid row');
  expect(found?.detail).not.toContain(new URL(books.devnet.url).host);
});

/** Records a freeze of the first address, as the watcher does. */
async function changeFreeze(isFrozen: boolean, block: number) {
  const all = await listBookedAddresses(books.db, 'devnet', 100);
  const account = all.find(({ address }) => address === addressAt(FIRST))?.account;
  if (account === undefined) throw new Error('no address');
  await books.db.transaction(async (tx) => {
    await lockCursor(tx, 'devnet');
    await setFreeze(tx, 'devnet', { account, isFrozen, block });
    await followStates({ network: 'devnet' }, tx);
  });
}

/** Returns a database that freezes the first address as soon as alarms are compared in it. */
function freezingAtAlarms(block: number) {
  let freezing: Promise<void> | null = null;
  const freezeAtAlarms = (sql: Sql): Sql['run'] => {
    return async (statement, ...rest) => {
      if (statement.name === 'alarm-subjects') {
        freezing ??= changeFreeze(true, block);
        await Promise.race([freezing, delay(500)]);
      }
      return sql.run(statement, ...rest);
    };
  };
  const db: Database = {
    ...books.db,
    run: freezeAtAlarms(books.db),
    transaction: (work) => books.db.transaction((tx) => work({ ...tx, run: freezeAtAlarms(tx) })),
  };
  const untilFrozen = async () => {
    await expect.poll(() => freezing).not.toBeNull();
    await freezing;
  };
  return { db, untilFrozen };
}

test('the alarm of a state that is recorded while the alarms are compared stays open', async () => {
  const { db, untilFrozen } = freezingAtAlarms(1);
  const states = startStateWatch({ ...books, db, network: 'devnet', agreement: 1, isLeader: () => true });
  await untilFrozen();
  await states.stop();
  expect(await alarmKinds()).toContainEqual({ kind: 'address-frozen', subject: addressAt(FIRST) });
  await changeFreeze(false, 2);
});

test('so does the alarm of a state that is recorded while a check changes the state of another address', async () => {
  const { db, untilFrozen } = freezingAtAlarms(3);
  books.devnet.usdt.addBlackList(addressAt(SECOND));
  await books.record();
  await check(addressAt(SECOND), { db });
  await untilFrozen();
  const open = await alarmKinds();
  for (const subject of [addressAt(FIRST), addressAt(SECOND)])
    expect(open).toContainEqual({ kind: 'address-frozen', subject });
  books.devnet.usdt.removeBlackList(addressAt(SECOND));
  await books.record();
  await check(addressAt(SECOND));
  await changeFreeze(false, 4);
});
