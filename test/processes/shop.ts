import { randomBytes, randomUUID } from 'node:crypto';
import type pg from 'pg';
import { unixMs } from '../../src/core/domain/time.ts';
import { createKeyRing, createMasterKey } from '../../src/core/runtime/key-ring.ts';
import { openDatabase } from '../../src/core/store/db/database.ts';
import type { PostgresConnection } from '../../src/core/store/embedded/connection.ts';
import { addWebhookEndpoint } from '../../src/faces/operator/subjects/webhooks.ts';
import { call, createTestProject, eventually, type TestProject } from '../support/service.ts';

const KEY = createMasterKey();

/** The QUITTANCE_MASTER_KEY of every process that serves these shops. */
export const MASTER_KEY = KEY.bytes.toString('base64');

export type Shop = TestProject & { lifetimeMs: number };

/** Creates two projects that notify one receiver. Invoices of the second expire after five minutes, the minimum. */
export async function openShops(
  connection: PostgresConnection,
  receiver: { url: string; secret: string },
): Promise<Shop[]> {
  const onError = () => undefined;
  const db = openDatabase({ connection, poolSize: 1, applicationName: 'test', onError });
  try {
    const shops: Shop[] = [];
    for (const lifetimeMs of LIFETIMES_MS) {
      const project = await createTestProject(db, { invoiceLifetimeMs: lifetimeMs });
      const deps = { db, keyRing: createKeyRing([KEY]), now: unixMs(Date.now()), random: randomBytes };
      await addWebhookEndpoint(deps, { id: project.id, projectId: project.id, ...receiver });
      shops.push({ ...project, lifetimeMs });
    }
    return shops;
  } finally {
    await db.close();
  }
}

const LIFETIMES_MS = [30 * 60_000, 5 * 60_000];

/** Creates an invoice in each shop and brings its deadline forward to now, like the sandbox. */
export async function hurryInvoices(client: pg.Client, url: string, shops: readonly Shop[]): Promise<void> {
  for (const { apiKey } of shops) {
    const externalId = `hurried-${randomUUID()}`;
    await eventually(
      () =>
        call(`${url}/v1/invoices`, {
          method: 'POST',
          headers: { 'x-api-key': apiKey, 'content-type': 'application/json', 'idempotency-key': externalId },
          body: JSON.stringify({ amount: '700.00', asset: 'USDT', network: 'TRON', externalId }),
        }),
      // A busy service may refuse all requests for a second.
      ({ status }) => status !== 503,
    ).then(({ status }) => {
      if (status >= 300) throw new Error(`an invoice was answered with ${status}`);
    });
    await client.query('update invoices set expires_at = now() where external_id = $1', [externalId]);
  }
}
