import { keyMode, type Network } from '../../domain/network.ts';
import { type Html, html } from '../../web/html.ts';
import type { Page } from './page-state.ts';
import { pageUrl } from './page-url.ts';

/**
 * Links to wallets that have them. They are never the only way. Only on the main network, for they would send real money.
 */
export function renderWalletLinks(page: Page, amount: string): Html | null {
  const { words, invoice, site } = page;
  const { say } = words;
  const contract = site.usdt[invoice.network] ?? null;
  if (keyMode(invoice.network) !== 'live' || contract === null) return null;
  const links = walletLinks(page, contract, amount);
  return html`<details><summary>${say('wallets')}</summary>
<p><a href="${links.tronLink}" rel="noreferrer">${say('openIn', { wallet: 'TronLink' })}</a><br><a href="${links.trust}" rel="noreferrer">${say('openTrust')}</a></p>
<p class="hint">${say('walletsHint')}</p>
</details>
`;
}

/**
 * TronLink opens this page in its own browser (https://docs.tronlink.org, "DeepLink"); Trust Wallet opens its form for sending with
 * everything filled in (https://developer.trustwallet.com/developer/develop-for-trust/deeplinking; 195 is TRON's number in SLIP-44).
 */
function walletLinks({ site, ...page }: Page, contract: string, amount: string): { tronLink: string; trust: string } {
  const url = site.publicUrl() + pageUrl(page);
  const open = JSON.stringify({ url, action: 'open', protocol: 'tronlink', version: '1.0' });
  const send = new URLSearchParams({ asset: `c195_t${contract}`, address: page.invoice.address, amount });
  return {
    tronLink: `tronlinkoutside://pull.activity?param=${encodeURIComponent(open)}`,
    trust: `https://link.trustwallet.com/send?${send}`,
  };
}

/**
 * A button for who reads this in the browser of a wallet: it asks the wallet for one `transfer` of exactly this amount, and nothing ever
 * asks for an `approve`. It takes no place until the script finds a wallet. The script tells the wallet's network by its block 0.
 */
export function renderOwnWallet({ words, invoice, site }: Page): Html | null {
  const { network, address, payableMicro, genesisId } = invoice;
  const contract = site.usdt[network] ?? null;
  if (contract === null || genesisId === null) return null;
  const { text } = words;
  return html`<div class="wallet" hidden data-wallet data-contract="${contract}" data-to="${address}" data-micro="${payableMicro.toString()}" data-genesis="${genesisId}">
<button type="button">${words.say('payHere')}</button>
<p class="hint">${words.say('walletsHint')}</p>
<p role="status" data-wait="${text('walletWait')}" data-sent="${text('walletSent')}" data-refused="${text('walletRefused')}" data-declined="${text('walletDeclined')}" data-poor="${text('walletPoor')}" data-energy="${text('walletEnergy')}" data-unknown="${text('walletUnknown')}" data-other="${text('walletOtherNetwork', { network: NETWORK_NAMES[network] })}"></p>
</div>
`;
}

/** As wallets call them. */
export const NETWORK_NAMES: Readonly<Record<Network, string>> = {
  mainnet: 'TRON Mainnet',
  nile: 'Nile',
  devnet: 'devnet',
};

/**
 * The nodes that the scripts of wallets ask by default. The scripts run in the page, so the page has to allow it. Nothing of ours asks
 * there. A public network allows the nodes of the others too, because a wallet can say only by asking that it is on another one.
 */
const PUBLIC_NODES = ['https://api.trongrid.io', 'https://nile.trongrid.io', 'https://api.shasta.trongrid.io'];
export const WALLET_NODES: Readonly<Record<Network, readonly string[]>> = {
  mainnet: PUBLIC_NODES,
  nile: PUBLIC_NODES,
  devnet: [],
};
