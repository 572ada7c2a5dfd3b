import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, onTestFinished, test, vi } from 'vitest';
import { encodeId } from '../../src/core/domain/ids.ts';
import { listAuditEntries } from '../../src/core/store/access/audit-log.ts';
import { startBooks } from '../support/books.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { addressOf, at, createLedger } from './explain-ledger.ts';
import { startRecording } from './golden-record.ts';
import { newDirectory } from './run-cli.ts';

// See golden.test.ts. The devnet begins at noon too and its keys are fixed, so that its blocks are the same in each run.

afterEach(() => {
  vi.useRealTimers();
});

const MASTER_KEY = 'A'.repeat(43).concat('=');

/** Creates a shop on a devnet of which only the beginning is recorded. */
async function openPart(part: string, named: Record<string, string> = {}) {
  vi.useFakeTimers({ toFake: ['Date'], now: at('12:00:00') });
  const books = await startBooks({ addressCount: 0 });
  onTestFinished(() => books.stop());
  const ledger = await createLedger(books.database);
  const shop = await ledger.addProject();
  const [tail, other] = [await ledger.addAddress(shop, 0xa1), await ledger.addAddress(shop, 0xa2, { position: 2 })];
  const invoices = {
    paid: await ledger.addInvoice(tail, { externalId: 'paid' }),
    forged: await ledger.addInvoice(tail, { externalId: 'forged', payable: '25.000144' }),
    unproven: await ledger.addInvoice(tail, { externalId: 'unproven', payable: '25.000151' }),
  };
  const env = {
    ...{ DATABASE_URL: books.database.connectionString, DATABASE_OWNER_URL: books.database.ownerString },
    ...{ QUITTANCE_DEVNET_NODES: books.devnet.url, QUITTANCE_DEVNET_USDT: books.devnet.usdtContract },
    ...{ QUITTANCE_MASTER_KEY: MASTER_KEY, QUITTANCE_DATA_DIR: newDirectory() },
  };
  named[new URL(books.devnet.url).host] = '127.0.0.1:XXXXX';
  const recording = startRecording(part, env, named);
  return { ...recording, books, ledger, shop, tail, other, invoices };
}

const blocks = ({ from, to }: { from: number; to: number }) => ['--from', String(from), '--to', String(to)];

test('the chain is shown, compared, read again and repaired as it was', async () => {
  const { run, both, finishAudited, books, tail, other, invoices } = await openPart('chain');
  await both(['chain', 'status']);
  await both(['chain', 'producers']);
  await both(['reconcile']);
  await books.send(tail.address, 25_000_137n);
  const recorded = await books.record();
  await both(['chain', 'verify', ...blocks(recorded)]);
  await both(['explain', 'paid']);
  await books.send(other.address, 6_000_001n);
  const missed = await books.record(() => true);
  await both(['chain', 'verify', ...blocks(missed)]);
  // It waits a while to make sure that a difference is real.
  await run(['reconcile', '--address', `${tail.address},${other.address}`, '--json']);
  await both(['chain', 'repair', ...blocks(missed)]);
  await both(['chain', 'rescan', ...blocks(missed)]);
  await both(['reconcile']);
  await both(['reconcile', '--address', addressOf(0x44)]);
  await run(['reconcile', '--address', 'T1', '--json']);
  await run(['reconcile', '--network', 'mainnet', '--json']);

  const { devnet, payer } = books;
  devnet.setFault({ kind: 'forged-log', to: tail.address, amountMicro: 25_000_144n });
  const transfers = [{ to: devnet.payer.address, amountMicro: 1_000_000n }];
  await payer.multisend({ multisendContract: devnet.multisendContract, token: devnet.usdtContract, transfers });
  const forged = await books.record();
  devnet.setFault();
  const repair = (...args: string[]) => both(['chain', 'repair', ...blocks(forged), ...args]);
  await both(['chain', 'verify', ...blocks(forged)]);
  await repair();
  await repair('--yes');
  await repair('--yes', '--reason', 'the node lied');
  const invoice = encodeId('inv', invoices.forged.id);
  await run([
    'chain',
    'repair',
    ...blocks(forged),
    '--yes',
    '--reason',
    'the node lied',
    '--invoice',
    invoice,
    '--json',
  ]);
  await repair('--yes', '--reason', 'the node lied');
  await both(['explain', 'forged']);
  await both(['transfers', 'list', '--kind', 'all', '--all']);
  await both(['chain', 'status']);
  const acknowledge = (...args: string[]) => both(['chain', 'acknowledge', ...args]);
  await acknowledge();
  await acknowledge('--alarm', 'fire');
  await acknowledge('--alarm', 'blind');
  await acknowledge('--alarm', 'payment-denied', '--subject', invoice);
  for (const wrong of [
    ['0', '5'],
    ['9', '5'],
    ['1', '90000'],
    ['1', 'x'],
  ]) {
    await both(['chain', 'rescan', '--from', wrong[0] ?? '', '--to', wrong[1] ?? '']);
  }
  await both(['chain', 'verify', '--from', '1']);
  await finishAudited();
});

test('what only a person decides of the chain is shown, done and refused as it was', async () => {
  const { run, both, finishAudited, books, ledger, shop, tail } = await openPart('chain-decisions');
  await both(['chain', 'resume']);
  await ledger.sql(`update chain_cursors set halted_at = $1, halt_reason = 'block 7 contradicts'`, [
    new Date(at('11:00:00')),
  ]);
  await both(['chain', 'status']);
  await both(['chain', 'resume']);
  await run(['chain', 'resume', '--yes', '--json']);
  await run(['chain', 'resume', '--network', 'odd']);
  await both(['chain', 'producers', '--accept']);
  await both(['chain', 'producers', '--accept', '--yes']);

  await books.record();
  await run(['chain', 'checkpoint']);
  const checkpoint = await run(['chain', 'checkpoint', '--json']);
  const file = join(newDirectory(), 'checkpoint.json');
  writeFileSync(file, JSON.stringify(checkpoint));
  await both(['chain', 'checkpoint', '--check', file]);
  books.devnet.mine(60);
  await both(['chain', 'checkpoint', '--check', file]);
  writeFileSync(file, '{}');
  await both(['chain', 'checkpoint', '--check', file]);

  const { devnet } = books;
  await books.record();
  const before = devnet.head().number + 1;
  await books.send(tail.address, 25_000_151n);
  await books.payer.transfer({ contract: devnet.usdtContract, to: devnet.payer.address, amountMicro: 1n });
  await books.record(() => false, before);
  const pass = (block: number, ...args: string[]) =>
    both(['chain', 'pass', '--block', String(block), '--reason', 'compared', ...args]);
  await pass(before + 1);
  await pass(before, '--yes');
  const { id } = await books.read(before);
  devnet.setFault({ kind: 'omitted-transaction' });
  await pass(before);
  await pass(before, '--yes', '--id', 'ab'.repeat(32));
  await pass(before, '--yes', '--id', id);
  devnet.setFault();
  await both(['chain', 'pass', '--block', 'x', '--reason', 'y']);
  await both(['chain', 'pass', '--block', '1']);

  const inShop = ['--project', shop.projectId];
  await both(['address', 'add', addressOf(0xa5), ...inShop]);
  await run(['address', 'add', addressOf(0xa6), tail.address, ...inShop, '--json']);
  await both(['address', 'derive', '--count', '1', ...inShop]);
  await finishAudited();
});

test('a backup is made, examined and restored as it was', async () => {
  const named: Record<string, string> = {};
  const { run, both, finishAudited, books, tail } = await openPart('backup', named);
  await books.send(tail.address, 25_000_137n);
  await books.record();
  const folder = newDirectory();
  const file = join(folder, 'ledger.backup');
  await both(['restore', 'accept']);
  await both(['restore', 'accept', '--nothing-created-since']);
  await run(['backup', '--to', file, '--json']);
  await run(['backup', '--to', join(folder, 'second.backup')]);
  await books.send(tail.address, 25_000_144n);
  await books.record();
  await run(['backup', '--verify', file]);
  await both(['restore', file]);
  await run(['backup', 'keygen', join(folder, 'key.txt'), '--json']);
  await run(['backup', '--to', join(folder, 'closed.backup'), '--final', '--json']);
  await run(['backup', '--verify', join(folder, 'closed.backup')]);
  // The hash covers the name of this machine.
  const newest = { before: null, limit: 100, action: null, subject: null, by: null };
  for (const { seq, hash } of await listAuditEntries(books.db, newest)) named[hash] = String(seq).padStart(64, 'x');
  const target = await createTestDatabase();
  onTestFinished(() => target.drop());
  const env = { DATABASE_URL: target.connectionString, DATABASE_OWNER_URL: target.ownerString };
  await run(['restore', join(folder, 'closed.backup'), '--by', 'bert', '--json'], { env });
  await run(['restore', file], { env });
  await run(['restore', join(folder, 'none.backup')], { env });
  await run(['restore', 'accept', '--retire-addresses', '--json'], { env });
  await run(['audit', 'list']);
  await finishAudited({ env });
});
