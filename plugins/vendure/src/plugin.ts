import {
  PluginCommonModule,
  type RuntimeVendureConfig,
  ScheduledTask,
  SettingsStoreScopes,
  type Type,
  VendurePlugin,
} from '@vendure/core';
import { quittanceHandler } from './handler';
import { QUITTANCE_OPTIONS, type QuittanceOptions } from './options';
import { orderProcess, paymentProcess } from './process';
import { CURSOR, QuittanceService } from './quittance.service';
import { keepRawBody, WEBHOOK_ROUTE, WebhookController } from './webhook.controller';

/** Reads the feed for webhooks that were lost. */
function sweepTask(schedule: string): ScheduledTask {
  return new ScheduledTask({
    id: 'quittance-sweep',
    description: 'Reads what happened in Quittance, for webhooks that were lost',
    schedule,
    timeout: 240_000,
    execute: ({ injector }) => injector.get(QuittanceService).sweep(),
  });
}

function configure(config: RuntimeVendureConfig): RuntimeVendureConfig {
  const { sweepSchedule = '*/5 * * * *' } = QuittancePlugin.options;
  config.paymentOptions.paymentMethodHandlers.push(quittanceHandler);
  config.paymentOptions.process = [...(config.paymentOptions.process ?? []), paymentProcess];
  config.orderOptions.process.push(orderProcess);
  config.schedulerOptions.tasks.push(sweepTask(sweepSchedule));
  config.apiOptions.middleware.push({ route: `/${WEBHOOK_ROUTE}`, handler: keepRawBody, beforeListen: true });
  // Nobody may set it over the API.
  const cursor = { name: CURSOR.name, scope: SettingsStoreScopes.global, readonly: true };
  config.settingsStoreFields = { ...config.settingsStoreFields, [CURSOR.namespace]: [cursor] };
  return config;
}

/** Takes USDT by a Quittance: `plugins: [QuittancePlugin.init({ url, apiKey, webhookSecrets })]`. */
@VendurePlugin({
  imports: [PluginCommonModule],
  compatibility: '^3.5.0',
  providers: [QuittanceService, { provide: QUITTANCE_OPTIONS, useFactory: () => QuittancePlugin.options }],
  controllers: [WebhookController],
  configuration: configure,
})
// biome-ignore lint/complexity/noStaticOnlyClass: what Vendure takes for a plugin is a class.
export class QuittancePlugin {
  static options: QuittanceOptions;

  static init(options: QuittanceOptions): Type<QuittancePlugin> {
    if (options.webhookSecrets.length === 0) throw new TypeError('webhookSecrets is empty');
    QuittancePlugin.options = options;
    return QuittancePlugin;
  }
}
