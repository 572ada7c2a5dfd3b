import { randomBytes } from 'node:crypto';
import { eventBody } from '../../domain/event.ts';
import { encodeId, uuidV7 } from '../../domain/ids.ts';
import { unixMs } from '../../domain/time.ts';
import { systemClock } from '../../runtime/clock.ts';
import { insertEvents } from '../../store/outbox/events.ts';
import type { Sandbox } from '../sandbox/with-sandbox.ts';

/** Records a ping for every endpoint of the demo project. Answers its id, `evt_…`. */
export async function recordPing({ db, projectUuid: projectId }: Sandbox): Promise<string> {
  const now = unixMs(systemClock.now());
  const ping = { id: uuidV7(now, randomBytes(10)), type: 'ping', projectId, sequence: 1 } as const;
  const event = { ...ping, invoiceId: null, transferId: null, body: eventBody({ ...ping, timestamp: now, data: {} }) };
  await db.transaction((tx) => insertEvents(tx, 'devnet', [event], now));
  return encodeId('evt', ping.id);
}
