import { parseAddress } from '@quittance/tron/address';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestDevnet } from '../support/devnet.ts';
import { untilHeadIsExamined } from '../support/fault-flow.ts';
import { untilRecorded } from '../support/lookup-flow.ts';
import { eventually, readInvoice } from '../support/service.ts';
import { someCases } from '../support/some-cases.ts';
import {
  type CheckoutTest,
  finalise,
  newInvoice,
  openPage,
  orphan,
  payInto,
  START_TIMEOUT_MS,
  seeAgain,
  startCheckoutTest,
  type TestInvoice,
  untilHeading,
} from './checkout.ts';
import { askAt, fundWallet, openPageWithWallet, WALLET_KINDS } from './wallet.ts';

let checkout: CheckoutTest;
beforeAll(async () => {
  checkout = await startCheckoutTest();
}, START_TIMEOUT_MS);
afterAll(() => checkout.stop());

const SENT = 'Sent. Do not send again. This page shows the payment as soon as the network has it.';
const REFUSED = 'The wallet did not send the payment. Nothing was paid.';
const DECLINED = 'You did not confirm the payment in the wallet. Nothing was paid.';
const POOR = 'The wallet holds too little USDT for this amount. Nothing was sent.';
const WITHOUT_FEE =
  'The wallet has too little TRX for the network fee: the transfer would fail and the fee would be lost. Nothing was sent.';
const SILENT = 'The wallet has not responded. Unlock it and look for a request there, or try again.';
const WAIT = 'Confirm the transfer in your wallet.';
const UNKNOWN = 'We do not know whether the wallet sent the payment. Check your wallet’s history before you try again.';

const openWithWallet = (options: Parameters<typeof openPageWithWallet>[1] = {}) =>
  openPageWithWallet(checkout, options);

const payButton = (page: Page) => page.getByRole('button', { name: 'Pay with this wallet' });

const walletLine = (page: Page) => page.locator('[data-wallet] [role=status]');

/** Waits until the wallet's line shows the text. */
const untilSaid = (page: Page, text: string) => walletLine(page).getByText(text, { exact: true }).waitFor();

/** Looks up the pasted text, or else the field's content, and waits for the answer. */
async function untilAnswered(page: Page, text: string, pasted?: string): Promise<void> {
  await page.locator('#find').evaluate((details) => details.setAttribute('open', ''));
  if (pasted !== undefined) await page.locator('#transaction-field').fill(pasted);
  await page.getByRole('button', { name: 'Look up', exact: true }).click();
  await page.locator('#transaction-answer').getByText(text, { exact: true }).waitFor();
}

/** Holds something back until the test releases it. */
function hold() {
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  return { held, release };
}

const accountOf = (address: string) => {
  const parsed = parseAddress(address);
  if (parsed.kind !== 'ok') throw new Error(parsed.reason);
  return parsed.account;
};

/** The transaction that a wallet shows its owner: a call of the token's `transfer(address,uint256)`. */
function transferOf({ address, amountMicro }: TestInvoice) {
  const { payer, usdtContract } = checkout.service.devnet;
  const data = `a9059cbb${accountOf(address).padStart(64, '0')}${amountMicro.toString(16).padStart(64, '0')}`;
  const value = {
    owner_address: `41${accountOf(payer.address)}`,
    contract_address: `41${accountOf(usdtContract)}`,
    data,
  };
  return [{ type: 'TriggerSmartContract', parameter: { value } }];
}

/** The method that each kind of wallet needs to connect the page. */
const METHODS: Partial<Record<(typeof WALLET_KINDS)[number], string>> = {
  tronLink: 'tron_requestAccounts',
  okx: 'tron_requestAccounts',
  trust: 'tron_requestAccounts',
  bybit: 'tron_requestAccounts',
  binance: 'getAccount',
  tron: 'eth_requestAccounts',
  announced: 'eth_requestAccounts',
};
const methodsOf = (kind: (typeof WALLET_KINDS)[number]) => [METHODS[kind] ?? []].flat();

test.each(someCases(WALLET_KINDS, 2))(
  'a wallet (%s) is asked for one transfer of exactly the amount and for nothing else, and the page turns to found and paid',
  async (kind) => {
    const { service } = checkout;
    const { page, problems, invoice, wallet, close } = await openWithWallet({ kind });
    await payButton(page).dblclick();
    await untilSaid(page, SENT);
    expect(await payButton(page).isDisabled()).toBe(true);
    expect(wallet.requested).toEqual(methodsOf(kind));
    expect(wallet.asked).toEqual([
      'wallet/getblockbynum',
      'wallet/triggerconstantcontract',
      'wallet/getaccountresource',
      'wallet/getaccount',
      'wallet/triggersmartcontract',
      'wallet/broadcasttransaction',
    ]);
    expect(wallet.toSign).toMatchObject([transferOf(invoice)]);
    // No block has it yet, and the page is reloaded: the transfer isn't offered again.
    await page.reload();
    await untilSaid(page, SENT);
    expect(await payButton(page).isDisabled()).toBe(true);
    service.devnet.mine();
    await untilHeading(page, 'Payment found');
    expect(await payButton(page).count()).toBe(0);
    await finalise(service, invoice);
    await untilHeading(page, 'Paid');
    expect((await readInvoice(service, invoice.id)).body.payment.transaction.amount).toBe(invoice.amount);
    expect(problems).toEqual([]);
    await close();
  },
);

test.each(someCases(WALLET_KINDS, 2))(
  'who refuses to let the page in, or to sign, in a wallet (%s), has paid nothing, and can try again',
  async (kind) => {
    const answers = { letIn: false, confirm: false };
    const { page, wallet, close } = await openWithWallet({
      kind,
      letIn: () => answers.letIn,
      confirm: () => answers.confirm,
    });
    const asks = methodsOf(kind);
    if (asks.length > 0) {
      await payButton(page).click();
      await untilSaid(page, DECLINED);
      expect(wallet.asked).toEqual([]);
    }
    answers.letIn = true;
    await payButton(page).click();
    await untilSaid(page, DECLINED);
    await eventually(
      () => wallet.toSign,
      (toSign) => toSign.length === 1,
    );
    await untilSaid(page, DECLINED);
    expect(wallet.asked).not.toContain('wallet/broadcasttransaction');
    answers.confirm = true;
    await payButton(page).click();
    await untilSaid(page, SENT);
    // Once connected, the page doesn't ask again. Binance's wallet is asked for its address.
    expect(wallet.requested).toHaveLength(kind === 'binance' ? 3 : asks.length * 2);
    await close();
  },
);

test('a wallet that fails where its owner is asked has not been refused by its owner', async () => {
  const { page, close } = await openWithWallet({
    confirm: () => {
      throw new Error('the wallet is locked');
    },
  });
  await payButton(page).click();
  await untilSaid(page, REFUSED);
  await close();
});

test.each(someCases(WALLET_KINDS, 2))(
  'a wallet (%s) on another network, with too little USDT, or with too little TRX, is told which',
  async (kind) => {
    const { service } = checkout;
    const other = await startTestDevnet();
    let askNode = askAt(other.url);
    const { privateKey, address } = await fundWallet(service, 20_000_000n, 1_000_000n);
    const { page, wallet, close } = await openWithWallet({
      kind,
      privateKey,
      askNode: (path, payload) => askNode(path, payload),
    });
    await payButton(page).click();
    await untilSaid(page, 'This wallet is on a different network. Switch it to devnet.');
    expect(wallet.asked).toEqual(['wallet/getblockbynum']);
    askNode = askAt(service.devnet.url);
    await payButton(page).click();
    await untilSaid(page, POOR);
    await service.payer.transfer({ contract: service.devnet.usdtContract, to: address, amountMicro: 10_000_000n });
    service.devnet.mine();
    // The balance of 1 TRX isn't zero, and the page doesn't know the price of energy here.
    askNode = async (path, payload) => {
      if (path === 'wallet/getaccount') return {};
      return askAt(service.devnet.url)(path, payload);
    };
    await payButton(page).click();
    await untilSaid(page, WITHOUT_FEE);
    expect(wallet.toSign).toEqual([]);
    expect(await payButton(page).isEnabled()).toBe(true);
    await close();
  },
);

test('a wallet whose node does not say what it has for the fee is asked all the same', async () => {
  const ask = askAt(checkout.service.devnet.url);
  const { page, close } = await openWithWallet({
    askNode: async (path, payload) => {
      if (path === 'wallet/getaccountresource') throw new Error('no such path');
      return ask(path, payload);
    },
  });
  await payButton(page).click();
  await untilSaid(page, SENT);
  await close();
});

test('when the answer to a signed transfer is lost, the page says that it does not know, and finds it by itself', async () => {
  const { service } = checkout;
  const ask = askAt(service.devnet.url);
  const { page, close } = await openWithWallet({
    askNode: async (path, payload) => {
      const answer = await ask(path, payload);
      if (path === 'wallet/broadcasttransaction') throw new Error('the connection was reset');
      return answer;
    },
  });
  await payButton(page).click();
  await untilSaid(page, UNKNOWN);
  expect(await payButton(page).isEnabled()).toBe(true);
  service.devnet.mine();
  await untilHeading(page, 'Payment found');
  await close();
});

const REFUSALS = [
  'SIGERROR',
  'CONTRACT_VALIDATE_ERROR',
  'CONTRACT_EXE_ERROR',
  // The balance doesn't cover the fee.
  'BANDWITH_ERROR',
  'TAPOS_ERROR',
  'TOO_BIG_TRANSACTION_ERROR',
  'TRANSACTION_EXPIRATION_ERROR',
];
const MAYBES = ['SERVER_BUSY', 'NO_CONNECTION', 'NOT_ENOUGH_EFFECTIVE_CONNECTION', 'BLOCK_UNSOLIDIFIED', 'OTHER_ERROR'];

test('what a node answers to a signed transfer is told: refused, not known, which a refusal does not undo, or sent', async () => {
  const ask = askAt(checkout.service.devnet.url);
  let broadcast: object | Error = {};
  const { page, close } = await openWithWallet({
    askNode: async (path, payload) => {
      if (path !== 'wallet/broadcasttransaction') return ask(path, payload);
      if (broadcast instanceof Error) throw broadcast;
      return broadcast;
    },
  });
  const reported = async (answer: object | Error, isFirst = true) => {
    broadcast = answer;
    // Makes it a first attempt, because uncertainty about an earlier one remains.
    if (isFirst) await page.evaluate(`sessionStorage.setItem(document.body.dataset.path, '{}')`);
    await payButton(page).click();
    // The button is disabled while it waits.
    await walletLine(page).getByText(WAIT).waitFor({ state: 'hidden' });
    return [await walletLine(page).innerText(), await payButton(page).isEnabled()];
  };
  for (const code of REFUSALS) expect([code, ...(await reported({ code }))]).toEqual([code, REFUSED, true]);
  for (const code of MAYBES) expect([code, ...(await reported({ code }))]).toEqual([code, UNKNOWN, true]);
  expect(await reported({})).toEqual([UNKNOWN, true]);
  expect(await reported(new Error('the connection was reset'))).toEqual([UNKNOWN, true]);
  expect(await reported({ code: 'SIGERROR' }, false)).toEqual([UNKNOWN, true]);
  expect(await reported({ code: 'DUP_TRANSACTION_ERROR' }, false)).toEqual([SENT, false]);
  await close();
});

test('a wallet whose USDT does not suffice is not asked to sign, and can try again when it has more', async () => {
  const { devnet, payer } = checkout.service;
  const { privateKey, address } = await fundWallet(checkout.service, 20_000_000n);
  const { page, wallet, close } = await openWithWallet({ privateKey });
  await payButton(page).click();
  await untilSaid(page, POOR);
  expect(wallet.asked).toEqual([
    'wallet/getblockbynum',
    'wallet/triggerconstantcontract',
    'wallet/triggerconstantcontract',
  ]);
  expect(wallet.toSign).toEqual([]);
  await payer.transfer({ contract: devnet.usdtContract, to: address, amountMicro: 10_000_000n });
  devnet.mine();
  await payButton(page).click();
  await untilSaid(page, SENT);
  await close();
});

test.each(
  someCases(
    [
      ['its owner is asked', null, 1],
      ['the transaction is built', 'wallet/triggersmartcontract', 0],
    ],
    2,
  ),
)('when another payment is found while %s, the wallet sends nothing', async (_moment, step, signatures) => {
  const { service } = checkout;
  const ask = askAt(service.devnet.url);
  const { held, release } = hold();
  const { page, invoice, wallet, close } = await openWithWallet({
    askNode: async (path, payload) => {
      if (path === step) await held;
      return ask(path, payload);
    },
    confirm: async () => {
      await held;
      return true;
    },
  });
  // Even if the element is no longer in the page.
  const line = await walletLine(page).elementHandle();
  await payButton(page).click();
  await eventually(
    () => wallet.toSign.length === signatures && wallet.asked.at(-1) === 'wallet/triggersmartcontract',
    (isHeld) => isHeld,
  );
  await payInto(service, invoice);
  await untilHeading(page, 'Payment found');
  expect(await line?.textContent()).toBe(WAIT);
  release();
  const said = await eventually(
    () => line?.textContent(),
    (text) => text !== WAIT,
  );
  expect(said).toBe(REFUSED);
  expect(wallet.toSign).toHaveLength(signatures);
  expect(wallet.asked).not.toContain('wallet/broadcasttransaction');
  await close();
});

test('a page that is loaded anew while a signed transfer is on its way says that it does not know', async () => {
  const ask = askAt(checkout.service.devnet.url);
  const { page, wallet, close } = await openWithWallet({
    askNode: (path, payload) =>
      path === 'wallet/broadcasttransaction' ? new Promise(() => undefined) : ask(path, payload),
  });
  await payButton(page).click();
  await eventually(
    () => wallet.asked,
    (asked) => asked.includes('wallet/broadcasttransaction'),
  );
  await page.reload();
  await untilSaid(page, UNKNOWN);
  expect(await payButton(page).isEnabled()).toBe(true);
  await close();
});

test('what was sent is remembered in every language, and by pages that were open in this tab before', async () => {
  const { page, wallet, close } = await openWithWallet({ beforeOpening: (page) => page.clock.install() });
  await payButton(page).click();
  await untilSaid(page, SENT);
  await page.locator('details.languages summary').click();
  await page.getByRole('link', { name: 'Español' }).click();
  await untilSaid(page, 'Enviado. No vuelva a enviar el pago. Esta página lo mostrará en cuanto esté en la red.');
  const button = page.getByRole('button', { name: 'Pagar con esta billetera' });
  expect(await button.isDisabled()).toBe(true);
  const asked = wallet.asked.length;
  // As on a page restored from the browser's cache.
  await button.evaluate((element) => element.removeAttribute('disabled'));
  await button.click();
  await button.and(page.locator(':disabled')).waitFor();
  expect(wallet.asked).toHaveLength(asked);
  await close();
});

test('what was sent, and is in no block minutes after its time, may be tried again, unless the network is not seen', async () => {
  const { service } = checkout;
  const ask = askAt(service.devnet.url);
  const { page, problems, close } = await openWithWallet({
    beforeOpening: (page) => page.clock.install(),
    // The node accepts it and never passes it on.
    askNode: async (path, payload) => (path === 'wallet/broadcasttransaction' ? { result: true } : ask(path, payload)),
  });
  await payButton(page).click();
  await untilSaid(page, SENT);
  service.clock.advance(7 * 60_000);
  await page.reload();
  await page.getByText('We cannot see the TRON network').waitFor();
  await untilSaid(page, SENT);
  expect(await payButton(page).isDisabled()).toBe(true);
  seeAgain(service);
  await page.locator('#left', { hasText: 'min left' }).waitFor();
  await page.clock.runFor(5000);
  await untilSaid(page, UNKNOWN);
  expect(await payButton(page).isEnabled()).toBe(true);
  await payButton(page).click();
  await untilSaid(page, SENT);
  expect(problems).toEqual([]);
  await close();
});

test('where the browser keeps nothing, the page itself remembers what was sent when its payment disappears', async () => {
  const { service } = checkout;
  const { page, problems, invoice, close } = await openWithWallet({
    beforeOpening: (page) =>
      page.addInitScript(
        `Object.defineProperty(window, 'sessionStorage', { get() { throw new DOMException('no', 'SecurityError'); } })`,
      ),
  });
  await payButton(page).click();
  await untilSaid(page, SENT);
  service.devnet.mine();
  await untilHeading(page, 'Payment found');
  await orphan(service, invoice);
  await untilHeading(page, 'Waiting for your payment to reappear');
  await page.getByText('The transfer failed? Show how to pay').click();
  await untilSaid(page, SENT);
  expect(await payButton(page).isDisabled()).toBe(true);
  expect(problems).toEqual([]);
  await close();
});

const NOT_FINAL = 'This result is not final yet. Do not send again; check again in 1 minute.';
const MAY_SEND = 'If you have not sent another payment, you can send again.';
const OTHER_FOUND = 'Another payment was found. Do not send again.';

test('a transfer that failed on the chain is looked up by its id: once that is final, and nothing else was found, it may be sent again', async () => {
  const { service } = checkout;
  const { devnet, payer } = service;
  const ask = askAt(devnet.url);
  const { privateKey, transfer } = await fundWallet(service, 30_000_000n);
  let sent: object = {};
  const { page, problems, invoice, close } = await openWithWallet({
    privateKey,
    askNode: async (path, payload) => {
      if (path === 'wallet/broadcasttransaction') {
        sent = payload;
        // Its owner spends the money elsewhere, and that transaction gets into a block first.
        await transfer({ contract: devnet.usdtContract, to: payer.address, amountMicro: 10_000_000n });
      }
      return ask(path, payload);
    },
  });
  await payButton(page).click();
  await untilSaid(page, SENT);
  const field = page.locator('#transaction-field');
  const id = await field.inputValue();
  expect(sent).toMatchObject({ txID: id });
  await page.reload();
  await untilSaid(page, SENT);
  expect(await field.inputValue()).toBe(id);
  devnet.mine();
  await untilHeadIsExamined(service);
  await untilAnswered(page, NOT_FINAL);
  await untilSaid(page, SENT);
  expect(await payButton(page).isDisabled()).toBe(true);
  devnet.mineUntilSolid();
  await untilRecorded(service);
  await untilAnswered(page, MAY_SEND, `https://tronscan.org/#/transaction/${id}`);
  expect(await payButton(page).isEnabled()).toBe(true);
  await page.reload();
  expect([await walletLine(page).textContent(), await payButton(page).isEnabled()]).toEqual(['', true]);
  await payInto(service, invoice);
  await untilHeading(page, 'Payment found');
  await untilAnswered(page, OTHER_FOUND, id);
  await finalise(service, invoice);
  await untilHeading(page, 'Paid');
  await untilAnswered(page, OTHER_FOUND);
  expect(problems).toEqual([]);
  await close();
});

test('the button is there only where a wallet is, also one that comes late, with or without telling', async () => {
  const { service, browser } = checkout;
  const invoice = await newInvoice(service);
  const { page, problems, close } = await openPage(browser, invoice.url, {
    beforeOpening: (page) => page.clock.install(),
  });
  const isOffered = () => payButton(page).isVisible();
  expect(await isOffered()).toBe(false);
  await page.evaluate(`window.tronLink = { request() {} }; dispatchEvent(new Event('tronLink#initialized'))`);
  expect(await isOffered()).toBe(true);
  await page.evaluate('delete window.tronLink');
  await page.clock.runFor(5000);
  expect(await isOffered()).toBe(false);
  // Objects with a wallet's name that aren't wallets.
  await page.evaluate(
    'window.tron = {}; window.okxwallet = 1; window.trustwallet = { tronLink: {} }; window.binancew3w = { tron: { getAccount() {} } }',
  );
  await page.clock.runFor(5000);
  expect(await isOffered()).toBe(false);
  await page.evaluate('window.tronWeb = {}');
  await page.clock.runFor(5000);
  expect(await isOffered()).toBe(true);
  await page.evaluate('delete window.tronWeb');
  await page.evaluate(`dispatchEvent(new CustomEvent('TIP6963:announceProvider', { detail: null }))`);
  expect(await isOffered()).toBe(false);
  await page.evaluate(
    `dispatchEvent(new CustomEvent('TIP6963:announceProvider', { detail: { provider: { request() {} } } }))`,
  );
  expect(await isOffered()).toBe(true);
  expect(problems).toEqual([]);
  await close();
});

test('a locked wallet is to be unlocked, and its button stays on', async () => {
  let letIn: '' | true = '';
  const { page, problems, close } = await openWithWallet({ kind: 'tronLink', letIn: () => letIn });
  await payButton(page).click();
  await untilSaid(page, SILENT);
  letIn = true;
  await payButton(page).click();
  await untilSaid(page, SENT);
  expect(problems).toEqual([]);
  await close();
});

test('a wallet that does not answer for a minute can be asked again, and what it answers late is not sent as well', async () => {
  const first = hold();
  let asked = 0;
  const { page, wallet, problems, close } = await openWithWallet({
    // Speeds up the minute only for the wallet, because a page without updates for a minute hides how to pay.
    beforeOpening: (page) =>
      page.addInitScript(`
        const { setTimeout } = window;
        const minutes = [];
        window.setTimeout = (work, ms, ...given) => {
          if (ms === 60_000) minutes.push(work);
          return setTimeout(work, ms, ...given);
        };
        window.letMinutePass = () => minutes.pop()();
      `),
    confirm: async () => {
      if (++asked === 1) await first.held;
      return true;
    },
  });
  const broadcasts = () => wallet.asked.filter((path) => path === 'wallet/broadcasttransaction').length;
  await payButton(page).click();
  await untilSaid(page, WAIT);
  await expect.poll(() => asked).toBe(1);
  expect(await payButton(page).isDisabled()).toBe(true);
  await page.evaluate('letMinutePass()');
  await untilSaid(page, SILENT);
  await payButton(page).click();
  await untilSaid(page, SENT);
  first.release();
  // Once a later question of the page is answered, the late answer has reached it too.
  await page.evaluate('walletAsksToSign([])');
  asked -= 1;
  expect([asked, broadcasts()]).toEqual([2, 1]);
  expect(await walletLine(page).textContent()).toBe(SENT);
  expect(problems).toEqual([]);
  await close();
});
