import { randomBytes } from 'node:crypto';
import { eventBody } from '../../domain/event.ts';
import { decodeId, encodeId, uuidV7 } from '../../domain/ids.ts';
import { unixMs } from '../../domain/time.ts';
import { systemClock } from '../../runtime/clock.ts';
import type { Database } from '../../store/database.ts';
import { insertEvents } from '../../store/events.ts';

/** Records a ping for every endpoint of a project (`prj_…`) on the local network. Answers its id, `evt_…`. */
export async function recordPing(db: Database, project: string): Promise<string> {
  const projectId = decodeId('prj', project);
  if (projectId === null) throw new Error(`not a project id: ${project}`);
  const now = unixMs(systemClock.now());
  const ping = { id: uuidV7(now, randomBytes(10)), type: 'ping', projectId, sequence: 1 } as const;
  const body = eventBody({ ...ping, timestamp: now, data: {} });
  const event = { ...ping, invoiceId: null, transferId: null, body };
  await db.transaction((tx) => insertEvents(tx, 'devnet', [event], now));
  return encodeId('evt', ping.id);
}
