import { fileURLToPath } from 'node:url';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { bytesToHex } from '@noble/hashes/utils.js';
import type { Page } from 'playwright-core';
import { request } from 'undici';
import type { Payer } from '../../src/devnet/payer/payer.ts';
import type { TestService } from '../support/service.ts';
import { type CheckoutTest, newInvoice, type OpenedPage, openPage, type TestInvoice } from './checkout.ts';

const TRON_WEB = fileURLToPath(new URL('../node_modules/tronweb/dist/TronWeb.js', import.meta.url));

/** A node's answer to a request of the wallet's TronWeb. */
type AskNode = (path: string, payload: object) => Promise<unknown>;

type WalletOptions = {
  /** `tronLink` shows its TronWeb only after its owner let the page in; `tronWeb` is there from the start, as in the browsers of wallets. */
  kind: 'tronLink' | 'tronWeb';
  privateKey: string;
  askNode: AskNode;
  /** What its owner says to the page, and to a transaction. Yes by default. */
  letIn?: () => boolean;
  confirm?: () => boolean | Promise<boolean>;
};

/** What was asked of a wallet. */
type Wallet = {
  /** Methods of `tronLink.request`. */
  requested: string[];
  /** Paths of nodes. */
  asked: string[];
  /** Contracts of the transactions that its owner was to sign: `[{ type: 'TriggerSmartContract', parameter: { value: {} } }]`. */
  toSign: unknown[];
};

/** The page of a new invoice in a browser with a wallet, which by default has money on the devnet. */
export async function openPageWithWallet(
  { service, browser }: CheckoutTest,
  options: Partial<WalletOptions> & { beforeOpening?: (page: Page) => Promise<unknown> },
): Promise<OpenedPage & { invoice: TestInvoice; wallet: Wallet }> {
  const { beforeOpening, ...walletOptions } = options;
  const invoice = await newInvoice(service);
  let wallet: Wallet | null = null;
  const opened = await openPage(browser, invoice.url, {
    beforeOpening: async (page) => {
      await beforeOpening?.(page);
      wallet = await addWallet(page, {
        kind: 'tronWeb',
        privateKey: service.devnet.payer.privateKey,
        askNode: askAt(service.devnet.url),
        ...walletOptions,
      });
    },
  });
  if (wallet === null) throw new Error('the page was opened without its wallet');
  return { ...opened, invoice, wallet };
}

/** A new wallet with TRX for fees and so much USDT. */
export async function fundWallet(
  { devnet, payer }: TestService,
  amountMicro: bigint,
): Promise<Payer & { privateKey: string }> {
  const privateKey = bytesToHex(secp256k1.utils.randomSecretKey());
  const owner = payer.withKey(privateKey);
  await payer.sendTrx({ to: owner.address, amountSun: 100_000_000n });
  await payer.transfer({ contract: devnet.usdtContract, to: owner.address, amountMicro });
  devnet.mine();
  return { ...owner, privateKey };
}

/**
 * Puts a wallet into every document of a page, as an extension does: a real TronWeb that signs. Its requests to nodes pass through
 * the test, because the page allows nobody to ask a devnet.
 */
async function addWallet(page: Page, options: WalletOptions): Promise<Wallet> {
  const { askNode, letIn = () => true, confirm = () => true } = options;
  const wallet: Wallet = { requested: [], asked: [], toSign: [] };
  await page.exposeFunction('walletAsksNode', (path: string, payload: object) => {
    wallet.asked.push(path);
    return askNode(path, payload);
  });
  await page.exposeFunction('walletAsksToSign', (contracts: unknown) => {
    wallet.toSign.push(contracts);
    return confirm();
  });
  await page.exposeFunction('walletIsAsked', (method: string) => {
    wallet.requested.push(method);
    return letIn();
  });
  await page.addInitScript({ path: TRON_WEB });
  await page.addInitScript(`(${INSTALL})(${JSON.stringify({ kind: options.kind, privateKey: options.privateKey })})`);
  return wallet;
}

/** Asks a node as it is. */
export function askAt(nodeUrl: string): AskNode {
  return async (path, payload) => {
    const { body } = await request(`${nodeUrl}/${path}`, { method: 'POST', body: JSON.stringify(payload) });
    return body.json();
  };
}

// Text, because it runs in the page. A refusal is told as TronLink tells it, and a trial run writes into the options that it was
// given as it did up to TronWeb 6.
const INSTALL = `({ kind, privateKey }) => {
  const { TronWeb, providers } = window.TronWeb;
  delete window.TronWeb;
  class Node extends providers.HttpProvider {
    request(path, payload) { return walletAsksNode(path, payload); }
  }
  const node = new Node('http://127.0.0.1');
  const web = new TronWeb({ fullNode: node, solidityNode: node, privateKey });
  const { trx } = web;
  const sign = trx.sign.bind(trx);
  trx.sign = async (transaction) => {
    if (!(await walletAsksToSign(transaction.raw_data.contract))) throw 'Confirmation declined by user';
    return sign(transaction);
  };
  const { transactionBuilder } = web;
  const tryOut = transactionBuilder.triggerConstantContract.bind(transactionBuilder);
  transactionBuilder.triggerConstantContract = (contract, method, options, ...more) =>
    tryOut(contract, method, Object.assign(options, { _isConstant: true }), ...more);
  if (kind === 'tronWeb') {
    window.tronWeb = web;
    return;
  }
  window.tronLink = {
    ready: false,
    tronWeb: false,
    request: async ({ method }) => {
      if (!(await walletIsAsked(method))) return { code: 4001, message: 'User rejected the request.' };
      Object.assign(window.tronLink, { ready: true, tronWeb: web });
      return { code: 200, message: 'User allowed the request.' };
    },
  };
}`;
