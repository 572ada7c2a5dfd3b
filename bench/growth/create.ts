import { randomBytes, randomInt, randomUUID } from 'node:crypto';
import type { MicroUsdt } from '../../src/core/domain/money.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { createInvoice } from '../../src/core/payments/create-invoice.ts';
import { pooledRandom } from '../../src/core/runtime/random.ts';
import type { Database } from '../../src/core/store/db/database.ts';
import { MAX_SURCHARGE_MICRO } from '../prices.ts';
import type { GrowthShop } from './shop.ts';

/** The UUIDs of the invoices, and the milliseconds for each: the total time divided by their number. */
export type Creates = { ids: string[]; msEach: number };

/** Creates an invoice for each price, with this many concurrent requests. All of them must succeed. */
export async function createMany(
  db: Database,
  { projectId, keyId, policy }: GrowthShop,
  prices: readonly MicroUsdt[],
  connections: number,
): Promise<Creates> {
  const deps = { db, now: () => unixMs(Date.now()), random: pooledRandom, randomBelow: (n: number) => randomInt(n) };
  const rule = {
    keyId,
    projectId,
    policy,
    maxSurchargeMicro: MAX_SURCHARGE_MICRO,
    network: 'devnet',
    invoiceLifetimeMs: 1_800_000,
  } as const;
  const prefix = randomBytes(8).toString('hex');
  const ids: string[] = [];
  let next = 0;
  const work = async () => {
    for (let index = next++; index < prices.length; index = next++) {
      const requestedMicro = prices[index] as MicroUsdt;
      const order = { idempotencyKey: randomUUID(), externalId: `order-${prefix}-${index}`, requestedMicro };
      const created = await createInvoice(deps, { ...rule, ...order });
      if (created.kind !== 'created') throw new Error(`invoice ${index} of ${prices.length}: ${created.kind}`);
      ids.push(created.invoice.id);
    }
  };
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: connections }, work));
  return { ids, msEach: (performance.now() - startedAt) / prices.length };
}
