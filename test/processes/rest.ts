import type pg from 'pg';
import type { Devnet } from '../../src/devnet/devnet.ts';
import { eventually } from '../support/service.ts';

/** Waits until every payment that was sent is irreversible and recorded, and every event delivered, by the service's own means alone. */
export async function untilAtRest(options: { client: pg.Client; devnet: Devnet; limitMs: number }): Promise<void> {
  const { client, devnet, limitMs } = options;
  await eventually(devnet.pendingCount, (pending) => pending === 0);
  const target = devnet.head().number;
  await eventually(
    async () => {
      const { rows } = await client.query<{ solid: number; undelivered: number }>(`
        select (select min(solid_number)::int from chain_cursors) as solid,
          (select count(*)::int from deliveries where status <> 'delivered') as undelivered`);
      return { target, ...rows[0] };
    },
    ({ solid = 0, undelivered }) => solid >= target && undelivered === 0,
    limitMs,
  );
}
