import { encodeId } from '../../domain/ids.ts';
import { unixMs } from '../../domain/time.ts';
import { systemClock } from '../../runtime/clock.ts';
import { changeWebhookEndpoint } from '../../store/webhook-endpoints.ts';
import { CliError } from '../cli-error.ts';
import { readWebhookUrl } from '../read-webhook-url.ts';
import { formatFields, type Result, type Terminal } from '../terminal.ts';
import { withDatabase } from '../with-database.ts';
import { refuseSameUrl } from './add.ts';
import { describeEndpoint, eventTypesText } from './describe.ts';
import { findEndpoint, readDescription, readEventTypes } from './options.ts';

export type UpdateOptions = { url?: string; description?: string; events?: string[] };

/** Changes what is given of an endpoint. Its secret stays. */
export async function updateWebhook(terminal: Terminal, reference: string, options: UpdateOptions): Promise<Result> {
  if (options.url === undefined && options.description === undefined && options.events === undefined) {
    throw new CliError('USAGE', 'nothing to change was given: use --url, --description or --events');
  }
  const eventTypes = options.events === undefined ? undefined : readEventTypes('--events', options.events);
  const description = options.description === undefined ? undefined : readDescription(options.description);
  return withDatabase(terminal, async ({ db, config }) => {
    const before = await findEndpoint(db, reference);
    const { network } = before;
    const url =
      options.url === undefined
        ? before.url
        : readWebhookUrl(options.url, { network, localTargets: config.webhooks.localTargets });
    const after = {
      ...before,
      url,
      description: description ?? before.description,
      event_types: eventTypes === undefined ? before.event_types : eventTypes,
    };
    await refuseSameUrl(db, before.project_id, url, before.id);
    const { event_types, ...to } = after;
    await changeWebhookEndpoint(db, before.id, { ...to, eventTypes: event_types });
    const notes = [
      url === before.url ? null : `what is undelivered goes to the new URL: quittance webhook test ${reference}`,
      before.disabled_at === null
        ? null
        : `it stays disabled, and nothing is sent until "quittance webhook enable ${reference}"`,
      eventTypes === undefined ? null : 'the types count for events from now on; what is planned is still delivered',
    ].filter((note) => note !== null);
    return {
      data: describeEndpoint(after, unixMs(systemClock.now())),
      text: formatFields([
        ['endpoint', encodeId('whe', before.id)],
        ['url', url],
        ['description', after.description],
        ['events', eventTypesText(event_types)],
      ]),
      ...(notes.length === 0 ? {} : { next: notes.join('\n') }),
    };
  });
}
