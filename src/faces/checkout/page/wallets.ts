import { keyMode, type Network } from '../../../core/domain/network.ts';
import { type Html, html } from '../../web/html.ts';
import { type Page, pageUrl } from './page-state.ts';

/**
 * Renders buttons that open this page in a wallet. They are never the only way to pay, and exist only on the main network, because wallets
 * would send real money.
 */
export function renderWalletLinks(page: Page, amount: string): Html | null {
  const { words, invoice, site } = page;
  const { say } = words;
  const contract = site.usdt[invoice.network] ?? null;
  if (keyMode(invoice.network) !== 'live' || contract === null) return null;
  const url = site.publicUrl() + pageUrl(page);
  const buttons = Object.entries(OPEN_IN).map(
    ([wallet, linkTo]) =>
      html`<a class="button" href="${linkTo(url)}" rel="noreferrer" aria-label="${words.text('openIn', { wallet })}">${wallet}</a>`,
  );
  const send = new URLSearchParams({ asset: `c${TRON}_t${contract}`, address: invoice.address, amount });
  return html`<details><summary>${say('wallets')}</summary>
<p class="open">${buttons}</p>
<p><a href="https://link.trustwallet.com/send?${send.toString()}" rel="noreferrer">${say('openTrust')}</a></p>
<p class="hint">${say('walletsHint')}</p>
</details>
`;
}

/** The SLIP-44 coin type. */
const TRON = 195;

/**
 * How to open a page in each wallet's browser, according to its documentation: https://docs.tronlink.org ("DeepLink"),
 * https://web3.okx.com/build/docs/waas/app-universal-link, https://docs.token.im (imToken, "Deeplink"), https://help.tokenpocket.pro
 * (developers, "Deeplink"), https://developer.trustwallet.com/developer/develop-for-trust/deeplinking. The last one also documents the link
 * that prefills a payment.
 */
const OPEN_IN: Readonly<Record<string, (url: string) => string>> = {
  TronLink: (url) => {
    const open = JSON.stringify({ url, action: 'open', protocol: 'tronlink', version: '1.0' });
    return `tronlinkoutside://pull.activity?param=${encodeURIComponent(open)}`;
  },
  'OKX Wallet': (url) => {
    const open = `okx://wallet/dapp/url?dappUrl=${encodeURIComponent(url)}`;
    return `https://web3.okx.com/download?deeplink=${encodeURIComponent(open)}`;
  },
  imToken: (url) => `imtokenv2://navigate?screen=DappView&url=${encodeURIComponent(url)}`,
  TokenPocket: (url) => `tpdapp://open?params=${encodeURIComponent(JSON.stringify({ url, chain: 'TRX' }))}`,
  'Trust Wallet': (url) => `https://link.trustwallet.com/open_url?coin_id=${TRON}&url=${encodeURIComponent(url)}`,
};

/**
 * Renders a button for payers who use a wallet's browser. It asks the wallet for one `transfer` of exactly this amount, and never for an
 * `approve`. It stays hidden until the script has found a wallet. The script recognises the wallet's network by its block 0.
 */
export function renderOwnWallet({ words, invoice, site }: Page): Html | null {
  const { network, address, payableMicro, genesisId } = invoice;
  const contract = site.usdt[network] ?? null;
  if (contract === null || genesisId === null) return null;
  const { text } = words;
  return html`<div class="wallet" hidden data-wallet data-contract="${contract}" data-to="${address}" data-micro="${payableMicro.toString()}" data-genesis="${genesisId}">
<button type="button">${words.say('payHere')}</button>
<p class="hint">${words.say('walletsHint')}</p>
<p role="status" data-wait="${text('walletWait')}" data-sent="${text('walletSent')}" data-refused="${text('walletRefused')}" data-declined="${text('walletDeclined')}" data-poor="${text('walletPoor')}" data-energy="${text('walletEnergy')}" data-unknown="${text('walletUnknown')}" data-silent="${text('walletSilent')}" data-other="${text('walletOtherNetwork', { network: NETWORK_NAMES[network] })}"></p>
</div>
`;
}

/** The names that wallets use. */
export const NETWORK_NAMES: Readonly<Record<Network, string>> = {
  mainnet: 'TRON Mainnet',
  nile: 'Nile',
  devnet: 'devnet',
};

/**
 * The nodes that wallets' scripts use by default. These scripts run in the page, so its policy has to allow the nodes; our own script
 * doesn't use them. Each public network also allows the nodes of the others, because a wallet on another network notices that only when it
 * sends a request.
 */
const PUBLIC_NODES = ['https://api.trongrid.io', 'https://nile.trongrid.io', 'https://api.shasta.trongrid.io'];
export const WALLET_NODES: Readonly<Record<Network, readonly string[]>> = {
  mainnet: PUBLIC_NODES,
  nile: PUBLIC_NODES,
  devnet: [],
};
