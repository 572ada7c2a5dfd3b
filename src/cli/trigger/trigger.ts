import { AppError } from '../../domain/errors.ts';
import { CliError } from '../cli-error.ts';
import { clip } from '../clip.ts';
import { createFeedReader } from '../listen/follow-feed.ts';
import { loadConfig } from '../load-config.ts';
import { withSandbox } from '../sandbox/with-sandbox.ts';
import { printableJson, type Result, type Terminal } from '../terminal.ts';
import { disableEndpoint } from './disable-endpoint.ts';
import { happenToInvoice, type InvoiceOptions } from './happen-to-invoice.ts';
import { recordPing } from './record-ping.ts';
import { TRIGGERS, type Trigger } from './triggers.ts';
import { followFrom } from './until.ts';

/** A block comes at most every minute, and the watcher looks a moment later; everything is rather a matter of seconds. */
const WAIT_MS = 180_000;

/** Makes an event happen in the sandbox of this data directory, and waits until it is told. Errors: `SANDBOX_NOT_RUNNING`, `SANDBOX_REFUSED`. */
export async function trigger(terminal: Terminal, name: string, options: InvoiceOptions): Promise<Result> {
  const type = readTrigger(name);
  const isAboutInvoice = type !== 'ping' && type !== 'endpoint.disabled';
  if (!isAboutInvoice && (options.amount !== undefined || options.externalId !== undefined)) {
    throw new CliError('INVALID_ARGUMENT', `--amount and --external-id are about an invoice, and ${type} has none`);
  }
  const config = loadConfig(terminal);
  const { id, body } = await withSandbox(config.dataDir, async (db, sandbox) => {
    const signal = AbortSignal.timeout(WAIT_MS);
    const feed = createFeedReader({ server: sandbox.baseUrl, apiKey: sandbox.apiKey }, { note: terminal.note, signal });
    try {
      const until = await followFrom(feed, signal);
      if (type === 'ping') {
        const ping = await recordPing(db, sandbox.projectId);
        return await until((event) => event.id === ping);
      }
      if (type === 'endpoint.disabled') return await disableEndpoint(db, { config, sandbox, until });
      return await happenToInvoice(db, { sandbox, type, options, until });
    } catch (error) {
      if (!signal.aborted || error !== signal.reason) throw error;
      const message = `${type} has not come within ${WAIT_MS / 1000} seconds: "quittance chain status" and the log of the sandbox may say why`;
      throw new AppError('SANDBOX_REFUSED', message, { cause: error });
    }
  });
  return { data: { id, type, event: JSON.parse(body) }, text: `${id}\n${printableJson(body)}` };
}

function readTrigger(name: string): Trigger {
  const known = Object.keys(TRIGGERS) as Trigger[];
  const found = known.find((type) => type === name);
  if (found !== undefined) return found;
  throw new CliError('INVALID_ARGUMENT', `${clip(name)} is no event that can be triggered: choose ${known.join(', ')}`);
}
