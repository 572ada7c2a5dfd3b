import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { AppError } from '../../src/core/domain/errors.ts';
import { encodeId } from '../../src/core/domain/ids.ts';
import { startEmitting } from '../../src/core/payments/emit-unmatched-events.ts';
import type { Database, Sql } from '../../src/core/store/db/database.ts';
import { unlistedStatement } from '../../src/core/store/db/statement.ts';
import { findInvoicePayment } from '../../src/core/store/ledger/payments.ts';
import { type Books, startBooks } from '../support/books.ts';
import { eventually } from '../support/service.ts';
import { longTest } from '../support/some-cases.ts';

/** A watcher records unmatched transfers without waiting, and a loop writes their events after judging them. */
let books: Books;
let invoice: { id: string; address: string; payableMicro: bigint };
beforeAll(async () => {
  books = await startBooks();
});
afterAll(() => books.stop());
beforeEach(async () => {
  const { id } = await books.invoice(25_000_000n);
  const found = await findInvoicePayment(books.db, books.project.id, id);
  if (found === null) throw new Error('no invoice');
  invoice = { id, address: found.address, payableMicro: found.payableMicro };
});

const tell = (db: Database = books.db) => startEmitting({ ...books, db, network: 'devnet', isLeader: () => true });

/** Sends one transfer of each amount and records them. Returns the ids of the unmatched ones in chain order. */
async function receive(...amounts: bigint[]): Promise<string[]> {
  for (const amount of amounts) await books.send(invoice.address, amount);
  await books.record();
  return (await books.db.run(NEWEST, [amounts.length])).map(({ id }) => id).reverse();
}

/** Receives transfers while nothing emits their events. */
async function receiveUntold(...amounts: bigint[]): Promise<string[]> {
  const ids = await receive(...amounts);
  expect(await untold()).toEqual(expect.arrayContaining(ids));
  return ids;
}

const NEWEST = unlistedStatement(
  '',
  { id: 'uuid' },
  "select id from transfers where kind <> 'matched' order by id desc limit $1",
);
const UNTOLD = unlistedStatement('', { id: 'uuid' }, 'select transfer_id as id from untold_transfers order by 1');
const TOLD = unlistedStatement(
  '',
  { id: 'uuid', type: 'text', body: 'text' },
  `select transfer_id as id, type, body from events where transfer_id = any($1::uuid[]) and type like 'transfer.%' order by position`,
);
const untold = async () => (await books.db.run(UNTOLD, [])).map(({ id }) => id);
const told = async (ids: string[]) =>
  (await books.db.run(TOLD, [ids])).map(({ id, type, body }) => ({ id, type, data: JSON.parse(body).data }));

/** Writes events until no transfer waits, or only these. */
async function tellAll(db = books.db, left: string[] = [], tellers = 1): Promise<void> {
  const loops = Array.from({ length: tellers }, () => tell(db));
  try {
    await eventually(untold, (ids) => ids.length === left.length);
    expect(await untold()).toEqual(left);
  } finally {
    for (const loop of loops) await loop.stop();
  }
}

test('the events carry the likeliest reason and the invoice that it was probably meant for, in the order of the chain', async () => {
  await receiveUntold(invoice.payableMicro - 1_000_000n);
  await books.send(invoice.address, invoice.payableMicro);
  await books.send(invoice.address, invoice.payableMicro);
  await books.record();
  const ids = await untold();
  expect(await told(ids)).toEqual([]);
  await tellAll();
  const nearest = { invoiceId: encodeId('inv', invoice.id), status: 'PAID' };
  expect(await told(ids)).toMatchObject([
    { id: ids[0], type: 'transfer.unmatched', data: { reason: { code: 'FEE_DEDUCTED' }, nearestInvoice: nearest } },
    {
      ...{ id: ids[1], type: 'transfer.duplicate' },
      data: {
        reason: { code: 'PAID_TWICE', confidence: 'high' },
        nearestInvoice: nearest,
        invoiceId: nearest.invoiceId,
      },
    },
  ]);
});

longTest('of two processes that tell at once, one tells of each transfer', async () => {
  const amounts = Array.from({ length: 130 }, (_, index) => 1_000n + BigInt(index));
  const ids = await receiveUntold(...amounts);
  await tellAll(books.db, [], 3);
  expect((await told(ids)).map(({ id }) => id)).toEqual(ids);
});

/** A database that refuses the statements that a test chooses, for one transfer. */
function refusing(
  refuses: (name: string, parameters: string) => boolean,
  error = new Error('it does not work'),
): Database {
  const only = (sql: Sql): Sql['run'] => {
    return async (statement, parameters) => {
      const given = JSON.stringify(parameters, (_, value) => (typeof value === 'bigint' ? String(value) : value));
      if (refuses(statement.name, given)) throw error;
      return sql.run(statement, parameters);
    };
  };
  const { db } = books;
  return { ...db, run: only(db), transaction: (work) => db.transaction((tx) => work({ ...tx, run: only(tx) })) };
}

const unavailable = (code: string) =>
  new AppError('DATABASE_UNAVAILABLE', code, { retryable: true, cause: Object.assign(new Error(code), { code }) });

test.each([
  ['fails', undefined],
  ['takes too long', unavailable('57014')],
] as const)(
  'what cannot be judged, because it %s, is told without a reason, and others with theirs',
  async (_, error) => {
    const ids = await receiveUntold(11n, invoice.payableMicro - 1_000_000n, 13n);
    const [poison = ''] = ids;
    await tellAll(refusing((name, parameters) => name === 'mismatch-transfers' && parameters.includes(poison), error));
    expect(
      (await told(ids)).map(({ data }) => [data.reason?.code ?? null, data.nearestInvoice?.status ?? null]),
    ).toEqual([
      [null, null],
      ['FEE_DEDUCTED', 'PENDING'],
      ['DUST', null],
    ]);
  },
);

test('what cannot be told holds up no other, neither now nor later, and is told when it can be', async () => {
  const ids = await receiveUntold(21n, 22n, 23n);
  const [, poison = ''] = ids;
  const loop = tell(refusing((name, parameters) => name === 'event-insert' && parameters.includes(poison)));
  await eventually(untold, (left) => left.length === 1);
  const later = await receive(24n);
  await eventually(untold, (left) => left.length === 1);
  await loop.stop();
  expect(await untold()).toEqual([poison]);
  await tellAll();
  const all = [...ids, ...later];
  expect((await told(all)).map(({ id }) => id)).toEqual([...all.filter((id) => id !== poison), poison]);
});

test('while the database is away nothing overtakes what waits, and the order of the chain is kept', async () => {
  const ids = await receiveUntold(...Array.from({ length: 120 }, (_, index) => 5_000n + BigInt(index)));
  let failures = 3;
  const away = (name: string, parameters: string) => {
    if (failures === 0 || name !== 'event-insert' || !parameters.includes(ids[0] ?? '')) return false;
    failures -= 1;
    return true;
  };
  await tellAll(refusing(away, unavailable('08006')));
  expect(failures).toBe(0);
  expect((await told(ids)).map(({ id }) => id)).toEqual(ids);
});

test('a teller that ends between the judgement and the event leaves it to the next one', async () => {
  const ids = await receiveUntold(31n, 32n);
  await tellAll(
    refusing((name) => name === 'untold-forget'),
    ids,
  );
  expect(await told(ids)).toEqual([]);
  await tellAll();
  expect((await told(ids)).map(({ id }) => id)).toEqual(ids);
});

test('a row of what was told before is removed, and nothing is told twice', async () => {
  const ids = await receiveUntold(41n);
  await tellAll();
  await books.db.run(
    unlistedStatement(
      '',
      {},
      'insert into untold_transfers (transfer_id, project_id, network) select id, project_id, network from transfers where id = any($1::uuid[])',
    ),
    [ids],
  );
  await tellAll();
  expect(await told(ids)).toHaveLength(1);
});
