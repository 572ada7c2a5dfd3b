import { randomBytes } from 'node:crypto';
import { AppError } from '../../domain/errors.ts';
import { newEvent } from '../../domain/event.ts';
import { encodeId } from '../../domain/ids.ts';
import { unixMs } from '../../domain/time.ts';
import { replayDeliveries } from '../../operator/subjects/delivery-replay.ts';
import { systemClock } from '../../runtime/clock.ts';
import { recordEvents } from '../../store/outbox/events.ts';
import { listWebhookEndpoints } from '../../store/outbox/webhook-endpoints.ts';
import type { Sandbox } from '../sandbox/with-sandbox.ts';

/** Records a ping for each endpoint of the demo project that takes pings. Answers the id of the first, `evt_…`. Error: `SANDBOX_REFUSED`. */
export async function recordPings(sandbox: Sandbox): Promise<string> {
  const { db, projectUuid } = sandbox;
  const taking = (await listWebhookEndpoints(db, projectUuid)).filter(
    ({ disabledAt, eventTypes }) => disabledAt === null && (eventTypes?.includes('ping') ?? true),
  );
  const [first, ...others] = taking;
  if (first === undefined) {
    throw new AppError(
      'SANDBOX_REFUSED',
      'no endpoint of the demo project takes pings: add one with "quittance webhook add"',
    );
  }
  const ping = await recordPing(sandbox, first.id);
  for (const { id } of others) await recordPing(sandbox, id);
  return ping;
}

/** Records a ping for one endpoint (a UUID). Answers its id. */
export async function recordPing({ db, projectUuid: projectId }: Sandbox, endpointId: string): Promise<string> {
  const now = unixMs(systemClock.now());
  const data = { endpointId: encodeId('whe', endpointId) };
  const draft = { type: 'ping', projectId, invoiceId: null, transferId: null, sequence: 1, data } as const;
  const ping = newEvent(draft, { timestamp: now, random: randomBytes });
  await db.transaction(async (tx) => {
    await recordEvents(tx, 'devnet', [ping], now);
    await replayDeliveries(tx, { endpointId, eventIds: [ping.id], now });
  });
  return encodeId('evt', ping.id);
}
