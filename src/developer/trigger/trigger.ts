import type { Config } from '../../config/config.ts';
import { AppError } from '../../domain/errors.ts';
import { clip } from '../../operator/input/clip.ts';
import { createFeedReader } from '../listen/follow-feed.ts';
import { withSandbox } from '../sandbox/with-sandbox.ts';
import { disableEndpoint } from './disable-endpoint.ts';
import { happenToInvoice, type InvoiceOptions } from './happen-to-invoice.ts';
import { recordPings } from './record-ping.ts';
import { refundTransfer } from './refund-transfer.ts';
import { TRIGGERS, type Trigger } from './triggers.ts';
import { type FeedEvent, followFrom } from './until.ts';

/** A block comes at most every minute, and the watcher looks a moment later; everything is rather a matter of seconds. */
const WAIT_MS = 180_000;

/** Reads which event is to happen. `options` are about an invoice, where the event is. Error: `INVALID_ARGUMENT`. */
export function readTrigger(name: string, { amount, externalId }: InvoiceOptions): Trigger {
  const known = Object.keys(TRIGGERS) as Trigger[];
  const type = known.find((each) => each === name);
  if (type === undefined) {
    const choice = `choose ${known.join(', ')}`;
    throw new AppError('INVALID_ARGUMENT', `${clip(name)} is no event that can be triggered: ${choice}`);
  }
  const isAboutInvoice = type !== 'ping' && type !== 'endpoint.disabled' && type !== 'transfer.refunded';
  if (isAboutInvoice || (amount === undefined && externalId === undefined)) return type;
  throw new AppError('INVALID_ARGUMENT', `--amount and --external-id are about an invoice, and ${type} has none`);
}

/** Makes an event happen in the sandbox of this data directory, and waits until it is told. Errors: `SANDBOX_NOT_RUNNING`, `SANDBOX_REFUSED`. */
export async function trigger(
  { config, note }: { config: Config; note(text: string): void },
  type: Trigger,
  options: InvoiceOptions,
): Promise<FeedEvent> {
  return withSandbox(config.dataDir, async (sandbox) => {
    const signal = AbortSignal.timeout(WAIT_MS);
    const feed = createFeedReader({ server: sandbox.baseUrl, apiKey: sandbox.apiKey }, { note, signal });
    try {
      const until = await followFrom(feed, signal);
      if (type === 'ping') {
        const ping = await recordPings(sandbox);
        return await until((event) => event.id === ping);
      }
      if (type === 'endpoint.disabled') return await disableEndpoint(sandbox, config, until);
      if (type === 'transfer.refunded') return await refundTransfer(sandbox, { until, signal });
      return await happenToInvoice(sandbox, { type, options, until });
    } catch (error) {
      if (!signal.aborted || error !== signal.reason) throw error;
      const message = `${type} has not come within ${WAIT_MS / 1000} seconds: "quittance chain status" and the log of the sandbox may say why`;
      throw new AppError('SANDBOX_REFUSED', message, { cause: error });
    }
  });
}
