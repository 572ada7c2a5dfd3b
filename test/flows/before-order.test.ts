import { randomBytes, randomUUID } from 'node:crypto';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { type AccountHex, accountToAddress, parseAddress } from '@quittance/tron/address';
import { accountFromPublicKey } from '@quittance/tron/public-key';
import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { ChainTransfer, SolidBlock } from '../../src/core/domain/chain-block.ts';
import { uuidV7 } from '../../src/core/domain/ids.ts';
import { type MicroUsdt, microUsdt } from '../../src/core/domain/money.ts';
import { codeWords, payableRange, surchargeOf } from '../../src/core/domain/policy.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { createInvoice as create } from '../../src/core/payments/create-invoice.ts';
import { detectBlocks } from '../../src/core/payments/detect-blocks.ts';
import { applySolidBlocks } from '../../src/core/payments/record-transfers.ts';
import type { Watching } from '../../src/core/payments/watching.ts';
import { createSteadyClock } from '../../src/core/runtime/clock.ts';
import { insertCursor } from '../../src/core/store/chain/cursor.ts';
import { acquireLease } from '../../src/core/store/chain/leases.ts';
import type { Database } from '../../src/core/store/db/database.ts';
import { unlistedStatement } from '../../src/core/store/db/statement.ts';
import { insertAddress } from '../../src/core/store/ledger/addresses.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { recordRescanned } from '../../src/faces/operator/subjects/chain-ranges.ts';
import { recordRepaired } from '../../src/faces/operator/subjects/chain-repair.ts';
import { runSql } from '../contract/sql.ts';
import { untilHeadIsExamined, untilItFails } from '../support/fault-flow.ts';
import { ask } from '../support/lookup-flow.ts';
import { createTestDatabase, openTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { withClient } from '../support/postgres-template.ts';
import {
  call,
  createInvoice,
  createTestProject,
  eventually,
  payableOf,
  readInvoice,
  startTestService,
  type TestProject,
  type TestService,
  untilStatus,
} from '../support/service.ts';

const SECOND_MS = 1000;
const SLOT_MS = 3 * SECOND_MS;
const HOUR_MS = 3_600_000;
const ACTOR = commandActor('anna');
const newAccount = () => accountFromPublicKey(secp256k1.getPublicKey(secp256k1.utils.randomSecretKey(), false));
const uuid = () => uuidV7(Date.now(), randomBytes(10));

/** Hours pass here without waiting: the chain was last seen long ago, at a time that is almost now. */
const TIME_PASSES = 'alter table chain_cursors drop constraint chain_cursors_live_clocks';

/** The result of a transfer, for each of the three ways to record it, and for a sighting. */
describe('every way to PAID asks the same', () => {
  let database: TestDatabase;
  let db: Database;
  let watching: Watching;
  /** The newest block of the made-up chain. */
  let tip: Pick<SolidBlock, 'number' | 'id' | 'time'>;
  beforeAll(async () => {
    database = await createTestDatabase();
    db = openTestDatabase(database, 4);
    tip = { number: 1, id: randomBytes(32).toString('hex'), time: unixMs(Date.now()) };
    await insertCursor(db, 'devnet', tip, null);
    await sql(TIME_PASSES);
    const lease = await acquireLease(db, 'watcher:devnet', 'test', 600_000);
    if (lease === null) throw new Error('the lease is taken');
    const now = () => unixMs(Date.now());
    watching = { db, network: 'devnet', publicUrl: 'http://127.0.0.1', now, random: (n) => randomBytes(n), lease };
  });
  afterAll(async () => {
    await db.close();
    await database.drop();
  });

  // biome-ignore lint/suspicious/noExplicitAny: rows of every shape.
  const sql = (text: string, values: unknown[] = []): Promise<any[]> =>
    withClient(database.owner, async (client) => (await client.query(text, values)).rows);

  function blockOn(parent: typeof tip, transfers: ChainTransfer[] = [], afterMs = SLOT_MS): SolidBlock {
    return {
      ...{ number: parent.number + 1, id: randomBytes(32).toString('hex'), parentId: parent.id },
      ...{ time: unixMs(parent.time + afterMs), producer: 'ab'.repeat(20) as AccountHex, transfers },
      evidence: { nodes: ['test'], operatorCount: 1 },
    };
  }
  /** Creates a shop of the policy `exact` with one address. */
  async function openShop() {
    const project = await createTestProject(db, { policy: 'exact', addressCount: 0, wasWatched: false });
    const account = newAccount();
    const addAddress = () =>
      insertAddress(db, { id: uuid(), projectId: project.id, account, address: accountToAddress(account) });
    return { project, account, addAddress };
  }
  type Shop = Awaited<ReturnType<typeof openShop>>;
  const AMOUNT = 36_000_000n as MicroUsdt;
  const transferTo = ({ account }: Shop): ChainTransfer => ({
    ...{ txId: randomBytes(32).toString('hex'), logIndex: 0, from: 'cd'.repeat(20) as AccountHex, to: account },
    ...{ amount: AMOUNT, isProven: true },
  });
  async function order({ project }: Shop, clocks: { offMs?: number; steadyOffMs?: number } = {}) {
    const now = () => unixMs(Date.now() + (clocks.offMs ?? 0));
    const created = await create(
      {
        ...{ db, now, random: (n) => randomBytes(n), randomBelow: () => 0 },
        steadyNow: () => unixMs(Date.now() + (clocks.steadyOffMs ?? clocks.offMs ?? 0)),
      },
      {
        ...{ keyId: project.keyId, projectId: project.id, policy: 'exact', maxSurchargeMicro: 100n },
        ...{ network: 'devnet', invoiceLifetimeMs: 1_800_000, requestedMicro: AMOUNT },
        ...{ idempotencyKey: randomUUID(), externalId: randomUUID() },
      },
    );
    return created.kind === 'created' ? created.invoice.id : created.kind;
  }
  const kindOf = async ({ txId }: ChainTransfer) => {
    const [row] = await sql(
      `select t.kind, i.status, i.paid_transfer_id = t.id as is_payment from transfers t left join invoices i on i.id = t.invoice_id
       where t.tx_id = decode($1, 'hex')`,
      [txId],
    );
    if (row?.kind === 'matched') expect(row).toEqual({ kind: 'matched', status: 'PAID', is_payment: true });
    return row?.kind as string | undefined;
  };
  const detect = (above: number, blocks: SolidBlock[], orphaned: SolidBlock[] = []) =>
    detectBlocks(watching, above, blocks, blocks.at(-1)?.time ?? tip.time, [], orphaned);

  /** Records the first transfer as the watcher, the second by a rescan, the third by a repair. The blocks are those above the tip. */
  async function recordInThreeWays(blocks: SolidBlock[], transfers: ChainTransfer[]) {
    const [watched, rescanned, repaired] = transfers;
    const only = (transfer: ChainTransfer | undefined) =>
      blocks.map((block) => ({ ...block, transfers: block.transfers.filter((each) => each === transfer) }));
    await applySolidBlocks(watching, only(watched));
    await recordRescanned(watching, ACTOR, only(rescanned));
    const range = { from: blocks[0]?.number ?? 0, to: blocks.at(-1)?.number ?? 0 };
    await recordRepaired(watching, {
      ...{ denied: [], blocks: only(repaired), range, actor: ACTOR, reason: 'test' },
    } as Parameters<typeof recordRepaired>[1]);
    tip = blocks.at(-1) ?? tip;
    return Promise.all(transfers.map(kindOf));
  }

  const cases = fc.record({
    /** Slots from the newest examined block to the transfer's block; 0 or less is before the order, in an examined block. */
    slots: fc.integer({ min: -3, max: 6 }),
    /**
     * How long no blocks had been seen when the order was created, by the database's clock; `null` if the end of the chain was never seen.
     */
    unseenMs: fc.oneof(
      fc.constant(null),
      fc.integer({ min: 0, max: 20 }).map((minutes) => minutes * 60_000 + 30_000),
    ),
    /** The slots of the unseen blocks. */
    unseenSlotMs: fc.constantFrom(SLOT_MS, 60_000, 300_000),
    /** The transfer's block is orphaned, and the transfer returns in a later one. */
    fork: fc.constantFrom('none', 'after-order', 'before-order'),
    /** The address was added after the transfer's block was examined. */
    isTrial: fc.boolean(),
    /** The clock of the process that creates the invoice. */
    clock: fc.constantFrom(0, -HOUR_MS, HOUR_MS),
  });

  /** One of each kind. */
  const QUIET = { slots: 2, unseenMs: null, unseenSlotMs: SLOT_MS, fork: 'none', isTrial: false, clock: 0 } as const;
  const EXAMPLES = [
    { ...QUIET, slots: -1 },
    { ...QUIET, slots: -1, fork: 'before-order' as const },
    { ...QUIET, unseenMs: 630_000, unseenSlotMs: 60_000 },
    { ...QUIET, slots: 0, isTrial: true },
    { ...QUIET, slots: 0, isTrial: true, fork: 'after-order' as const },
    QUIET,
    { ...QUIET, fork: 'after-order' as const },
    { ...QUIET, unseenMs: 630_000, unseenSlotMs: 60_000, clock: HOUR_MS },
    { ...QUIET, unseenMs: 30_000, slots: 1 },
  ].map((example): [typeof example] => [example]);

  test('whenever a transfer, its order and what was examined come, and through forks, outages and wrong clocks', async () => {
    const met = new Map<string, number>();
    await fc.assert(
      fc.asyncProperty(cases, async ({ slots, unseenMs, unseenSlotMs, fork, isTrial, clock }) => {
        const shops = [await openShop(), await openShop(), await openShop()];
        if (!isTrial) for (const shop of shops) await shop.addAddress();
        const transfers = shops.map(transferTo);
        const start = tip;
        // Blocks 1 to 4 above the tip are examined before the order, unless they are later than the newest one.
        const blocks: SolidBlock[] = [];
        for (let place = -3; place <= 6; place += 1) {
          const parent = blocks.at(-1) ?? start;
          blocks.push(blockOn(parent, place === slots ? transfers : [], place > 0 ? unseenSlotMs : SLOT_MS));
        }
        const [seen, unseen] = [blocks.slice(0, 4), blocks.slice(4)];
        const isSeen = slots <= 0;
        await detect(start.number, seen);
        const newest = seen.at(-1) as SolidBlock;
        const moved = (from: SolidBlock[], parent: typeof tip, at: number) => {
          const branch: SolidBlock[] = [];
          for (const [index, block] of from.entries()) {
            const made = blockOn(branch.at(-1) ?? parent, index === at ? transfers : []);
            branch.push({ ...made, time: block.time });
          }
          return branch;
        };
        let final = blocks;
        if (fork === 'before-order' && isSeen && !isTrial) {
          // Removed from the examined blocks, and back in the last of the others.
          const branch = moved(seen, start, -1);
          await detect(start.number, branch, seen);
          final = [...branch, ...moved(unseen, branch.at(-1) as SolidBlock, unseen.length - 1)];
        }
        if (isTrial) for (const shop of shops) await shop.addAddress();
        const live = unseenMs === null ? null : [newest.time, unseenMs];
        await sql(
          `update chain_cursors set live_time = $1, live_at = now() - make_interval(secs => $2::float8 / 1000) where network = 'devnet'`,
          live === null ? [null, null] : [new Date(newest.time), unseenMs],
        );
        const orders = [];
        for (const shop of shops) orders.push(await order(shop, { offMs: clock }));

        if (isSeen && !isTrial) {
          // No one can order an amount that has already arrived and paid nothing.
          expect(new Set(orders)).toEqual(new Set(['amount-unavailable']));
          expect(await recordInThreeWays(final, transfers)).toEqual(Array(3).fill('unmatched'));
          met.set('refused', (met.get('refused') ?? 0) + 1);
          return;
        }
        const at = final.find((block) => block.transfers.length > 0)?.time ?? 0;
        const isClockKnown = unseenMs !== null && clock === 0;
        const isBefore = isSeen || (isClockKnown && at <= newest.time + (unseenMs ?? 0) - 120_000 - SECOND_MS);
        // The database's clock advanced while this ran.
        const isOpen = !isBefore && isClockKnown && at <= newest.time + (unseenMs ?? 0) - 120_000 + 20_000;
        fc.pre(!isOpen);
        if (fork === 'after-order' && final === blocks) {
          await detect(newest.number, unseen);
          const statuses = await sql('select status from invoices where id = any($1::uuid[])', [orders]);
          expect(statuses.map(({ status }) => status)).toEqual(Array(3).fill(isBefore ? 'PENDING' : 'CONFIRMING'));
          const branch = moved(blocks, start, blocks.length - 1);
          await detect(start.number, branch, blocks);
          final = branch;
        }
        const kinds = await recordInThreeWays(final, transfers);
        expect(kinds).toEqual(Array(3).fill(isBefore ? 'unmatched' : 'matched'));
        const what = `${isBefore ? 'before' : 'paid'} ${isTrial ? 'trial ' : ''}${fork === 'none' ? '' : 'forked'}`;
        met.set(what, (met.get(what) ?? 0) + 1);
      }),
      { numRuns: 40, examples: EXAMPLES },
    );
    expect([...met.keys()]).toEqual(
      expect.arrayContaining(['refused', 'before ', 'before trial ', 'before trial forked', 'paid ', 'paid forked']),
    );
  });

  test('a transfer is tied to no invoice that it came before, whoever writes it', async () => {
    const shop = await openShop();
    await shop.addAddress();
    const id = await order(shop);
    const [invoice] = await sql('select * from invoices where id = $1', [id]);
    const write = (at: Date) =>
      sql(
        `insert into transfers (id, project_id, network, address_id, tx_id, log_index, block_number, block_id, block_time, from_address,
           amount_micro, kind, invoice_id, reserved_micro, verified, nodes)
         values (gen_random_uuid(), $1, 'devnet', $2, sha256($3::text::bytea), 0, 1, sha256('b'), $4, 'T', $5::int8, 'duplicate', $6, $5::int8, 'proven', '{}')`,
        [invoice.project_id, invoice.address_id, randomUUID(), at, String(AMOUNT), id],
      );
    const after: Date = invoice.payable_after;
    await expect(write(after)).rejects.toThrow(/was on the chain before invoice/);
    await write(new Date(after.getTime() + 1));
  });

  test('an invoice of an earlier release is paid by what is at most ten minutes older', async () => {
    const shop = await openShop();
    await shop.addAddress();
    const id = await order(shop);
    await sql(
      `begin; alter table invoices disable trigger invoices_keep_what_they_are; update invoices set payable_after = null where id = '${id}'; alter table invoices enable trigger invoices_keep_what_they_are; commit`,
    );
    const ask = (offsetMs: number) =>
      sql(
        `select may_pay(payable_after, created_at, 'devnet', sha256('x'), 0, created_at + make_interval(secs => $2)) as may from invoices where id = $1`,
        [id, offsetMs / 1000],
      );
    expect(await ask(-600_000)).toEqual([{ may: false }]);
    expect(await ask(-599_999)).toEqual([{ may: true }]);
  });

  test('while the process was put forward, only what was examined counts, as it does where the database’s clock was seen to be wrong', async () => {
    const ahead = async (clocks: Parameters<typeof order>[1]) => {
      const shop = await openShop();
      await shop.addAddress();
      const id = await order(shop, clocks);
      const [row] = await sql(`select payable_after > $2 as is_bound from invoices where id = $1`, [
        id,
        new Date(tip.time + 60_000),
      ]);
      return row.is_bound;
    };
    await sql(`update chain_cursors set live_time = $1, live_at = now() - interval '10 minutes'`, [new Date(tip.time)]);
    expect(await ahead({})).toBe(true);
    // The database's clock and the process's were set forward together, which the process notices from the elapsed time.
    expect(await ahead({ steadyOffMs: -HOUR_MS })).toBe(false);
    await sql('update chain_cursors set live_time = null, live_at = null');
    expect(await ahead({})).toBe(false);
  });
});

/** With the whole service: nodes, blocks and pages. */
describe('an order for what was on the chain before it', () => {
  let service: TestService;
  let shop: TestProject;
  beforeEach(async () => {
    service = await startTestService();
    shop = await createTestProject(service.db, { policy: 'exact', addressCount: 1 });
    onTestFinished(() => service.stop());
  });

  const order = (amount: string, { apiKey } = shop) => createInvoice(service, { apiKey, body: { amount } });
  const statusOf = async (id: string, { apiKey } = shop) =>
    (await call(`${service.url}/v1/invoices/${id}`, { headers: { 'x-api-key': apiKey } })).body.status;
  const send = (to: string, amount: bigint) =>
    service.payer.transfer({ contract: service.devnet.usdtContract, to, amountMicro: amount });
  const addAddress = async (project: TestProject, address: string) => {
    const parsed = parseAddress(address);
    if (parsed.kind !== 'ok') throw new Error(parsed.reason);
    await insertAddress(service.db, { ...parsed, id: uuid(), projectId: project.id });
  };
  const transfers = unlistedStatement(
    '',
    { kind: 'text', amount: 'numeric' },
    'select kind, amount_micro as amount from transfers order by block_number',
  );
  const recorded = async (count: number) => {
    service.devnet.mineUntilSolid();
    const all = await eventually(
      () => service.db.run(transfers, []),
      (rows) => rows.length >= count,
    );
    return all.map(({ kind, amount }) => `${kind} ${amount}`);
  };
  /** Returns a transfer that paid too much for someone else's order of 35 USDT. */
  async function payTooMuch(): Promise<string> {
    const [to = ''] = shop.addresses;
    expect((await order('35')).status).toBe(201);
    const txId = await send(to, 36_000_000n);
    service.devnet.mine();
    await untilHeadIsExamined(service);
    return txId;
  }

  test('is refused where no address is left, at the head and when it is irreversible, and the money stays unmatched', async () => {
    await payTooMuch();
    const refused = await order('36');
    expect(refused.body).toMatchObject({ code: 'AMOUNT_UNAVAILABLE', detail: expect.stringContaining('24 hours') });
    expect(await recorded(1)).toEqual(['unmatched 36000000']);
    expect((await order('36')).status).toBe(409);
    expect((await order('36.5')).status).toBe(201);
  });

  test('gets another address, which its payer pays', async () => {
    await payTooMuch();
    const account = newAccount();
    await addAddress(shop, accountToAddress(account));
    const { body } = await order('36');
    expect(await recorded(1)).toEqual(['unmatched 36000000']);
    expect(await statusOf(body.invoiceId)).toBe('PENDING');
    await send(accountToAddress(account), 36_000_000n);
    expect(await recorded(2)).toEqual(['unmatched 36000000', 'matched 36000000']);
    expect(await statusOf(body.invoiceId)).toBe('PAID');
  });

  test.each(['tail-3', 'tail-4'] as const)('never gets a word that arrived, by the policy %s', async (policy) => {
    const other = await createTestProject(service.db, { policy, addressCount: 2 });
    const [first = ''] = other.addresses;
    const range = payableRange({ policy, maxSurchargeMicro: surchargeOf(policy).usualMicro }, microUsdt(36_000_000n));
    for (const word of codeWords(range)) await send(first, word);
    service.devnet.mine(2);
    await untilHeadIsExamined(service);
    const { body } = await order('36', other);
    expect(body.status).toBe('PENDING');
    const payment = await call(`${service.url}/v1/invoices/${body.invoiceId}?expand=payment`, {
      headers: { 'x-api-key': other.apiKey },
    });
    expect(payment.body.payment.address).toBe(other.addresses[1]);
  });

  test('on an address that had a trial deposit before it was added waits for its payer', async () => {
    const account = newAccount();
    const address = accountToAddress(account);
    const txId = await send(address, 36_000_000n);
    service.devnet.mine();
    await untilHeadIsExamined(service);
    const other = await createTestProject(service.db, { policy: 'exact', addressCount: 0 });
    await addAddress(other, address);
    const { body } = await order('36', other);
    expect(body.status).toBe('PENDING');
    // The payment page says the same before and after the block is irreversible.
    const answers = [];
    for (const look of ['at the head', 'recorded']) {
      if (look === 'recorded') expect(await recorded(1)).toEqual(['unmatched 36000000']);
      service.clock.advance(5000);
      answers.push((await ask(body, txId)).body.code);
    }
    expect(answers).toEqual(['before_invoice', 'before_invoice']);
    expect(await statusOf(body.invoiceId, other)).toBe('PENDING');
    await send(address, 36_000_000n);
    await recorded(2);
    expect(await statusOf(body.invoiceId, other)).toBe('PAID');
  });

  test('is not paid by a trial deposit that a fork puts into a later block', async () => {
    const account = newAccount();
    const address = accountToAddress(account);
    await send(address, 36_000_000n);
    service.devnet.mine();
    await untilHeadIsExamined(service);
    const other = await createTestProject(service.db, { policy: 'exact', addressCount: 0 });
    await addAddress(other, address);
    const { body } = await order('36', other);
    service.devnet.fork({ depth: 1, keepTransactions: true });
    service.devnet.mine(2);
    expect(await recorded(1)).toEqual(['unmatched 36000000']);
    expect(await statusOf(body.invoiceId, other)).toBe('PENDING');
  });

  test('is refused, too, where a fork has put the transfer back among those that wait', async () => {
    await payTooMuch();
    service.devnet.fork({ depth: 1, keepTransactions: true });
    await untilHeadIsExamined(service);
    expect((await order('36')).status).toBe(409);
    expect(await recorded(1)).toEqual(['unmatched 36000000']);
  });

  test('is paid by its own payer, though a fork puts the payment into a later block', async () => {
    const [to = ''] = shop.addresses;
    const { body } = await order('36');
    await send(to, 36_000_000n);
    service.devnet.mine();
    await eventually(
      () => statusOf(body.invoiceId),
      (status) => status === 'CONFIRMING',
    );
    service.devnet.fork({ depth: 1, keepTransactions: true });
    service.devnet.mine(2);
    expect(await recorded(1)).toEqual(['matched 36000000']);
    expect(await statusOf(body.invoiceId)).toBe('PAID');
  });

  test('that was made in an outage is not paid by what came in it before, and by its own payer', async () => {
    const [to = ''] = shop.addresses;
    await untilHeadIsExamined(service);
    for (const node of service.nodes) node.setFault({ kind: 'unavailable-503' });
    // No round from before the outage writes afterwards what it saw.
    await untilItFails(service);
    const head = service.devnet.head();
    // The chain was last seen ten minutes ago.
    await runSql(service, TIME_PASSES);
    await runSql(service, `update chain_cursors set live_time = $1, live_at = now() - interval '10 minutes'`, [
      new Date(head.timestampMs),
    ]);
    await send(to, 36_000_000n);
    service.devnet.mine(1, { timestampMs: head.timestampMs + 300_000 });
    const { body } = await order('36');
    for (const node of service.nodes) node.setFault();
    service.devnet.mine(1, { timestampMs: head.timestampMs + 600_000 });
    expect(await recorded(1)).toEqual(['unmatched 36000000']);
    expect(await statusOf(body.invoiceId)).toBe('PENDING');
    await send(to, 36_000_000n);
    expect(await recorded(2)).toEqual(['unmatched 36000000', 'matched 36000000']);
    expect(await statusOf(body.invoiceId)).toBe('PAID');
  });

  test('that was made while the watcher was behind is paid by its payer in the next block that there is', async () => {
    const other = service.project;
    await untilHeadIsExamined(service);
    for (const node of service.nodes) node.setFault({ kind: 'unavailable-503' });
    const { body } = await createInvoice(service);
    const { address, amountMicro } = await payableOf(service, body.invoiceId);
    await send(address, amountMicro);
    service.devnet.mine();
    service.devnet.mine(40);
    for (const node of service.nodes) node.setFault();
    expect((await untilStatus(service, body.invoiceId, 'PAID')).status).toBe('PAID');
    expect((await readInvoice(service, body.invoiceId)).body.payment.address).toBe(other.addresses[0]);
  });
});

test('a clock that was put forward is not believed for an hour, and one that was set back is at once', () => {
  let [wall, ms] = [1_000_000, 0];
  const steady = createSteadyClock(
    () => wall,
    () => ms,
  );
  const pass = (forMs: number) => {
    wall += forMs;
    ms += forMs;
    return steady();
  };
  expect(pass(5000)).toBe(1_005_000);
  wall += HOUR_MS;
  expect(pass(1000)).toBe(1_006_000);
  expect(pass(59 * 60_000)).toBe(1_006_000 + 59 * 60_000);
  expect(pass(2 * 60_000)).toBe(wall);
  wall -= 2 * HOUR_MS;
  expect(pass(1000)).toBe(wall);
  // Set forward and back again, the clock was right in the end.
  wall += HOUR_MS;
  pass(1000);
  wall -= HOUR_MS;
  expect(pass(1000)).toBe(wall);
});
