import { randomBytes } from 'node:crypto';
import type { EventType } from '../../src/core/domain/event.ts';
import { encodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import type { Database } from '../../src/core/store/db/database.ts';
import { recordEvents } from '../../src/core/store/outbox/events.ts';

/** Writes one event of each named type to a project, as the service does, and returns their API ids, oldest first. */
export async function addTyped(db: Database, projectId: string, types: readonly EventType[]): Promise<string[]> {
  const events = types.map((type) => {
    const id = uuidV7(Date.now(), randomBytes(10));
    const body = JSON.stringify({ id: encodeId('evt', id), type });
    return { id, projectId, type, invoiceId: null, transferId: null, sequence: 1, body };
  });
  await db.transaction((tx) => recordEvents(tx, 'devnet', events, unixMs(Date.now())));
  return events.map(({ id }) => encodeId('evt', id));
}
