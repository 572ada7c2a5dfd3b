import { readAsset } from '../../web/assets.ts';

/** Of the payer's page. The style stands in each page. */
export const ASSETS = { css: readAsset('checkout.css'), js: readAsset('checkout.js') };
