import { readAsset } from '../../web/assets.ts';

/** The payer page's assets. The style is inlined into each page; `embed` is for shops' own pages. */
export const ASSETS = { css: readAsset('checkout.css'), js: readAsset('checkout.js'), embed: readAsset('embed.js') };
