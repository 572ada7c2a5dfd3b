import { fileURLToPath } from 'node:url';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { bytesToHex } from '@noble/hashes/utils.js';
import type { Payer } from '@quittance/devnet/payer';
import type { Page } from 'playwright-core';
import { request } from 'undici';
import type { TestService } from '../support/service.ts';
import { type CheckoutTest, newInvoice, type OpenedPage, openPage, type TestInvoice } from './checkout.ts';

const TRON_WEB = fileURLToPath(new URL('../node_modules/tronweb/dist/TronWeb.js', import.meta.url));

/** A node's answer to a request of the wallet's TronWeb. */
type AskNode = (path: string, payload: object) => Promise<unknown>;

/**
 * The global object of each wallet, which also determines how it connects. `tronWeb` exists from the start, as in some wallets' browsers.
 * Others expose theirs only after their owner has connected the page. `binance` has none: it only signs, and the page uses its own TronWeb.
 */
export const WALLET_KINDS = ['tronLink', 'tronWeb', 'okx', 'trust', 'bybit', 'binance', 'tron', 'announced'] as const;

type WalletOptions = {
  kind: (typeof WALLET_KINDS)[number];
  privateKey: string;
  askNode: AskNode;
  /** The owner's answers to the page's connection and to a transaction. The default is yes; a locked wallet answers with an empty text. */
  letIn?: () => boolean | '';
  confirm?: () => boolean | Promise<boolean>;
};

/** The requests that a wallet received. */
type Wallet = {
  /** The methods that the page used to connect. */
  requested: string[];
  /** The paths of node requests. */
  asked: string[];
  /** The contracts of transactions for the owner to sign: `[{ type: 'TriggerSmartContract', parameter: { value: {} } }]`. */
  toSign: unknown[];
};

/** Opens a new invoice's page in a browser with a wallet, which by default has money on the devnet. */
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

/** Creates a wallet with this much USDT, and TRX for fees. */
export async function fundWallet(
  { devnet, payer }: TestService,
  amountMicro: bigint,
  amountSun = 100_000_000n,
): Promise<Payer & { privateKey: string }> {
  const privateKey = bytesToHex(secp256k1.utils.randomSecretKey());
  const owner = payer.withKey(privateKey);
  await payer.sendTrx({ to: owner.address, amountSun });
  await payer.transfer({ contract: devnet.usdtContract, to: owner.address, amountMicro });
  devnet.mine();
  return { ...owner, privateKey };
}

/**
 * Adds a wallet to every document of a page, like an extension: a real TronWeb that signs. Its node requests go through the test, because
 * the page's policy doesn't allow requests to a devnet.
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

/** Queries a node directly. */
export function askAt(nodeUrl: string): AskNode {
  return async (path, payload) => {
    const { body } = await request(`${nodeUrl}/${path}`, { method: 'POST', body: JSON.stringify(payload) });
    return body.json();
  };
}

// A string, because it runs in the page. It refuses in the same way as TronLink, and a trial run modifies the options that it was given, as
// TronWeb did up to version 6.
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
  const refusal = { code: 4001, message: 'User rejected the request.' };
  if (kind === 'binance') {
    const account = web.defaultAddress.base58;
    window.tronWeb = new TronWeb({ fullNode: node, solidityNode: node });
    window.binancew3w = {
      tron: {
        getAccount: async () => {
          if (!(await walletIsAsked('getAccount'))) throw refusal;
          return { address: account };
        },
        signTransaction: trx.sign,
      },
    };
    return;
  }
  const provider = {
    ready: false,
    tronWeb: false,
    request: async ({ method }) => {
      const isLetIn = await walletIsAsked(method);
      if (isLetIn === '') return '';
      // As TIP-1193 has it, and as TronLink had it before.
      if (!isLetIn && method === 'eth_requestAccounts') throw refusal;
      if (!isLetIn) return refusal;
      Object.assign(provider, { ready: true, tronWeb: web });
      return method === 'eth_requestAccounts' ? [web.defaultAddress.base58] : { code: 200, message: 'User allowed the request.' };
    },
  };
  const put = {
    tronLink: () => (window.tronLink = provider),
    okx: () => (window.okxwallet = { tronLink: provider }),
    trust: () => (window.trustwallet = { tronLink: provider }),
    bybit: () => (window.bybitWallet = { tronLink: provider }),
    tron: () => (window.tron = provider),
    announced: () => {
      const detail = Object.freeze({ info: { uuid: '1', name: 'Fake', icon: '', rdns: 'example.fake' }, provider });
      const announce = () => dispatchEvent(new CustomEvent('TIP6963:announceProvider', { detail }));
      addEventListener('TIP6963:requestProvider', announce);
      announce();
    },
  };
  put[kind]();
}`;
