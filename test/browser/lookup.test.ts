import { randomBytes } from 'node:crypto';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { accountToAddress } from '@quittance/tron/address';
import { accountFromPublicKey } from '@quittance/tron/public-key';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { decodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import type { LookupAnswer } from '../../src/core/domain/lookup/lookup.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { insertAddress } from '../../src/core/store/ledger/addresses.ts';
import { findCheckoutInvoice } from '../../src/core/store/ledger/checkout.ts';
import type { Scenario } from '../../src/developer/scenarios/scenarios.ts';
import { renderAnswer } from '../../src/faces/checkout/lookup/answer.ts';
import type { Page } from '../../src/faces/checkout/page/page-state.ts';
import { wordsOf } from '../../src/faces/checkout/words/words.ts';
import { runSql } from '../contract/sql.ts';
import { untilHeadIsExamined } from '../support/fault-flow.ts';
import { ask, type Invoice, newInvoice, pay, untilRecorded, withApiOnly } from '../support/lookup-flow.ts';
import { createInvoice, createTestProject, eventually, type TestProject, untilStatus } from '../support/service.ts';
import { someCases } from '../support/some-cases.ts';
import { type CheckoutTest, listenTo, openTab, START_TIMEOUT_MS, seeAgain, startCheckoutTest } from './checkout.ts';

let checkout: CheckoutTest;
/** Answers name the merchant; any invoice will do otherwise. */
let page: Page;
beforeAll(async () => {
  checkout = await startCheckoutTest({ config: { trustProxy: ['127.0.0.1'] } });
  const { db } = checkout.service;
  const token = (await newInvoice(checkout.service)).checkoutUrl.split('/').at(-1) ?? '';
  const invoice = await findCheckoutInvoice(db, token);
  if (invoice === null) throw new Error(`there is no invoice at ${token}`);
  const site = { publicUrl: () => '', usdt: {}, proofOf: () => null };
  page = { invoice, words: wordsOf('en'), isLanguageAsked: false, now: unixMs(Date.now()), site };
}, START_TIMEOUT_MS);
beforeEach(async () => {
  // Restores the look-ups' budget of node requests.
  checkout.service.clock.advance(120_000);
  seeAgain(checkout.service);
  await untilHeadIsExamined(checkout.service);
});
afterAll(() => checkout.stop());

/** Asks through the page's form with JavaScript and without. Both must show the service's answer in words. */
async function expectAnswer(
  invoice: Invoice,
  pasted: string,
  { code, at = checkout.service.url }: { code: LookupAnswer['code']; at?: string },
): Promise<void> {
  const { body } = await ask(invoice, pasted, { at });
  expect(body.code).toBe(code);
  const expected = plain(renderAnswer(page, body).html);
  for (const javaScriptEnabled of [true, false]) {
    const url = `${at}${new URL(invoice.checkoutUrl).pathname}`;
    const {
      page: opened,
      problems,
      close,
    } = await openTab(checkout.browser, url, {
      javaScriptEnabled,
      timezoneId: 'UTC',
      // A new client that hasn't asked before.
      extraHTTPHeaders: { 'x-forwarded-for': `2001:db8:${randomBytes(2).toString('hex')}:1::1` },
    });
    const heard = javaScriptEnabled ? await listenTo(opened) : null;
    await opened.locator('#find summary').click();
    const field = opened.getByLabel('Transaction ID or Tronscan link');
    await field.fill(pasted);
    await opened.getByRole('button', { name: 'Look up' }).click();
    const region = opened.locator('#transaction-answer');
    await region.locator('p').first().waitFor();
    expect(plain(await region.innerText())).toBe(expected);
    expect(await field.inputValue()).toBe(pasted);
    if (heard === null) {
      const { pathname, hash } = new URL(opened.url());
      expect(pathname + hash).toBe(`${new URL(url).pathname}/ask#transaction-answer`);
      const height = opened.viewportSize()?.height ?? 0;
      await eventually(
        async () => (await region.boundingBox())?.y ?? -1,
        (y) => y >= 0 && y < height,
      );
    } else {
      expect(new URL(opened.url()).pathname).toBe(new URL(url).pathname);
      expect((await heard()).map(plain)).toEqual(expect.arrayContaining(['Looking up…', expected]));
    }
    expect(problems).toEqual([]);
    await close();
  }
}

/** Removes tags. The script writes times without their zone. */
function plain(text: string): string {
  return text
    .replaceAll('</p>', ' ')
    .replace(/<[^>]*>/g, '')
    .replaceAll(' UTC', '')
    .replace(/\s+/g, ' ')
    .trim();
}

test('a payment on its way: not found, confirming, a second one, paid, paid before', async () => {
  const { service } = checkout;
  const invoice = await newInvoice(service);
  const first = await pay(service, invoice, 'exact');
  await expectAnswer(invoice, first, { code: 'not_found' });
  service.devnet.mine();
  await untilStatus(service, invoice.id, 'CONFIRMING');
  await expectAnswer(invoice, first, { code: 'confirming' });
  const second = await pay(service, invoice, 'exact');
  service.devnet.mine();
  await untilHeadIsExamined(service);
  await expectAnswer(invoice, second, { code: 'confirming' });
  service.devnet.mineUntilSolid();
  await untilRecorded(service);
  service.clock.advance(60_000);
  await expectAnswer(invoice, `https://tronscan.org/#/transaction/${first}`, { code: 'paid' });
  await expectAnswer(invoice, second, { code: 'exact_but_already_paid' });
});

test('what only a node shows yet', async () => {
  const { service } = checkout;
  const invoice = await newInvoice(service);
  const unconfirmed = await pay(service, invoice, 'exact');
  service.devnet.mine();
  await untilStatus(service, invoice.id, 'CONFIRMING');
  // As if our nodes didn't agree on that block's logs yet.
  await runSql(service, 'delete from sightings where invoice_id = $1', [decodeId('inv', invoice.id)]);
  await expectAnswer(invoice, unconfirmed, { code: 'exact_not_confirmed' });
  const other = await newInvoice(service);
  await withApiOnly(service, async ({ url }) => {
    await service.stopService();
    const unexamined = await pay(service, other, 'exact');
    service.devnet.mine();
    await expectAnswer(other, unexamined, { code: 'exact_not_yet_examined', at: url });
    await service.restart();
  });
});

test.each<[Scenario, LookupAnswer['code']]>(
  someCases(
    [
      ['fee', 'short'],
      ['over', 'over'],
      ['wrong-address', 'other_address'],
      ['fake-token', 'other_token'],
      ['reverted', 'failed'],
      ['zero-value', 'no_usdt_transfer'],
    ],
    2,
  ),
)('a payment that pays nothing: %s', async (scenario, code) => {
  const { service } = checkout;
  const invoice = await newInvoice(service);
  const transaction = await pay(service, invoice, scenario);
  service.devnet.mine();
  await untilHeadIsExamined(service);
  await expectAnswer(invoice, transaction, { code });
});

test.each<[Scenario, payable: string, decimals: number]>(
  someCases(
    [
      ['rounded-3', '25.002647', 3],
      ['rounded-4', '25.002687', 4],
    ],
    2,
  ),
)('an amount that an exchange cut off is told as cut off: %s', async (scenario, amount, decimals) => {
  const { service } = checkout;
  const shop = await exactShop();
  const { body } = await createInvoice(service, { apiKey: shop.apiKey, body: { amount } });
  const payable = { address: shop.addresses[0] ?? '', amountMicro: BigInt(amount.replace('.', '')) };
  const invoice = { ...body, id: body.invoiceId, ...payable, amount };
  const transaction = await pay(service, invoice, scenario);
  service.devnet.mine();
  await untilHeadIsExamined(service);
  expect((await ask(invoice, transaction)).body.likely).toEqual({ kind: 'truncated', decimals });
  await expectAnswer(invoice, transaction, { code: 'short' });
});

test('a payment from before the invoice, and one that our books do not have', async () => {
  const { service } = checkout;
  // Before the address is added: for a day, an amount received on a new address isn't issued to an order.
  const account = newAccount();
  const transaction = await service.payer.transfer({
    contract: service.devnet.usdtContract,
    to: accountToAddress(account),
    amountMicro: 25_000_000n,
  });
  service.devnet.mineUntilSolid();
  await untilRecorded(service);
  const shop = await exactShop(account);
  service.clock.advance(120_000);
  const { body } = await createInvoice(service, { apiKey: shop.apiKey });
  const invoice = { ...body, id: body.invoiceId, amount: '25.000000' };
  await expectAnswer(invoice, transaction, { code: 'before_invoice' });
  await runSql(service, 'alter table invoices disable trigger invoices_keep_what_they_are');
  await runSql(
    service,
    `update invoices set created_at = created_at - interval '1 day', payable_after = payable_after - interval '1 day' where id = $1`,
    [decodeId('inv', invoice.id)],
  );
  await runSql(service, 'alter table invoices enable trigger invoices_keep_what_they_are');
  await expectAnswer(invoice, transaction, { code: 'exact_not_recorded' });
});

const newAccount = () => accountFromPublicKey(secp256k1.getPublicKey(secp256k1.utils.randomSecretKey(), false));

/** A project of policy exact, whose payable amounts are known before an invoice exists. */
async function exactShop(account = newAccount()): Promise<TestProject> {
  const { db } = checkout.service;
  const project = await createTestProject(db, { addressCount: 0 });
  await runSql(checkout.service, `update projects set policy = 'exact' where id = $1`, [project.id]);
  const [id, address] = [uuidV7(Date.now(), randomBytes(10)), accountToAddress(account)];
  await insertAddress(db, { id, projectId: project.id, account, address, policy: 'exact' });
  return { ...project, addresses: [address] };
}

test('what is no transaction of TRON, whatever it holds, and one that no node tells of', async () => {
  const { service } = checkout;
  const invoice = await newInvoice(service);
  await expectAnswer(invoice, `https://etherscan.io/tx/0x${'a1'.repeat(32)}`, { code: 'not_tron' });
  await expectAnswer(invoice, 'a1'.repeat(31), { code: 'not_a_transaction_id' });
  await expectAnswer(invoice, `"><img src=x onerror=alert(1)><script>alert(2)</script>`, {
    code: 'not_a_transaction_id',
  });
  await withApiOnly(service, ({ url }) => expectAnswer(invoice, 'a2'.repeat(32), { code: 'unavailable', at: url }), {
    withoutNodes: true,
  });
});
