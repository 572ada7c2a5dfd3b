import { readAsset } from '../../web/assets.ts';

/** Of the payer's page. The style stands in each page; `embed` is for the pages of shops. */
export const ASSETS = { css: readAsset('checkout.css'), js: readAsset('checkout.js'), embed: readAsset('embed.js') };
