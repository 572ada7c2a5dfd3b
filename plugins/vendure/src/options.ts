import { Quittance } from '@quittance/sdk';

export type QuittanceOptions = {
  /** The URL of your Quittance, such as `https://pay.example.com`. */
  url: string;
  /** The secret key of the project of this shop. */
  apiKey: string;
  /** The secret of the webhook endpoint; two during a rotation. */
  webhookSecrets: readonly string[];
  /** The project (`prj_…`): webhooks of another one are refused. */
  projectId?: string;
  /** When the event feed is read for webhooks that were lost, as cron; every 5 minutes by default. */
  sweepSchedule?: string;
};

export const QUITTANCE_OPTIONS = Symbol('QUITTANCE_OPTIONS');
export const loggerCtx = 'QuittancePlugin';

/** A request waits for it while its order is locked, so it gives up sooner than the SDK does by itself. */
const TIMEOUT_MS = 5_000;

export function createClient({ url, apiKey }: QuittanceOptions): Quittance {
  return new Quittance({ baseUrl: url, apiKey, timeoutMs: TIMEOUT_MS, maxRetries: 1 });
}
