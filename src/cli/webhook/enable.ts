import { encodeId } from '../../domain/ids.ts';
import { toIso, unixMs } from '../../domain/time.ts';
import { systemClock } from '../../runtime/clock.ts';
import { disableWebhookEndpoint } from '../../store/webhook-endpoints.ts';
import { type Enabled, enableEndpoint, MAX_MISSED } from '../../webhooks/enable-endpoint.ts';
import { CliError } from '../cli-error.ts';
import { readOperator } from '../operator.ts';
import { formatFields, type Result, type Terminal } from '../terminal.ts';
import { withDatabase } from '../with-database.ts';
import { findEndpoint, noEndpoint, readEndpointId, readLine } from './options.ts';

/** Lets an endpoint be attempted again, at once. May be repeated. */
export async function enableWebhook(terminal: Terminal, reference: string): Promise<Result> {
  const endpointId = readEndpointId(reference);
  return withDatabase(terminal, async ({ db }) => {
    const enabled = await enableEndpoint({ db, now: () => unixMs(systemClock.now()) }, endpointId);
    if (enabled === null) throw noEndpoint(reference);
    const { endpoint, hastened, missed } = enabled;
    const replay = replayCommand(enabled);
    return {
      data: {
        endpointId: reference,
        status: 'active',
        disabledAt: endpoint.disabled_at && toIso(endpoint.disabled_at),
        disabledReason: endpoint.disabled_reason,
        hastened,
        missed: missed?.count ?? 0,
        isMissedMore: (missed?.count ?? 0) >= MAX_MISSED,
        replay,
      },
      text: formatFields([
        ['endpoint', reference],
        ['status', endpoint.disabled_at === null ? 'active, as before; its failures are forgotten' : 'active'],
        ['was disabled', endpoint.disabled_at && `${toIso(endpoint.disabled_at)}: ${endpoint.disabled_reason ?? ''}`],
        ['due now', hastened === 0 ? null : `${hastened} that waited for their next attempt`],
        ['not planned', replay === null ? null : `${countText(missed?.count ?? 0)} events that happened meanwhile`],
      ]),
      ...(replay === null
        ? {}
        : { next: `what happened meanwhile is sent only if you say so (the feed has it, too):\n  ${replay}` }),
    };
  });
}

function countText(count: number): string {
  return count >= MAX_MISSED ? `more than ${MAX_MISSED}` : String(count);
}

/** Times of the command have the form that it reads. */
function replayCommand({ endpoint, missed }: Enabled): string | null {
  if (missed === null || missed.count === 0) return null;
  return `quittance deliveries replay --endpoint ${encodeId('whe', endpoint.id)} --from ${toIso(missed.from)} --status missing`;
}

export type DisableOptions = { reason?: string; by?: string };

/** Stops attempts to an endpoint. What is undelivered stays, and what happens from now on is not planned for it. */
export async function disableWebhook(terminal: Terminal, reference: string, options: DisableOptions): Promise<Result> {
  const operator = readOperator(options.by, terminal.env);
  const given = readLine('--reason', options.reason ?? '');
  const reason = given === '' ? `by ${operator}` : `${given} (by ${operator})`;
  return withDatabase(terminal, async ({ db }) => {
    const endpoint = await findEndpoint(db, reference);
    if (!(await disableWebhookEndpoint(db, endpoint.id, unixMs(systemClock.now()), reason))) {
      throw new CliError(
        'CONFLICT',
        `${reference} is disabled already${endpoint.disabled_reason === null ? '' : `: ${endpoint.disabled_reason}`}`,
      );
    }
    return {
      data: { endpointId: reference, status: 'disabled', disabledReason: reason },
      text: formatFields([
        ['endpoint', reference],
        ['status', 'disabled'],
        ['reason', reason],
      ]),
      next: `nothing is sent there until "quittance webhook enable ${reference}"; events from now on are not planned for it and stand in the feed`,
    };
  });
}
