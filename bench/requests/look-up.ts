import { randomBytes } from 'node:crypto';
import { encodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import { insertRequests, type LoggedRequest } from '../../src/core/store/access/requests.ts';
import { openDatabase } from '../../src/core/store/db/database.ts';
import type { PostgresConnection } from '../../src/core/store/embedded/connection.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { showRequest } from '../../src/faces/operator/subjects/requests.ts';

const DAYS = 30;
const DAY_MS = 86_400_000;
const TOGETHER = 500;
const LOOK_UPS = 2000;

/** Writes this many requests over 30 days, half of them in batches of 500 and half one at a time, and looks up random ones. */
export async function measureLookUps(connection: PostgresConnection, count: number): Promise<number[]> {
  const onError = (error: Error) => {
    throw error;
  };
  const db = openDatabase({ connection, poolSize: 1, applicationName: 'bench', onError });
  const ids: string[] = [];
  const begin = Date.now() - DAYS * DAY_MS;
  const requestAt = (ms: number): LoggedRequest => {
    const id = encodeId('req', uuidV7(ms, randomBytes(10)));
    if (Math.random() < 0.01) ids.push(id);
    const external_id = `order-${ids.length}`;
    return { id, method: 'POST', route: '/v1/invoices', status: 201, took_ms: 3, external_id };
  };
  try {
    for (let n = 0; n < count; n += 2 * TOGETHER) {
      const second = Math.floor((begin + (n / count) * DAYS * DAY_MS) / 1000) * 1000;
      const together = Array.from({ length: TOGETHER }, (_, at) => requestAt(second + at * 2));
      const alone = Array.from({ length: TOGETHER }, () => requestAt(begin + Math.random() * DAYS * DAY_MS));
      const batches = [together, ...alone.map((request) => [request])].map((requests) => ({
        key: null,
        requests: requests as [LoggedRequest, ...LoggedRequest[]],
      }));
      await insertRequests(db, batches);
    }
    const tookMs: number[] = [];
    for (let n = 0; n < LOOK_UPS; n++) {
      const requestId = ids[Math.floor(Math.random() * ids.length)] ?? '';
      const startedMs = performance.now();
      await showRequest.run({ db }, commandActor('bench'), { requestId });
      tookMs.push(performance.now() - startedMs);
    }
    return tookMs;
  } finally {
    await db.close();
  }
}
