import { afterAll, beforeAll, expect, test } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { NO_MANIFEST } from '../../src/faces/operator/operation.ts';
import { showAddress } from '../../src/faces/operator/subjects/addresses.ts';
import { compareBalances, listBalances } from '../../src/faces/operator/subjects/balances.ts';
import { type Books, startBooks } from '../support/books.ts';

let books: Books;
let now: number;
beforeAll(async () => {
  books = await startBooks();
  now = Date.now();
});
afterAll(() => books.stop());

const ACTOR = commandActor('anna');
const all = { projectId: undefined, after: 0 };
const list = async () => (await listBalances.run({ ...books, addressGuard: NO_MANIFEST }, ACTOR, all)).data;
const compare = () => {
  const nodes = async () => ({
    withNodes: <Output>(_network: string, work: (deps: ReturnType<Books['rescanning']>) => Promise<Output>) =>
      work(books.rescanning()),
    describeForPayer: () => '',
  });
  return compareBalances.run({ db: books.db, now: () => unixMs(now), nodes, addressGuard: NO_MANIFEST }, ACTOR, all);
};

test('the ledger’s balance is what came in less what left, and from the first comparison on with what was there before', async () => {
  const payer = await books.adoptPayer();
  const [first = ''] = books.project.addresses;
  expect(await list()).toMatchObject([
    { address: first, ledger: '0.000000', chain: null, status: 'active' },
    { ledger: '0.000000', chain: null },
    { address: payer, ledger: '0.000000', chain: null },
  ]);
  await books.send(first, 7_000_001n);
  await books.record();
  expect(await list()).toMatchObject([{ ledger: '7.000001' }, { ledger: '0.000000' }, { ledger: '-7.000001' }]);
  const { data, node, skipped } = await compare();
  expect([data.map(({ status }) => status), skipped]).toEqual([['good', 'good', 'good'], []]);
  expect(node).toBe(books.node.origin);
  const [, , held] = await list();
  expect(held?.ledger).toBe(held?.chain?.balance);
  expect(Number(held?.ledger)).toBeGreaterThan(0);
  expect(await list()).toMatchObject([{ ledger: '7.000001', chain: { balance: '7.000001', isSame: true } }, {}, {}]);
  expect(await compare()).toMatchObject({ data: [], skipped: [first, expect.any(String), payer] });
});

test('what the ledger missed differs, and the list goes on to say so', async () => {
  const [first = ''] = books.project.addresses;
  await books.send(first, 1_000_000n);
  await books.record(() => true);
  now = Date.now() + 61_000;
  const { data } = await compare();
  expect(data[0]).toMatchObject({ address: first, status: 'differs', ledger: '7.000001', chain: '8.000001' });
  expect((await list())[0]).toMatchObject({
    ...{
      ledger: '7.000001',
      chain: { balance: '8.000001', ledger: '7.000001', block: expect.any(Number), isSame: false },
    },
  });
});

test('what retiring means is told in numbers', async () => {
  const made = await books.invoice(5_000_000n);
  const data = await list();
  const counts = await Promise.all(
    data.map(
      async ({ address }) => (await showAddress.run(books, ACTOR, { projectId: undefined, address })).openInvoices,
    ),
  );
  expect([made.status, counts.toSorted()]).toEqual(['PENDING', [0, 0, 1]]);
  await expect(showAddress.run(books, ACTOR, { projectId: undefined, address: 'T' })).rejects.toMatchObject({
    code: 'NOT_FOUND',
  });
});
