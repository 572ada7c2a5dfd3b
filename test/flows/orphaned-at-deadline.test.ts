import { afterEach, beforeEach, expect, test } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import { detectBlocks } from '../../src/core/payments/detect-blocks.ts';
import { applySolidBlocks } from '../../src/core/payments/record-transfers.ts';
import { findCursor } from '../../src/core/store/chain/cursor.ts';
import { findInvoicePayment } from '../../src/core/store/ledger/payments.ts';
import { type Books, startBooks } from '../support/books.ts';

let books: Books;
beforeEach(async () => {
  books = await startBooks();
});
afterEach(() => books.stop());

/** Examines the blocks above a height. `certainTime` defaults to the newest block's time. */
async function examine(aboveNumber: number, certainTime?: number): Promise<void> {
  const blocks = [];
  for (let number = aboveNumber + 1; number <= books.devnet.head().number; number += 1) {
    blocks.push(await books.read(number));
  }
  const newest = blocks.at(-1)?.time ?? 0;
  await detectBlocks(books.watching, aboveNumber, blocks, unixMs(certainTime ?? newest));
}

test.each([
  [
    'stays PENDING while operators do not agree yet on the logs of the blocks up to its deadline',
    'uncertain',
    'PENDING',
  ],
  ['is EXPIRED when all transfers up to its deadline are known', 'certain', 'EXPIRED'],
] as const)('an invoice whose payment was orphaned %s', async (_, what, expected) => {
  await books.record();
  const solid = (await findCursor(books.db, 'devnet'))?.solid;
  if (solid === undefined) throw new Error('no cursor');
  const { id, expiresAt } = await books.invoice(25_000_000n);
  const find = () => findInvoicePayment(books.db, books.project.id, id);
  const invoice = await find();
  if (invoice === null) throw new Error('no invoice');
  await books.send(invoice.address, invoice.payableMicro);
  books.devnet.mine();
  await examine(solid.number);
  expect((await find())?.status).toBe('CONFIRMING');

  books.devnet.fork({ depth: 1, keepTransactions: false });
  const afterDeadline = Math.ceil(expiresAt / 3000 + 1) * 3000;
  books.devnet.mine(1, { timestampMs: Math.max(afterDeadline, books.devnet.head().timestampMs + 3000) });
  await examine(solid.number, what === 'certain' ? undefined : solid.time);
  expect((await find())?.status).toBe(expected);
});

test('an invoice stays PENDING if the irreversible block lacks its payment, until all transfers up to its deadline are known', async () => {
  await books.record();
  const solid = (await findCursor(books.db, 'devnet'))?.solid;
  if (solid === undefined) throw new Error('no cursor');
  await examine(solid.number);
  const { id, expiresAt } = await books.invoice(25_000_000n);
  const find = () => findInvoicePayment(books.db, books.project.id, id);
  const invoice = await find();
  if (invoice === null) throw new Error('no invoice');
  const above = books.devnet.head().number;
  await books.send(invoice.address, invoice.payableMicro);
  books.devnet.mine();
  await examine(above);
  expect((await find())?.status).toBe('CONFIRMING');

  const afterDeadline = Math.ceil(expiresAt / 3000 + 1) * 3000;
  books.devnet.mine(1, { timestampMs: Math.max(afterDeadline, books.devnet.head().timestampMs + 3000) });
  await examine(above + 1, solid.time);
  const blocks = [];
  for (let number = solid.number + 1; number <= above + 1; number += 1) {
    blocks.push(await books.read(number, () => true));
  }
  await applySolidBlocks(books.watching, blocks);
  expect((await find())?.status).toBe('PENDING');
});
