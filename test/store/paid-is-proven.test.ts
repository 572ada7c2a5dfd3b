import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';

let database: TestDatabase;
/** The service's role. */
let service: pg.Client;
let owner: pg.Client;
const [project, address] = [randomUUID(), randomUUID()];

beforeAll(async () => {
  database = await createTestDatabase();
  [service, owner] = [new pg.Client(database.connection), new pg.Client(database.owner)];
  await Promise.all([service.connect(), owner.connect()]);
  await owner.query(`insert into projects (id, name, network) values ('${project}', 'shop', 'devnet');
    insert into addresses (id, project_id, network, account, address, position)
    select '${address}', '${project}', 'devnet', a, tron_address(a), 1 from (values (decode(repeat('4a', 20), 'hex'))) _ (a)`);
});
afterAll(async () => {
  await Promise.all([service.end(), owner.end()]);
  await database.drop();
});

/** Runs statements in one transaction of the service. Returns the refusal, or `committed`. */
async function run(statements: readonly string[], client = service): Promise<string> {
  await client.query('begin');
  try {
    for (const statement of statements) await client.query(statement);
    await client.query('commit');
    return 'committed';
  } catch (error) {
    await client.query('rollback');
    return (error as Error).message;
  }
}

/** The refusals of a write that contradicts reality. Any other refusal is a mistake in the statement. */
const REFUSAL =
  /without an event|which pays nothing|is one event$|tells what invoice|has none before it|is not PAID by it|violates|is not to the address|never left/;

type Order = { id: string; amount: number };
let amount = 0;
const invoice = ({ id, amount: micro }: Order, status = 'PENDING', count = 0, paidBy: string | null = null) =>
  `insert into invoices (id, project_id, network, address_id, idempotency_key, external_id, requested_micro, payable_micro,
     checkout_token, created_at, expires_at, status, event_count, paid_transfer_id)
   values ('${id}', '${project}', 'devnet', '${address}', '${id}', '${id}', 1, ${micro}, left('${id.replaceAll('-', '')}', 20), now(), now(),
     '${status}', ${count}, ${paidBy === null ? 'null' : `'${paidBy}'`})`;
const transfer = (id: string, order: Order | null, kind: string) =>
  `insert into transfers (id, project_id, network, address_id, tx_id, log_index, block_number, block_id, block_time, from_address,
     amount_micro, kind, invoice_id, reserved_micro, verified, nodes)
   values ('${id}', '${project}', 'devnet', '${address}', decode(md5('${id}') || md5('${id}'), 'hex'), 0, 1, decode(repeat('11', 32), 'hex'),
     now(), 'T', ${order?.amount ?? 7}, '${kind}', ${order === null ? 'null, null' : `'${order.id}', ${order.amount}`}, 'proven', '{}')`;
const event = (order: Order, sequence: number, type: string, about: string | null = null) =>
  `insert into events (id, project_id, network, type, invoice_id, transfer_id, sequence, body)
   values ('${randomUUID()}', '${project}', 'devnet', '${type}', '${order.id}', ${about === null ? 'null' : `'${about}'`}, ${sequence}, '{}')`;
const change = ({ id }: Order, status: string, count: number, paidBy: string | null = null) =>
  `update invoices set status = '${status}', event_count = ${count}, paid_transfer_id = ${paidBy === null ? 'null' : `'${paidBy}'`}
   where project_id = '${project}' and id = '${id}'`;
const typeOf = (status: string) => `invoice.${status.toLowerCase()}`;

/** Creates an invoice with a history of statuses, each with its event. */
async function orderAfter(statuses: readonly string[]): Promise<Order & { count: number; transfer: string }> {
  amount += 1;
  const order = { id: randomUUID(), amount };
  const paidBy = randomUUID();
  expect(await run([invoice(order)])).toBe('committed');
  for (const [index, status] of statuses.entries()) {
    const by = status === 'PAID' ? paidBy : null;
    const statements = [event(order, index + 1, typeOf(status), by), change(order, status, index + 1, by)];
    expect(await run(by === null ? statements : [transfer(by, order, 'matched'), ...statements])).toBe('committed');
  }
  return { ...order, count: statuses.length, transfer: paidBy };
}

describe('at the commit', () => {
  test('every way of an invoice passes that changes its status with its event, in whatever order and in however many transactions', async () => {
    const steps = fc.array(fc.tuple(fc.constantFrom('CONFIRMING', 'PENDING', 'EXPIRED'), fc.boolean(), fc.boolean()), {
      maxLength: 5,
    });
    await fc.assert(
      fc.asyncProperty(steps, fc.boolean(), fc.boolean(), async (way, isPaid, isEventFirst) => {
        const order = await orderAfter([]);
        let [count, status] = [0, 'PENDING'];
        let open: string[] = [];
        const go = (to: string, isFirst: boolean, by: string | null = null) => {
          count += 1;
          status = to;
          const pair = [event(order, count, typeOf(to), by), change(order, to, count, by)];
          open.push(...(isFirst ? pair : pair.reverse()));
        };
        for (const [to, isFirst, isCommitted] of way) {
          if (to === status) continue;
          go(to, isFirst);
          if (!isCommitted) continue;
          expect(await run(open)).toBe('committed');
          open = [];
        }
        if (isPaid) {
          open.push(transfer(order.transfer, order, 'matched'));
          go('PAID', isEventFirst, order.transfer);
          open.push(transfer(randomUUID(), order, 'duplicate'));
        }
        expect(await run(open)).toBe('committed');
      }),
      { numRuns: 40 },
    );
  });

  test('a payment of which any part is missing is refused, and the whole is not', async () => {
    for (const before of [[], ['EXPIRED'], ['CONFIRMING'], ['CONFIRMING', 'PENDING']]) {
      for (let parts = 1; parts < 8; parts += 1) {
        const order = await orderAfter(before);
        const whole = [
          transfer(order.transfer, order, 'matched'),
          event(order, order.count + 1, 'invoice.paid', order.transfer),
          change(order, 'PAID', order.count + 1, order.transfer),
        ];
        const some = whole.filter((_, index) => parts & (1 << index));
        const outcome = await run(some);
        expect(outcome === 'committed', `${before.join()} parts ${parts}: ${outcome}`).toBe(parts === 7);
        if (parts !== 7) expect(await run(whole), `${before.join()} after parts ${parts}`).toBe('committed');
      }
    }
  });

  type Forbidden = (order: Order & { count: number; transfer: string }) => readonly string[];
  const paid = (
    { transfer: by, ...order }: Parameters<Forbidden>[0],
    kind = 'matched',
    shift = 0,
    type = 'invoice.paid',
  ) => [
    transfer(by, order, kind),
    event(order, order.count + 1 + shift, type, by),
    change(order, 'PAID', order.count + 1, by),
  ];
  const other = randomUUID();
  const FORBIDDEN: Record<string, Forbidden> = {
    'PAID by a duplicate': (order) => paid(order, 'duplicate'),
    'PAID by a transfer of another invoice': (order) => [
      change(order, 'PAID', order.count + 1, other),
      event(order, order.count + 1, 'invoice.paid', other),
    ],
    'PAID with an event of another status': (order) => paid(order, 'matched', 0, 'invoice.expired'),
    'PAID with an event about another transfer': (order) => [
      transfer(order.transfer, order, 'matched'),
      transfer(other, null, 'unmatched'),
      event(order, order.count + 1, 'invoice.paid', other),
      change(order, 'PAID', order.count + 1, order.transfer),
    ],
    'PAID with an event about no transfer': (order) => [
      transfer(order.transfer, order, 'matched'),
      event(order, order.count + 1, 'invoice.paid'),
      change(order, 'PAID', order.count + 1, order.transfer),
    ],
    'PAID with a gap before its event': (order) => paid(order, 'matched', 1),
    'PAID, told twice': (order) => [...paid(order), event(order, order.count + 2, 'invoice.paid', order.transfer)],
    'PAID, told twice and counted': (order) => [
      ...paid(order),
      event(order, order.count + 2, 'invoice.paid', order.transfer),
      `update invoices set event_count = ${order.count + 2} where id = '${order.id}'`,
    ],
    'PAID that was told before': (order) => [
      event(order, order.count + 1, 'invoice.paid'),
      change(order, order.count % 2 === 0 ? 'CONFIRMING' : 'EXPIRED', order.count + 1),
    ],
    'a change without an event': (order) => [change(order, 'CONFIRMING', order.count + 1)],
    'a change that is not counted': (order) => [
      event(order, order.count + 1, 'invoice.confirming'),
      change(order, 'CONFIRMING', order.count),
    ],
    'a change that counts twice': (order) => [
      event(order, order.count + 1, 'invoice.confirming'),
      event(order, order.count + 2, 'invoice.confirming'),
      change(order, 'CONFIRMING', order.count + 2),
    ],
    'a count without a change': (order) => [
      event(order, order.count + 1, 'invoice.pending'),
      `update invoices set event_count = event_count + 1 where id = '${order.id}'`,
    ],
    'an event without a change': (order) => [event(order, order.count + 1, 'invoice.expired')],
    'an event beyond a gap': (order) => [event(order, order.count + 2, 'invoice.expired')],
    'an event of no invoice': (order) => [event({ ...order, id: randomUUID() }, 1, 'invoice.expired')],
    'a matched transfer with an invoice that does not change': (order) => [transfer(order.transfer, order, 'matched')],
    'an invoice that is born PAID': () => {
      amount += 1;
      const born = { id: randomUUID(), amount };
      const by = randomUUID();
      return [invoice(born, 'PAID', 1, by), transfer(by, born, 'matched')];
    },
    'an invoice that is born with events that are not there': () => {
      amount += 1;
      return [invoice({ id: randomUUID(), amount }, 'EXPIRED', 1)];
    },
  };
  const BEFORE = [[], ['EXPIRED'], ['EXPIRED', 'CONFIRMING', 'EXPIRED']];

  test.each(Object.entries(FORBIDDEN))('%s is refused, whatever was before', async (_name, write) => {
    for (const before of BEFORE) {
      const order = await orderAfter(before);
      expect(await run(write(order)), before.join()).toMatch(REFUSAL);
      expect(await run(paid(order)), before.join()).toBe('committed');
    }
  });

  test.each(Object.entries(FORBIDDEN).filter(([name]) => !/^PAID|matched/.test(name)))(
    '%s is refused of a PAID invoice',
    async (_name, write) => {
      const order = await orderAfter(['CONFIRMING', 'PAID']);
      expect(await run(write(order))).toMatch(REFUSAL);
    },
  );

  test('an invoice that was paid before this rule, and whose payment the chain denies, stays as it is', async () => {
    const order = await orderAfter(['PAID']);
    const annulled = `insert into transfer_annulments (transfer_id, project_id, invoice_id, denied_by, annulled_at, annulled_by, reason)
      values ('${order.transfer}', '${project}', '${order.id}', decode(repeat('22', 32), 'hex'), now(), 'ann', 'made up')`;
    expect(await run([annulled], owner)).toBe('committed');
    expect(await run([transfer(randomUUID(), order, 'duplicate')])).toBe('committed');
    expect(await run([transfer(randomUUID(), order, 'matched')])).toMatch(REFUSAL);
  });
});

describe('a cursor', () => {
  const hold = (seconds: number) =>
    `insert into leases (name, holder, epoch, expires_at) values ('watcher:devnet', 'one', 1, now() + interval '${seconds} seconds')
     on conflict (name) do update set expires_at = excluded.expires_at`;
  const block = (number: number) => `decode(lpad(to_hex(${number}), 64, '0'), 'hex')`;
  const move = (to: number, id = to) =>
    `update chain_cursors set solid_number = ${to}, solid_id = ${block(id)}, solid_time = now() where network = 'devnet'`;
  const forget = (to: number) => `select from forget_head_blocks_up_to('devnet', ${to})`;
  const AT = 5000;

  beforeEach(async () => {
    await owner.query(`begin; set local session_replication_role = 'replica'; delete from head_blocks; delete from chain_cursors; delete from leases;
      insert into chain_cursors (network, solid_number, solid_id, solid_time) values ('devnet', ${AT}, ${block(AT)}, now());
      insert into head_blocks (network, number, block_id, block_time) select 'devnet', n, ${block('n' as never)}, now()
      from generate_series(${AT + 1}, ${AT + 3}) n; ${hold(60)}; commit`);
  });

  test.each([
    ['to the next block', [forget(AT + 1), move(AT + 1)]],
    ['to a block above all that was examined', [forget(AT + 1000), move(AT + 1000)]],
    ['in two steps of one transaction', [move(AT + 1), forget(AT + 2), move(AT + 2)]],
    ['not, while something else of it changes', ["update chain_cursors set halted_at = now(), halt_reason = 'x'"]],
  ])('moves %s', async (_name, statements) => {
    expect(await run(statements)).toBe('committed');
  });

  test.each([
    ['back', [forget(AT + 3), move(AT - 1)], /goes forward/],
    ['to another block of its height', [forget(AT + 3), move(AT, 7)], /goes forward/],
    ['by more than 1,000 blocks', [forget(AT + 1001), move(AT + 1001)], /1,000 blocks at most/],
    ['while nobody follows the network', [hold(-1), forget(AT + 1), move(AT + 1)], /no process follows/],
    ['alone', [move(AT + 2)], /do not begin there/],
    ['with a part of the examined blocks', [forget(AT + 1), move(AT + 2)], /do not begin there/],
    ['less than the examined blocks that are forgotten', [forget(AT + 2), move(AT + 1)], /do not begin there/],
  ])('does not move %s', async (_name, statements, refusal) => {
    expect(await run(statements)).toMatch(refusal);
  });
});
