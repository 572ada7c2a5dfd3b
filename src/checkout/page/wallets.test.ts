import { expect, test } from 'vitest';
import { checkoutPage, USDT } from '../../../test/support/checkout-page.ts';
import type { Network } from '../../domain/network.ts';
import type { Page } from './page-state.ts';
import { renderOwnWallet, renderWalletLinks } from './wallets.ts';

const AMOUNT = '123456.990007';
const { address, checkoutToken } = checkoutPage('waiting').invoice;

/** The addresses that links lead to, as the browser reads them. */
function linksOf(page: Page): string[] {
  const html = renderWalletLinks(page, AMOUNT)?.html ?? '';
  return [...html.matchAll(/ href="([^"]*)"/g)].map(([, url = '']) => url.replaceAll('&amp;', '&'));
}

const onNetwork = (network: Network) => checkoutPage('waiting', { invoice: { network } });

test('one link opens this page in TronLink, in the language that the reader chose', () => {
  const page = checkoutPage('waiting', { language: 'ar', isLanguageAsked: true });
  const [prefix, parameter = ''] = (linksOf(page)[0] ?? '').split('?param=');
  expect(prefix).toBe('tronlinkoutside://pull.activity');
  expect(JSON.parse(decodeURIComponent(parameter))).toEqual({
    url: `https://pay.example/c/${checkoutToken}?lang=ar`,
    action: 'open',
    protocol: 'tronlink',
    version: '1.0',
  });
});

test('one link opens the form of Trust Wallet with token, address and exact amount', () => {
  expect(linksOf(checkoutPage('waiting'))[1]).toBe(
    `https://link.trustwallet.com/send?asset=c195_t${USDT}&address=${address}&amount=${AMOUNT}`,
  );
});

test.each(['nile', 'devnet'] as const)('on %s there is no link to a wallet, which would send real money', (network) => {
  expect(linksOf(onNetwork(network))).toEqual([]);
  expect(renderOwnWallet(onNetwork(network))?.html).toContain('data-wallet');
});

test('where the contract of the token is not known, no wallet is offered', () => {
  const site = { publicUrl: () => 'https://pay.example', usdt: {}, proofOf: () => null };
  const page = checkoutPage('waiting', { site });
  expect([renderOwnWallet(page), renderWalletLinks(page, AMOUNT)]).toEqual([null, null]);
});

test('the button of a wallet in this page needs block 0, by which the wallet’s network is known', () => {
  const page = checkoutPage('waiting', { invoice: { genesisId: null } });
  expect(renderOwnWallet(page)).toBe(null);
  expect(linksOf(page)).toHaveLength(2);
});

test('the button carries the contract, the address and the amount in millionths, hidden until the script finds a wallet', () => {
  const { genesisId } = checkoutPage('waiting').invoice;
  expect(renderOwnWallet(checkoutPage('waiting'))?.html).toContain(
    `hidden data-wallet data-contract="${USDT}" data-to="${address}" data-micro="123456990007" data-genesis="${genesisId}"`,
  );
});
