import Schema from 'typebox/schema';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { runAndPrint } from '../../src/cli/terminal/add-operations.ts';
import { describeError } from '../../src/cli/terminal/describe-error.ts';
import { AppError } from '../../src/core/domain/errors.ts';
import { encodeId } from '../../src/core/domain/ids.ts';
import { asWritten } from '../../src/faces/operator/command-words.ts';
import { explainSubjectOperation } from '../../src/faces/operator/explain/explain.ts';
import { ExplanationView } from '../../src/faces/operator/explain/explanation.ts';
import type { LocalOperation } from '../../src/faces/operator/operation.ts';
import { letRowsStandAlone } from '../support/stand-alone.ts';
import { recordTerminal } from '../support/terminal.ts';
import { addressOf, at, createLedger, txIdOf } from './explain-ledger.ts';
import { runCli } from './run-cli.ts';

// The output is compared with the files in test/cli/golden. After an intended change, run `npx vitest run test/cli/explain.test.ts -u` and
// review the difference.

const NOW = at('12:00:00');
beforeEach(() => {
  vi.spyOn(Date, 'now').mockReturnValue(NOW);
});
afterEach(() => {
  vi.restoreAllMocks();
});

type Ledger = Awaited<ReturnType<typeof createLedger>>;
type Json = { verdict: string; timeline: { at: string; kind: string; text: string }[] } & Record<string, unknown>;

async function ask({ env }: Pick<Ledger, 'env'>, subject: string, options: { project?: string } = {}) {
  const terminal = recordTerminal({ env });
  const input = { text: subject, projectId: options.project };
  const result = await runAndPrint(terminal, explainSubjectOperation as LocalOperation, { input, by: undefined });
  terminal.print(result);
  const { stdout: text, stderr: next } = terminal.written;
  return { text, next, exitCode: terminal.exitCode(), data: JSON.parse(JSON.stringify(result?.data, asWritten)) };
}

/** Compares the output for people and for programs with the golden files of a name. */
async function expectGolden(ledger: Ledger, subject: string, name: string): Promise<Json> {
  const { text, next, data } = await ask(ledger, subject);
  const shown = `$ quittance explain ${subject}\n\n${text}${next === '' ? '' : `\n${next}`}`;
  await expect(shown).toMatchFileSnapshot(`golden/explain-${name}.txt`);
  expect(Schema.Errors(ExplanationView, JSON.parse(JSON.stringify(data)))[1]).toEqual([]);
  await expect(`${JSON.stringify(data, null, 2)}\n`).toMatchFileSnapshot(`golden/explain-${name}.json`);
  return data as Json;
}

/** Creates a shop with a key, an address and an endpoint, and an up-to-date ledger. */
async function openShop(options: Parameters<Ledger['addAddress']>[2] = {}) {
  const ledger = await createLedger();
  await letRowsStandAlone(ledger.owner);
  const project = await ledger.addProject();
  const apiKeyId = await ledger.addKey(project, 'web shop');
  const address = await ledger.addAddress(project, 0xa1, options);
  const endpoint = await ledger.addEndpoint(project);
  await ledger.setCursor([1900, at('11:58:50')], [1918, at('11:59:50')]);
  return { ledger, project, apiKeyId, address, endpoint };
}

const SENT = { status: 204, error: null };

describe('an invoice', () => {
  test('that was paid in time shows request, allocation, sighting, evidence, match, events and attempts', async () => {
    const { ledger, address, apiKeyId, endpoint } = await openShop();
    const invoice = await ledger.addInvoice(address, { externalId: 'order-17', apiKeyId });
    const payment = { to: address, amount: '25.000137', tx: 0x17, block: 1040, time: at('10:04:00') };
    const detected = { sequence: 1, createdAt: at('10:04:02'), payment };
    const confirming = await ledger.addInvoiceEvent('CONFIRMING', invoice, detected);
    const transfer = await ledger.addTransfer('matched', invoice, { ...payment, decidedAt: at('10:05:00') });
    const settled = { sequence: 2, createdAt: at('10:05:00'), payment, transferId: transfer.id };
    const paid = await ledger.addInvoiceEvent('PAID', invoice, settled);
    const first = { at: at('10:04:02.100'), ...SENT };
    await ledger.addDelivery(confirming, endpoint, { status: 'delivered', attempts: [first] });
    await ledger.addDelivery(paid, endpoint, { status: 'delivered', attempts: [{ at: at('10:05:00.200'), ...SENT }] });

    const { verdict, timeline } = await expectGolden(ledger, 'order-17', 'paid');
    expect(verdict).toMatch(
      /^order-17 has been PAID since 2026-09-01T10:05:00.000Z: .*, in time\. The shop has received/,
    );
    expect(timeline.map(({ kind }) => kind).join(' ')).toBe(
      'requested allocated transferred sighted event attempt matched event attempt',
    );
    expect((await ask(ledger, invoice.invoiceId)).data).toEqual((await ask(ledger, 'order-17')).data);
    await expectGolden(ledger, txIdOf(0x17), 'transaction-matched');
  });

  test('that is paid while it is read is told as it was when the reading began', async () => {
    const { ledger, address } = await openShop();
    const invoice = await ledger.addInvoice(address, { externalId: 'order-16' });
    const before = await ask(ledger, 'order-16');
    const payment = { to: address, amount: '25.000137', tx: 0x16, block: 1040, time: at('10:04:00') };
    const read = await ledger.whileWaiting(
      'transfer_resolutions',
      () => ask(ledger, 'order-16'),
      async () => {
        const transfer = await ledger.addTransfer('matched', invoice, { ...payment, decidedAt: at('10:05:00') });
        const paid = { sequence: 1, createdAt: at('10:05:00'), payment, transferId: transfer.id };
        await ledger.addInvoiceEvent('PAID', invoice, paid);
      },
    );
    expect(read).toEqual(before);
    const { data } = await ask(ledger, 'order-16');
    expect(data).toMatchObject({
      subject: { status: 'PAID' },
      verdict: expect.stringMatching(/^order-16 has been PAID/),
    });
  });

  test('that was paid late says that it counts, and was asked for by a key that nobody noted', async () => {
    const { ledger, address, endpoint } = await openShop();
    const invoice = await ledger.addInvoice(address, { externalId: 'order-18', status: 'EXPIRED' });
    const expired = await ledger.addInvoiceEvent('EXPIRED', invoice, { sequence: 1, createdAt: at('10:30:03') });
    const payment = { to: address, amount: '25.000137', tx: 0x18, block: 1700, time: at('11:10:00') };
    const transfer = await ledger.addTransfer('matched', invoice, { ...payment, decidedAt: at('11:11:00') });
    const settled = { sequence: 2, createdAt: at('11:11:00'), payment, transferId: transfer.id };
    const paid = await ledger.addInvoiceEvent('PAID', invoice, settled);
    // One was delivered before attempts were logged, the other isn't delivered yet.
    const before = { status: 'delivered' as const, attempts: [{ at: at('10:30:04'), ...SENT }], unlogged: true };
    await ledger.addDelivery(expired, endpoint, before);
    await ledger.addDelivery(paid, endpoint, { status: 'pending', attempts: [], nextAttemptAt: at('11:11:00') });

    const { verdict } = await expectGolden(ledger, 'order-18', 'paid-late');
    expect(verdict).toContain('after its deadline of 2026-09-01T10:30:00.000Z, but the payment still counts');
  });

  test('whose block was orphaned, and that was paid again in another block, shows both', async () => {
    const { ledger, address, apiKeyId, endpoint } = await openShop();
    const invoice = await ledger.addInvoice(address, { externalId: 'order-19', apiKeyId });
    const orphan = { to: address, amount: '25.000137', tx: 0x19, block: 1040, time: at('10:04:00') };
    await ledger.addInvoiceEvent('CONFIRMING', invoice, { sequence: 1, createdAt: at('10:04:02'), payment: orphan });
    await ledger.addInvoiceEvent('PENDING', invoice, { sequence: 2, createdAt: at('10:04:20') });
    const waiting = await ask(ledger, 'order-19');
    expect(waiting.text).toMatch(
      /^order-19 is waiting for exactly 25\.000137 USDT at T.*because its block was orphaned\. The transfer may appear again in another block\.\n/,
    );

    await expectGolden(ledger, txIdOf(0x19), 'transaction-orphaned');
    await ledger.addInvoice(address, { externalId: txIdOf(0x18), payable: '25.000144' });
    expect((await ask(ledger, txIdOf(0x18))).data).toMatchObject({ subject: { form: 'invoice' } });

    const payment = { ...orphan, block: 1050, time: at('10:04:30') };
    await ledger.addInvoiceEvent('CONFIRMING', invoice, { sequence: 3, createdAt: at('10:04:32'), payment });
    const transfer = await ledger.addTransfer('matched', invoice, { ...payment, decidedAt: at('10:05:30') });
    const settled = { sequence: 4, createdAt: at('10:05:30'), payment, transferId: transfer.id };
    const paid = await ledger.addInvoiceEvent('PAID', invoice, settled);
    await ledger.addDelivery(paid, endpoint, { status: 'delivered', attempts: [{ at: at('10:05:31'), ...SENT }] });
    const { timeline } = await expectGolden(ledger, 'order-19', 'orphaned');
    const facts = timeline.map(({ kind }) => kind).filter((kind) => kind !== 'event' && kind !== 'attempt');
    expect(facts.join(' ')).toBe('requested allocated sighted orphaned transferred sighted matched');
  });

  test('that got less than it waits for names the transfer and its likely cause', async () => {
    const { ledger, address, apiKeyId, endpoint } = await openShop();
    await ledger.addInvoice(address, { externalId: 'order-20', apiKeyId });
    const payment = { to: address, amount: '24.000137', tx: 0x20, block: 1040, time: at('10:04:00') };
    const transfer = await ledger.addTransfer('unmatched', null, { ...payment, decidedAt: at('10:05:00') });
    const event = await ledger.addTransferEvent(transfer, at('10:05:00'));
    await ledger.addDelivery(event, endpoint, { status: 'delivered', attempts: [{ at: at('10:05:01'), ...SENT }] });

    const { verdict, timeline } = await expectGolden(ledger, 'order-20', 'short');
    expect(verdict).toMatch(
      /^order-20 is waiting for exactly 25\.000137 USDT .* Instead, 24\.000137 USDT .* Likely \(high\): /,
    );
    expect(timeline.find(({ kind }) => kind === 'unmatched')).toMatchObject({
      causes: expect.arrayContaining([expect.objectContaining({ code: 'FEE_DEDUCTED' })]),
    });
    await expectGolden(ledger, txIdOf(0x20), 'transaction-unmatched');
  });

  test('that is one of many that the money may have been meant for does not say that nothing arrived', async () => {
    const { ledger, address } = await openShop();
    const names = Array.from({ length: 8 }, (_, index) => `order-${60 + index}`);
    for (const [index, externalId] of names.entries()) {
      await ledger.addInvoice(address, { externalId, payable: `25.00${index + 1}000` });
    }
    const payment = { to: address, amount: '25.000000', tx: 0x60, block: 1040, time: at('10:04:00') };
    await ledger.addTransfer('unmatched', null, { ...payment, decidedAt: at('10:05:00') });
    const verdicts: string[] = [];
    for (const name of names) verdicts.push(((await ask(ledger, name)).data as Json).verdict);
    const fits =
      /No exact transfer has arrived\. 1 unmatched transfer may be meant for this invoice: 25\.000000 USDT .* \(trf_\w+\)\. The transfer is not resolved\. Likely \(low\): .* 7 other invoices fit about as well\./;
    expect(verdicts.filter((verdict) => fits.test(verdict))).toHaveLength(8);
    await expectGolden(ledger, 'order-60', 'one-of-many');
  });

  test('of a busy shop is compared with what came though hundreds of newer ones are nearer', async () => {
    const { ledger, address } = await openShop();
    await ledger.addInvoice(address, { externalId: 'order-90', payable: '25.009952' });
    await ledger.sql(
      `insert into invoices (id, project_id, network, address_id, idempotency_key, external_id, requested_micro,
         payable_micro, status, checkout_token, created_at, expires_at)
       select ('01999999-9999-7999-8999-' || lpad(n::text, 12, '0'))::uuid, project_id, network, address_id, 'more-' || n,
         'more-' || n, requested_micro, 25000000 + n * 10, status, 'more' || lpad(n::text, 12, '0'), created_at, expires_at
       from invoices, generate_series(1, 600) n`,
    );
    const payment = { to: address, amount: '25.000000', tx: 0x90, block: 1040, time: at('10:04:00') };
    await ledger.addTransfer('unmatched', null, { ...payment, decidedAt: at('10:05:00') });
    const { verdict } = (await ask(ledger, 'order-90')).data as Json;
    expect(verdict).toMatch(
      /No exact transfer has arrived\. 1 unmatched transfer may be meant for this invoice: 25\.000000 USDT .* the requested amount of invoice order-90.*; more than 50 other invoices fit about as well\./,
    );
  });

  test('with several that may be meant for it names the likeliest with its id, and hints at that very one', async () => {
    const { ledger, address } = await openShop();
    await ledger.addInvoice(address, { externalId: 'order-70', payable: '25.009952' });
    await ledger.addInvoice(address, { externalId: 'order-71', payable: '25.008801' });
    const times = { block: 1040, time: at('10:04:00'), decidedAt: at('10:05:00') };
    await ledger.addTransfer('unmatched', null, { to: address, amount: '25.010000', tx: 0x70, ...times });
    const later = { block: 1050, time: at('10:06:00'), decidedAt: at('10:07:00') };
    const own = await ledger.addTransfer('unmatched', null, { to: address, amount: '25.009925', tx: 0x71, ...later });
    await expectGolden(ledger, 'order-70', 'two-transfers');
    const { next, data } = await ask(ledger, 'order-70');
    const id = encodeId('trf', own.id);
    expect((data as Json).verdict).toContain(`Instead, 25.009925 USDT from ${addressOf(0xbb)} at`);
    expect((data as Json).verdict).toContain(
      `(${id}) arrived, but it pays no invoice. The transfer is not resolved. Likely (high): `,
    );
    expect(next).toBe(`to resolve the transfer: quittance transfers resolve ${id} --as …\n`);
    const other = (await ask(ledger, 'order-71')).data as Json;
    expect(other.verdict).toMatch(/1 unmatched transfer may be meant for this invoice: 25\.010000 USDT/);
  });

  test('whose row was changed in the database, or whose transaction was, warns of itself first', async () => {
    const { ledger, address } = await openShop();
    const invoice = await ledger.addInvoice(address, { externalId: 'order-90', payable: '25.000190' });
    const times = { block: 1040, time: at('10:04:00'), decidedAt: at('10:05:00') };
    const transfer = await ledger.addTransfer('unmatched', null, {
      to: address,
      amount: '3.000000',
      tx: 0x90,
      ...times,
    });
    const warned = async (subject: string) => {
      const { verdict } = (await ask(ledger, subject)).data as Json;
      return verdict.startsWith('Do not rely on this explanation: ');
    };
    expect([await warned('order-90'), await warned(txIdOf(0x90))]).toEqual([false, false]);
    const alarm = `insert into alarms (id, network, kind, subject, detail) values (gen_random_uuid(), 'devnet', 'row-changed', $1, 'planted')`;
    await ledger.sql(alarm, [`invoices.status ${invoice.id}`]);
    expect([await warned('order-90'), await warned(txIdOf(0x90))]).toEqual([true, false]);
    await ledger.sql(alarm, [`transfers ${transfer.id}`]);
    expect([await warned('order-90'), await warned(txIdOf(0x90))]).toEqual([true, true]);
  });

  test('that is not meant by what another invoice explains far better says that something came', async () => {
    const { ledger, address } = await openShop();
    await ledger.addInvoice(address, { externalId: 'order-72', payable: '25.009952' });
    await ledger.addInvoice(address, { externalId: 'order-73', payable: '25.008801' });
    const payment = { to: address, amount: '24.009952', tx: 0x72, block: 1040, time: at('10:04:00') };
    await ledger.addTransfer('unmatched', null, { ...payment, decidedAt: at('10:05:00') });
    const { verdict } = (await ask(ledger, 'order-73')).data as Json;
    expect(verdict).toMatch(
      /No exact transfer has arrived\. 1 unmatched transfer has arrived since the invoice was created, at its address/,
    );
    expect((await ask(ledger, 'order-73')).next).toBe('');
  });

  test('that is PAID says what came in addition', async () => {
    const { ledger, address } = await openShop();
    const invoice = await ledger.addInvoice(address, { externalId: 'order-74', payable: '25.000144' });
    const payment = { to: address, amount: '25.000144', tx: 0x74, block: 1040, time: at('10:04:00') };
    await ledger.addTransfer('matched', invoice, { ...payment, decidedAt: at('10:05:00') });
    const more = { ...payment, amount: '24.000144', tx: 0x75, block: 1060, time: at('10:06:00') };
    await ledger.addTransfer('unmatched', null, { ...more, decidedAt: at('10:07:00') });
    const { verdict } = await expectGolden(ledger, 'order-74', 'paid-and-more');
    expect(verdict).toMatch(/order-74 has been PAID .*In addition, 24\.000144 USDT .*; order-74 was paid earlier/);
  });

  test('that was paid twice shows the duplicate and that an operator refunded it', async () => {
    const { ledger, address, apiKeyId } = await openShop();
    const invoice = await ledger.addInvoice(address, { externalId: 'order-21', apiKeyId });
    const payment = { to: address, amount: '25.000137', tx: 0x21, block: 1040, time: at('10:04:00') };
    await ledger.addTransfer('matched', invoice, { ...payment, decidedAt: at('10:05:00') });
    const again = { ...payment, tx: 0x22, block: 1100, time: at('10:07:00') };
    const duplicate = await ledger.addTransfer('duplicate', invoice, { ...again, decidedAt: at('10:08:00') });
    await ledger.addTransferEvent(duplicate, at('10:08:00'));
    await ledger.addResolution(duplicate, 'refunded', 'anna', at('11:00:00'), 'sent back, ticket 4711');

    const { verdict } = await expectGolden(ledger, 'order-21', 'duplicate-refunded');
    expect(verdict).toContain('The invoice was paid twice');
    expect(verdict).toContain('anna resolved it as refunded');
  });

  test('whose webhook failed twice and was then delivered shows each attempt', async () => {
    const { ledger, address, apiKeyId, endpoint } = await openShop();
    const invoice = await ledger.addInvoice(address, { externalId: 'order-23', apiKeyId, status: 'EXPIRED' });
    const expired = await ledger.addInvoiceEvent('EXPIRED', invoice, { sequence: 1, createdAt: at('10:30:03') });
    const attempts = [
      { at: at('10:30:04'), status: 500, error: 'http_500: the endpoint returned 500' },
      { at: at('10:30:10'), status: null, error: 'timeout: no response within 15 s' },
      { at: at('10:31:00'), ...SENT },
    ];
    await ledger.addDelivery(expired, endpoint, { status: 'delivered', attempts });
    const dead = await ledger.addEndpoint(address.project, 'https://other.example/hook');
    const failures = Array.from({ length: 12 }, (_, i) => {
      return {
        at: at(`11:${String(i * 4).padStart(2, '0')}:00`),
        status: 503,
        error: 'http_503: the endpoint returned 503',
      };
    });
    await ledger.addDelivery(expired, dead, { status: 'dead', attempts: failures });

    const { verdict } = await expectGolden(ledger, 'order-23', 'webhook-retried');
    expect(verdict).toMatch(/^order-23 has been EXPIRED since .* and is still payable: .*Nothing has arrived\./);
    expect(verdict).toContain('https://other.example/hook has not received invoice.expired: http_503');
  });

  test('of policy exact waits for the requested amount itself on its retired address, while the ledger lags', async () => {
    const { ledger, apiKeyId, address } = await openShop({ policy: 'exact', retiredAt: at('10:10:00') });
    await ledger.addAction(address, 'address.retired', 'anna', at('10:10:00'), { note: 'wallet replaced' });
    await ledger.addInvoice(address, { externalId: 'order-24', payable: '25', apiKeyId });
    vi.spyOn(Date, 'now').mockReturnValue(at('15:00:00'));
    const { verdict } = await expectGolden(ledger, 'order-24', 'exact');
    expect(verdict).toContain('Note that devnet was examined only up to block 1918');
  });

  test('that is seen in a block which is not irreversible is told by its transaction too', async () => {
    const { ledger, address, apiKeyId } = await openShop();
    const invoice = await ledger.addInvoice(address, { externalId: 'order-25', apiKeyId, status: 'CONFIRMING' });
    const payment = { to: address, amount: '25.000137', tx: 0x25, block: 1918, time: at('11:59:50') };
    await ledger.addInvoiceEvent('CONFIRMING', invoice, { sequence: 1, createdAt: at('11:59:52'), payment });
    await ledger.sql(
      `insert into sightings (network, block_number, tx_id, log_index, project_id, invoice_id, from_address, amount_micro)
       values ('devnet', 1918, decode($1, 'hex'), 0, $2, $3, $4, 25000137)`,
      [txIdOf(0x25), address.project.id, invoice.id, addressOf(0xbb)],
    );
    await expectGolden(ledger, 'order-25', 'confirming');
    await expectGolden(ledger, txIdOf(0x25), 'transaction-sighted');

    await ledger.sql(
      `insert into sightings (network, block_number, tx_id, log_index, project_id, invoice_id, from_address, amount_micro)
       select network, block_number, decode($1, 'hex'), log_index, project_id, invoice_id, from_address, amount_micro
       from sightings`,
      [txIdOf(0x26)],
    );
    const [first, second] = [await ask(ledger, txIdOf(0x25)), await ask(ledger, txIdOf(0x26))];
    expect(first.text).toContain('The invoice becomes PAID when the block is irreversible');
    expect(second.text).toMatch(
      /arrived first, in block 1918, transaction 25252525.*\. Unless .* this transfer pays no invoice\./,
    );
    expect((await ask(ledger, 'order-25')).text).toContain(
      '1 more transfer of exactly this amount follows and pays no invoice.',
    );
  });

  test('with thousands of duplicates shows the newest and says how many more there are', async () => {
    const { ledger, address } = await openShop();
    const invoice = await ledger.addInvoice(address, { externalId: 'order-26' });
    const payment = { to: address, amount: '25.000137', tx: 0x26, block: 1040, time: at('10:04:00') };
    await ledger.addTransfer('matched', invoice, { ...payment, decidedAt: at('10:05:00') });
    await ledger.sql(
      `insert into transfers (id, project_id, network, address_id, tx_id, log_index, block_number, block_id, block_time,
         from_address, amount_micro, kind, invoice_id, reserved_micro, producer, verified, nodes, recorded_at)
       select gen_random_uuid(), project_id, network, address_id, sha256(n::text::bytea), 0, block_number + n, block_id,
         block_time + n * interval '100 milliseconds', from_address, amount_micro, 'duplicate', invoice_id, reserved_micro,
         producer, verified, nodes, recorded_at + n * interval '100 milliseconds'
       from transfers, generate_series(1, 10000) n where kind = 'matched'`,
    );
    const { text, data } = await ask(ledger, 'order-26');
    expect((data as Json).verdict).toContain('10000 more transfers of the same amount arrived and pay no invoice');
    expect(text).toContain('not shown: 9980 more of 10000 transfers of exactly this amount');
    expect(text.split('\n').length).toBeLessThan(250);
  });

  test('whose stored texts are hostile cannot rewrite the terminal', async () => {
    const { ledger, address, endpoint } = await openShop();
    const externalId = 'order\u001b[2J\u202e-27\u0007\nPAID';
    const invoice = await ledger.addInvoice(address, { externalId });
    const payment = { to: address, amount: '25.000137', tx: 0x27, block: 1040, time: at('10:04:00') };
    await ledger.addTransfer('matched', invoice, { ...payment, decidedAt: at('10:05:00') });
    const duplicate = await ledger.addTransfer('duplicate', invoice, {
      ...payment,
      tx: 0x28,
      decidedAt: at('10:06:00'),
    });
    const event = await ledger.addTransferEvent(duplicate, at('10:06:00'));
    const attempts = [{ at: at('10:06:01'), status: null, error: 'network: \u001b]0;owned\u0007' }];
    await ledger.addDelivery(event, endpoint, { status: 'dead', attempts });
    await ledger.addResolution(duplicate, 'ignored', 'eve\u009b31m', at('11:00:00'), '\u2066note');
    const { text, data } = await ask(ledger, externalId);
    expect(text.replaceAll('\n', '')).not.toMatch(/\p{C}/u);
    expect(text).toContain('as kept');
    expect(text).toContain('order�[2J�-27��PAID');
    const { verdict, timeline, subject } = data as Json;
    expect([verdict, ...timeline.map((entry) => entry.text)].join('')).not.toMatch(/\p{C}/u);
    expect(subject).toMatchObject({ externalId });
  });
});

describe('an external id', () => {
  test('of several projects is refused with their names, unless one is given', async () => {
    const { ledger, project, address } = await openShop();
    const other = await ledger.addProject('Other shop');
    const theirs = await ledger.addAddress(other, 0xa2);
    await ledger.addInvoice(address, { externalId: 'order-1' });
    await ledger.addInvoice(theirs, { externalId: 'order-1', payable: '25.000144' });
    const error = await ask(ledger, 'order-1').catch((thrown: unknown) => thrown);
    if (!(error instanceof AppError)) return expect.fail('it was not refused');
    const { message: refusal, problems } = describeError(error);
    const lines = [`error: ${refusal}`, ...problems.map(({ message }) => `  ${message}`)];
    await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot('golden/explain-ambiguous.txt');
    const { data } = await ask(ledger, 'order-1', { project: project.projectId });
    expect(data).toMatchObject({ subject: { projectId: project.projectId, payableAmount: '25.000137' } });
  });

  test.each(['ORDER-17', '#order-17', 'order–17', 'order-1', '25,000137', '$25.000137', '"order-17"'])(
    'is found as a person types it: %j',
    async (typed) => {
      const { ledger, address } = await openShop();
      await ledger.addInvoice(address, { externalId: 'order-17' });
      const { data } = await ask(ledger, typed);
      expect(data).toMatchObject({ subject: { form: 'invoice', externalId: 'order-17' } });
    },
  );

  test('of which several begin as the text is refused with all of them', async () => {
    const { ledger, address } = await openShop();
    await ledger.addInvoice(address, { externalId: 'order-17' });
    await ledger.addInvoice(address, { externalId: 'order-18', payable: '25.000144' });
    const error = await ask(ledger, 'Order-1').catch((thrown: unknown) => thrown);
    if (!(error instanceof AppError)) return expect.fail('it was not refused');
    const listed = describeError(error).problems.map(({ message }) => message);
    expect(listed.map((line) => /order-1\d/.exec(line)?.[0]).sort()).toEqual(['order-17', 'order-18']);
  });

  test('that looks like a transaction id or an address is found all the same', async () => {
    const { ledger, address } = await openShop();
    for (const [externalId, payable] of [
      [txIdOf(0x99), '25.000144'],
      [addressOf(0x99), '25.000153'],
    ] as const) {
      await ledger.addInvoice(address, { externalId, payable });
      expect((await ask(ledger, externalId)).data).toMatchObject({ subject: { form: 'invoice', externalId } });
    }
  });

  test('that nobody has is refused with the four forms', async () => {
    const { ledger } = await openShop();
    for (const unknown of ['order-404', 'inv_01h455vb4pex5vsknk084sn02q', addressOf(0x44), 'inv_1', '\u0000']) {
      await expect(ask(ledger, unknown)).rejects.toMatchObject({
        code: 'NOT_FOUND',
        message: expect.stringMatching(/inv_….*externalId.*transaction id.*address \(T…\)/),
      });
    }
  });
});

describe('a transaction', () => {
  test('that the ledger has nothing of shows where the ledger stands and what to do', async () => {
    const { ledger } = await openShop();
    await expectGolden(ledger, txIdOf(0x99), 'transaction-unknown');
    const { exitCode, text } = await ask(ledger, `0x${txIdOf(0x99).toUpperCase()}`);
    expect(exitCode).toBe(3);
    expect(text).toContain('TRON transaction ids have no 0x prefix');
  });
});

describe('with --project', () => {
  test('what belongs to another project is denied of that project only', async () => {
    const { ledger, address } = await openShop();
    const { projectId } = await ledger.addProject('Other shop');
    await ledger.addInvoice(address, { externalId: 'order-80' });
    const payment = { to: address, amount: '7', tx: 0x80, block: 1040, time: at('10:04:00'), from: 0xdd };
    await ledger.addTransfer('unmatched', null, { ...payment, decidedAt: at('10:05:00') });
    await expect(ask(ledger, 'order-80', { project: projectId })).rejects.toMatchObject({
      code: 'NOT_FOUND',
      message: expect.stringContaining(`nothing in the project ${projectId} matches "order-80"`),
    });
    const { text, exitCode } = await ask(ledger, txIdOf(0x80), { project: projectId });
    expect(exitCode).toBe(3);
    expect(text).toContain(`moved no USDT to or from the addresses of the project ${projectId}.`);
    expect(text).toContain('Without --project, Quittance searches every project that you may see.');
  });
});

describe('an address', () => {
  test('that got transfers after its balance was compared says so', async () => {
    const { ledger, address } = await openShop();
    await ledger.sql(
      `insert into balance_checks (address_id, project_id, network, opening_micro, opening_block, good_block, checked_block,
         balance_micro, expected_micro, node, checked_at, due_at)
       values ($1, $2, 'devnet', 0, 900, 1040, 1040, 7000000, 7000000, 'http://node-1', $3, $3)`,
      [address.id, address.project.id, new Date(at('10:30:00'))],
    );
    for (const [index, block] of [1040, 1041, 1050].entries()) {
      const payment = { to: address, amount: '7', tx: 0x90 + index, block, time: at('10:04:00') };
      await ledger.addTransfer('unmatched', null, { ...payment, decidedAt: at('10:05:00') });
    }
    const { verdict, subject } = (await ask(ledger, address.address)).data as Json;
    expect(verdict).toContain(
      'At the last comparison, at block 1040 (2026-09-01T10:30:00.000Z), its balance matched the ledger: 7.000000 USDT. Since then, 2 transfers arrived.',
    );
    expect(subject).toMatchObject({ transfers: { incoming: 3, outgoing: 0, areAllCounted: true } });
  });

  test('that is retired shows who added and retired it, its invoices, transfers and books', async () => {
    const { ledger, address, apiKeyId } = await openShop({ retiredAt: at('11:00:00') });
    await ledger.addAction(address, 'address.added', 'anna', at('08:10:00'), { policy: 'tail' });
    await ledger.addAction(address, 'address.retired', 'bert', at('11:00:00'), { note: 'wallet replaced' });
    const invoice = await ledger.addInvoice(address, { externalId: 'order-31', apiKeyId });
    await ledger.addInvoice(address, { externalId: 'order-32', payable: '25.000144', apiKeyId, status: 'EXPIRED' });
    const payment = { to: address, amount: '25.000137', tx: 0x31, block: 1040, time: at('10:04:00') };
    await ledger.addTransfer('matched', invoice, { ...payment, decidedAt: at('10:05:00') });
    await ledger.sql(
      `insert into outgoing_transfers (network, tx_id, log_index, project_id, address_id, block_number, block_id, block_time,
         to_address, amount_micro, verified, nodes)
       values ('devnet', $1, 0, $2, $3, 1500, $1, $4, $5, 25000137, 'agreed:2', '{http://node-1,http://node-2}')`,
      [Buffer.alloc(32, 0x55), address.project.id, address.id, new Date(at('11:20:00')), addressOf(0xcc)],
    );
    await ledger.sql(
      `insert into balance_checks (address_id, project_id, network, opening_micro, opening_block, good_block, checked_block,
         balance_micro, expected_micro, node, checked_at, due_at)
       values ($1, $2, 'devnet', 0, 900, 1600, 1600, 0, 0, 'http://node-1', $3, $3)`,
      [address.id, address.project.id, new Date(at('11:30:00'))],
    );
    const { verdict } = await expectGolden(ledger, address.address, 'address-retired');
    expect(verdict).toContain(
      'It has been retired since 2026-09-01T11:00:00.000Z: it gets no new invoices, but it is still watched.',
    );
  });

  test('of somebody else shows what it paid to us', async () => {
    const { ledger, address } = await openShop();
    const payment = { to: address, amount: '7', tx: 0x33, block: 1040, time: at('10:04:00'), from: 0xdd };
    await ledger.addTransfer('unmatched', null, { ...payment, decidedAt: at('10:05:00') });
    const { data } = await ask(ledger, addressOf(0xdd));
    expect(data).toMatchObject({
      verdict: expect.stringMatching(/is not one of your addresses\. It sent 1 transfers? to your addresses/),
      timeline: [{ kind: 'transferred', match: 'unmatched', amount: '7.000000' }],
    });
  });
});

test('the command prints one object with --json, and ends with 3 for what nobody knows', async () => {
  vi.restoreAllMocks();
  const { ledger, address } = await openShop();
  await ledger.addInvoice(address, { externalId: 'order-41' });
  const { env } = ledger;
  const [found, unknown] = await Promise.all([
    runCli(['explain', 'order-41', '--json'], { env }),
    runCli(['explain', 'order-404'], { env }),
  ]);
  expect(found).toMatchObject({ code: 0, json: { subject: { form: 'invoice', externalId: 'order-41' } } });
  expect(unknown).toMatchObject({
    code: 3,
    stdout: '',
    stderr: expect.stringContaining('nothing matches "order-404"'),
  });
});
