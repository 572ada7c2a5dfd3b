import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { encodeId } from '../../src/core/domain/ids.ts';
import { applySolidBlocks } from '../../src/core/payments/record-transfers.ts';
import { listOperatorActions } from '../../src/core/store/access/audit-log.ts';
import { findCursor } from '../../src/core/store/chain/cursor.ts';
import { findPassedBlock } from '../../src/core/store/chain/passed-blocks.ts';
import { findInvoicePayment } from '../../src/core/store/ledger/payments.ts';
import { type Books, startBooks } from '../support/books.ts';
import { type CliOutput, runCli } from './run-cli.ts';

let books: Books;
let invoiceId: string;
let next: number;
beforeAll(async () => {
  books = await startBooks();
  books.devnet.mineUntilSolid();
  await books.record();
  const { id } = await books.invoice(25_000_000n);
  invoiceId = encodeId('inv', id);
  const invoice = await findInvoicePayment(books.db, books.project.id, id);
  await books.send(invoice?.address ?? '', invoice?.payableMicro ?? 0n);
  await books.payer.transfer({
    contract: books.devnet.usdtContract,
    to: books.devnet.payer.address,
    amountMicro: 1n,
  });
  books.devnet.mineUntilSolid();
  for (next = ((await findCursor(books.db, 'devnet'))?.solid.number ?? 0) + 1; ; next += 1) {
    const block = await books.read(next);
    if (block.transfers.length > 0) return;
    await applySolidBlocks(books.watching, [block]);
  }
});
afterAll(() => books.stop());
afterEach(() => books.devnet.setFault());

function run(args: string[], nodes = [books.devnet.url]): Promise<CliOutput> {
  const env = {
    DATABASE_URL: books.database.connectionString,
    QUITTANCE_DEVNET_NODES: nodes.join(','),
    QUITTANCE_DEVNET_USDT: books.devnet.usdtContract,
  };
  return runCli(args, { env });
}

const pass = (number: number, ...rest: string[]) => {
  return [
    'chain',
    'pass',
    '--block',
    String(number),
    '--reason',
    'compared with the explorer',
    '--by',
    'anna',
    ...rest,
  ];
};

test('only the block at which the ledger stands can pass, and only while no node can prove it', async () => {
  const later = await run(pass(next + 1));
  expect([later.code, later.stderr]).toEqual([2, expect.stringContaining(`the next devnet block is ${next}`)]);
  const earlier = await run(pass(next - 1));
  expect([earlier.code, earlier.stderr]).toEqual([2, expect.stringContaining('is already recorded')]);
  const proven = await run(pass(next, '--yes'));
  expect([proven.code, proven.stderr]).toEqual([4, expect.stringContaining("you don't have to accept it")]);
  const bare = await run(['chain', 'pass', '--block', String(next), '--reason', ' ']);
  expect([bare.code, bare.stderr]).toEqual([2, expect.stringContaining('--reason is missing')]);
  expect(await findPassedBlock(books.db, 'devnet', next)).toBeNull();
});

test('a block that nobody can prove is shown with what it holds and who shows it, and passes with --yes, recorded', async () => {
  books.devnet.setFault({ kind: 'omitted-transaction' });
  const shown = await run(pass(next));
  expect(shown.code).toBe(2);
  expect(shown.stderr).toContain('to your addresses  1 USDT transfers');
  expect(shown.stderr).toMatch(new RegExp(`25\\.\\d{6} +T\\w{33} +${invoiceId}, PENDING`));
  expect(shown.stderr).toContain(`${books.devnet.url}`);
  expect(shown.stderr).toContain('lacks data that the block header requires');
  const blockId = /--id ([0-9a-f]{64}) --yes/.exec(shown.stderr)?.[1] ?? '';
  expect(await findPassedBlock(books.db, 'devnet', next)).toBeNull();

  const other = await run(pass(next, '--yes', '--id', 'ab'.repeat(32)));
  expect([other.code, other.stderr]).toEqual([4, expect.stringContaining('no node returned --id')]);
  const passed = await run(pass(next, '--yes', '--id', blockId, '--json'));
  expect([passed.code, passed.json]).toEqual([0, expect.objectContaining({ number: next, blockId, passedBy: 'anna' })]);
  expect(passed.json.transfers).toEqual([expect.objectContaining({ invoiceId, status: 'PENDING' })]);
  expect(await findPassedBlock(books.db, 'devnet', next)).toMatchObject({
    ...{ blockId, passedBy: 'anna', reason: 'compared with the explorer' },
  });
  const [action] = await listOperatorActions(books.db, blockId);
  expect(action).toMatchObject({ projectId: null, action: 'block.passed', actedBy: 'anna' });
  const again = await run(pass(next, '--yes'));
  expect([again.code, again.stderr]).toEqual([4, expect.stringContaining('was already accepted by')]);
});

test('where nodes show different blocks, none passes until one is named, and one of a stranger’s own does not count as proven', async () => {
  const other = await books.devnet.addNode();
  books.devnet.setFault({ kind: 'omitted-transaction' });
  other.setFault({ kind: 'omitted-transaction-resealed', fromBlock: next });
  const asked = await run(pass(next, '--yes'), [books.devnet.url, other.url]);
  expect([asked.code, asked.stderr]).toEqual([
    4,
    expect.stringContaining('the nodes returned different blocks, so choose one with --id'),
  ]);
  const named = [...asked.stderr.matchAll(/returned ([0-9a-f]{64})/g)].at(-1)?.[1] ?? '';
  const shown = await run(pass(next, '--id', named), [books.devnet.url, other.url]);
  expect(shown.stderr).toContain('which is not a known producer');
});
