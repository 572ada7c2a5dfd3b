import type { Devnet } from '@quittance/devnet';
import type pg from 'pg';
import { eventually } from '../support/service.ts';

/** Waits until every payment is irreversible and recorded, and every event written and delivered, by the service's own means. */
export async function untilAtRest(options: { client: pg.Client; devnet: Devnet; limitMs: number }): Promise<void> {
  const { client, devnet, limitMs } = options;
  await eventually(devnet.pendingCount, (pending) => pending === 0);
  const target = devnet.head().number;
  await eventually(
    async () => {
      const { rows } = await client.query<{ solid: number; untold: number; undelivered: number }>(`
        select (select min(solid_number)::int from chain_cursors) as solid,
          (select count(*)::int from untold_transfers) as untold,
          (select count(*)::int from deliveries where status <> 'delivered') as undelivered`);
      return { target, ...rows[0] };
    },
    ({ solid = 0, untold, undelivered }) => solid >= target && untold === 0 && undelivered === 0,
    limitMs,
  );
}
