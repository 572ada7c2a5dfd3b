import { expect, test } from 'vitest';
import { checkoutPage, USDT } from '../../../../test/support/checkout-page.ts';
import type { Network } from '../../../core/domain/network.ts';
import type { Page } from './page-state.ts';
import { renderOwnWallet, renderWalletLinks } from './wallets.ts';

const AMOUNT = '123456.990007';
const { address, checkoutToken } = checkoutPage('waiting').invoice;

/** The link targets as the browser reads them. */
function linksOf(page: Page): string[] {
  const html = renderWalletLinks(page, AMOUNT)?.html ?? '';
  return [...html.matchAll(/ href="([^"]*)"/g)].map(([, url = '']) => url.replaceAll('&amp;', '&'));
}

const onNetwork = (network: Network) => checkoutPage('waiting', { invoice: { network } });

test('a button for each wallet opens this page in it, in the language that the reader chose', () => {
  const links = linksOf(checkoutPage('waiting', { language: 'ar', isLanguageAsked: true }));
  const url = `https://pay.example/c/${checkoutToken}?lang=ar`;
  const parameter = (link: string | undefined, name: string) => new URL(link ?? '').searchParams.get(name) ?? '';
  const [tronLink, okx, imToken, tokenPocket, trust] = links;
  expect(tronLink).toMatch(/^tronlinkoutside:\/\/pull\.activity\?/);
  const open = { url, action: 'open', protocol: 'tronlink', version: '1.0' };
  expect(JSON.parse(parameter(tronLink, 'param'))).toEqual(open);
  expect(okx).toMatch(/^https:\/\/web3\.okx\.com\/download\?/);
  expect(parameter(okx, 'deeplink')).toMatch(/^okx:\/\/wallet\/dapp\/url\?/);
  expect(parameter(parameter(okx, 'deeplink'), 'dappUrl')).toBe(url);
  expect(imToken).toMatch(/^imtokenv2:\/\/navigate\?/);
  expect([parameter(imToken, 'screen'), parameter(imToken, 'url')]).toEqual(['DappView', url]);
  expect(tokenPocket).toMatch(/^tpdapp:\/\/open\?/);
  expect(JSON.parse(parameter(tokenPocket, 'params'))).toEqual({ url, chain: 'TRX' });
  expect(trust).toMatch(/^https:\/\/link\.trustwallet\.com\/open_url\?/);
  expect([parameter(trust, 'coin_id'), parameter(trust, 'url')]).toEqual(['195', url]);
});

test('one link opens the form of Trust Wallet with token, address and exact amount', () => {
  expect(linksOf(checkoutPage('waiting'))[5]).toBe(
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
  expect(linksOf(page)).toHaveLength(6);
});

test('the button carries the contract, the address and the amount in millionths, hidden until the script finds a wallet', () => {
  const { genesisId } = checkoutPage('waiting').invoice;
  expect(renderOwnWallet(checkoutPage('waiting'))?.html).toContain(
    `hidden data-wallet data-contract="${USDT}" data-to="${address}" data-micro="123456990007" data-genesis="${genesisId}"`,
  );
});
