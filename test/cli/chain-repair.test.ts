import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { BEHIND_BLOCKS } from '../../src/core/domain/books.ts';
import { encodeId } from '../../src/core/domain/ids.ts';
import { findOpenAlarms } from '../../src/core/store/chain/alarms.ts';
import { findInvoicePayment } from '../../src/core/store/ledger/payments.ts';
import { type Books, startBooks } from '../support/books.ts';
import { type CliOutput, envOf, runCli } from './run-cli.ts';

let books: Books;
beforeAll(async () => {
  books = await startBooks();
});
afterAll(() => books.stop());
beforeEach(() => books.devnet.setFault());

function run(...args: string[]): Promise<CliOutput> {
  return runCli(args, { env: envOf(books) });
}

/** Returns the commands that a text recommends, as an operator would type them. */
function adviceIn(text: string): string[] {
  const found = /quittance (chain (?:rescan|repair) --network[^"\n]*?(?: --yes --reason "…"|(?= *$|[".]|\n)))/m.exec(
    text,
  );
  if (found?.[1] === undefined) throw new Error(`no advice in: ${text}`);
  return found[1].replace('"…"', 'the-node-lied').split(' ');
}

/** Creates an invoice that was never paid, but is `PAID` because the only node put a log of it into an unrelated transaction. */
async function forgedPayment() {
  const { id } = await books.invoice(25_000_000n);
  const invoice = await findInvoicePayment(books.db, books.project.id, id);
  if (invoice === null) throw new Error('no invoice');
  const { address, payableMicro } = invoice;
  const { devnet, payer } = books;
  const transfers = [{ to: devnet.payer.address, amountMicro: 1_000_000n }];
  devnet.setFault({ kind: 'forged-log', to: address, amountMicro: payableMicro });
  await payer.multisend({ multisendContract: devnet.multisendContract, token: devnet.usdtContract, transfers });
  const range = await books.record();
  devnet.setFault();
  const status = async () => (await findInvoicePayment(books.db, books.project.id, id))?.status;
  return { invoiceId: encodeId('inv', id), address, range, status };
}

test('what the alarm of a forged payment advises leads, followed word for word, to books that balance', async () => {
  expect((await run('reconcile')).code).toBe(0);
  const { invoiceId, address, status } = await forgedPayment();
  expect(await status()).toBe('PAID');
  // A balance from this many blocks ago would be accepted too.
  books.devnet.mine(BEHIND_BLOCKS);
  await books.record();
  expect((await run('reconcile')).code).toBe(1);
  const [alarm] = await findOpenAlarms(books.db, 'devnet');
  expect(alarm).toMatchObject({ kind: 'balance-differs', subject: address });

  let advice = adviceIn(alarm?.detail ?? '');
  let followed = await run(...advice);
  for (let step = 0; step < 3 && followed.code !== 0; step += 1) {
    advice = adviceIn(followed.stderr);
    followed = await run(...advice);
  }
  expect([followed.code, followed.stdout]).toEqual([
    0,
    expect.stringContaining('1 taken back; added to the ledger: 0 matched'),
  ]);
  expect(advice).toEqual(expect.arrayContaining(['repair', '--invoice', invoiceId, '--yes']));
  expect(followed.stdout).toContain('stays PAID, but its payment is not on the chain');
  expect((await run('reconcile')).code).toBe(0);
  expect((await findOpenAlarms(books.db, 'devnet')).map(({ kind, subject }) => [kind, subject])).toEqual([
    ['payment-denied', invoiceId],
  ]);
  expect(await status()).toBe('PAID');
});

test('chain repair changes nothing without --yes, a reason, and the name of each invoice that was PAID by a lie', async () => {
  const { invoiceId, range } = await forgedPayment();
  const args = ['chain', 'repair', '--from', String(range.from), '--to', String(range.to)];
  const shown = await run(...args, '--json');
  expect(shown.code).toBe(1);
  expect(shown.json).toMatchObject({ isChanged: false, differences: [{ kind: 'not-on-chain', match: 'matched' }] });
  expect(shown.json.differences[0].invoice).toMatchObject({ invoiceId, status: 'PAID' });
  const silent = await run(...args, '--yes');
  expect([silent.code, silent.stderr]).toEqual([2, expect.stringContaining('--reason is missing')]);
  const unnamed = await run(...args, '--yes', '--reason', 'a lie');
  expect([unnamed.code, unnamed.stderr]).toEqual([4, expect.stringContaining(`add --invoice ${invoiceId}`)]);
  const { id } = await books.invoice(9_000_000n);
  const wrong = await run(...args, '--yes', '--reason', 'a lie', '--invoice', `${invoiceId},${encodeId('inv', id)}`);
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('leave it out')]);
  expect((await run(...args)).code).toBe(1);

  const done = await run(...args, '--yes', '--reason', 'a lie', '--by', 'anna', '--invoice', invoiceId, '--json');
  expect([done.code, done.json]).toEqual([
    0,
    expect.objectContaining({ isChanged: true, takenBack: 1, by: 'anna', left: [] }),
  ]);
  const again = await run(...args, '--yes', '--reason', 'a lie');
  expect([again.code, again.stdout]).toEqual([0, expect.stringContaining('there is nothing to repair')]);
});

test('a payment that was taken back shows as such wherever it is asked for, and nowhere as money that came', async () => {
  const { invoiceId, address, range } = await forgedPayment();
  const args = ['--from', String(range.from), '--to', String(range.to), '--yes', '--invoice', invoiceId];
  const before = (await run('explain', address, '--json')).json.subject.transfers.incoming;
  const exported = async () => (await run('transfers', 'export', '--direction', 'in', '--json')).json.data;
  const listed = async () => (await run('transfers', 'list', '--kind', 'all', '--all', '--json')).json.data;
  const [transfer] = (await listed()).filter(
    ({ invoice }: { invoice: { invoiceId: string } }) => invoice.invoiceId === invoiceId,
  );
  const { transferId, txId } = transfer;
  expect((await exported()).map((row: { transferId: string }) => row.transferId)).toContain(transferId);
  await run('chain', 'repair', ...args, '--reason', 'a lie', '--by', 'anna');

  expect((await exported()).map((row: { transferId: string }) => row.transferId)).not.toContain(transferId);
  expect((await listed()).map((row: { transferId: string }) => row.transferId)).not.toContain(transferId);
  expect((await run('explain', address, '--json')).json.subject.transfers.incoming).toBe(before - 1);
  const shown = await run('transfers', 'show', transferId);
  expect(shown.stdout).toMatch(
    /annulled +this payment is not on the chain, but the invoice stays PAID; by anna, .*: a lie/,
  );
  const ofInvoice = await run('explain', invoiceId);
  expect(ofInvoice.stdout).toMatch(
    /has been PAID since .* But this transfer is not on the chain: anna took it back at .* \(a lie\)/,
  );
  expect(ofInvoice.stdout).toContain('anna removed the transfer because it is not on the chain');
  const ofTransaction = await run('explain', txId);
  expect(ofTransaction.stdout).toMatch(/were recorded, but this transfer is not on the chain/);
  const resolved = await run('transfers', 'resolve', transferId, '--as', 'kept');
  expect([resolved.code, resolved.stderr]).toEqual([4, expect.stringContaining('was annulled')]);
  const acknowledged = await run('chain', 'acknowledge', '--alarm', 'payment-denied', '--subject', invoiceId);
  expect(acknowledged.code).toBe(0);
});
