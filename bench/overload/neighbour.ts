import type { BenchContext } from '../bench-context.ts';
import { startService } from '../child.ts';
import { createShop, type IngestShop, insertInvoices, planPayments } from '../ingest/shop.ts';

/** Something that can be flooded: an API and a shop of it. */
export type Flooded = { url: string; shop: IngestShop };

const INVOICES = 100;

/**
 * Another service on the same machine, with a database of its own on the same server. A flood of it takes the same processor, the same
 * PostgreSQL and the same disk from the measured service, which has nothing to do with it.
 */
export async function startNeighbour({ postgres, command, onStart }: BenchContext): Promise<Flooded> {
  const shop = await createShop(postgres, 'neighbour', null);
  await insertInvoices(
    shop,
    planPayments(
      shop.accounts,
      Array.from({ length: INVOICES }, (_, index) => index),
    ),
  );
  const service = await startService(command, shop.connection);
  onStart(service);
  return { url: service.url, shop };
}
