/**
 * A Vendure shop with the plugin: `node vendure-shop.cjs SETTINGS`, where the plugin and Vendure are installed. Prints `ready` once it
 * serves.
 */
const { readFileSync } = require('node:fs');
const {
  bootstrap,
  DefaultSchedulerPlugin,
  LanguageCode,
  PaymentMethodHandler,
  mergeConfig,
  defaultConfig,
} = require('@vendure/core');
const { populate } = require('@vendure/core/cli');
const { QuittancePlugin } = require('quittance-vendure');

const { port, database, quittance } = JSON.parse(readFileSync(process.argv[2], 'utf8'));

/** Charges the whole order, whatever its other payments are, like a plugin that records a charge after it happened. */
const cardHandler = new PaymentMethodHandler({
  code: 'card',
  description: [{ languageCode: LanguageCode.en, value: 'Card' }],
  args: {},
  createPayment: (_ctx, order) => ({ amount: order.totalWithTax, state: 'Settled', metadata: {} }),
  settlePayment: () => ({ success: true }),
});

const config = mergeConfig(defaultConfig, {
  apiOptions: { port, hostname: '127.0.0.1' },
  authOptions: { tokenMethod: 'bearer', superadminCredentials: { identifier: 'admin', password: 'admin-of-test' } },
  dbConnectionOptions: { type: 'postgres', ...database, synchronize: true },
  paymentOptions: { paymentMethodHandlers: [cardHandler] },
  plugins: [
    DefaultSchedulerPlugin.init({ manualTriggerCheckInterval: '1s', runTasksInWorkerOnly: false }),
    // The test runs the sweep through the shop's API. A scheduled sweep would hide a failed webhook.
    QuittancePlugin.init({ ...quittance, sweepSchedule: '0 0 1 1 *' }),
  ],
  schedulerOptions: { runTasksInWorkerOnly: false },
});

const INITIAL = {
  defaultLanguage: LanguageCode.en,
  defaultZone: 'Europe',
  countries: [{ name: 'Austria', code: 'AT', zone: 'Europe' }],
  taxRates: [{ name: 'None', percentage: 0 }],
  shippingMethods: [{ name: 'Post', price: 0 }],
  paymentMethods: ['quittance', 'card'].map((code) => ({ name: code, handler: { code, arguments: [] } })),
  collections: [],
};

async function start() {
  const app = await populate(() => bootstrap(config), INITIAL);
  process.on('SIGTERM', () => app.close().then(() => process.exit(0)));
  console.log('ready');
}

start().catch((error) => {
  console.error(error);
  process.exit(1);
});
