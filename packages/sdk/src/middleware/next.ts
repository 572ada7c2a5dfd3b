// biome-ignore-all lint/performance/noBarrelFile: the names under which Next.js users find the two.

/** For the Pages Router: export this as default from an API route that also has `export const config = { api: { bodyParser: false } }`. */
export { quittanceWebhook as quittanceWebhookPage } from './express.ts';
/** For the App Router: `export const POST = quittanceWebhook({ secret: () => process.env.QUITTANCE_WEBHOOK_SECRET ?? '' }, handler)`. */
export { quittanceWebhook } from './web.ts';
