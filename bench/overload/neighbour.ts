import type { BenchContext } from '../bench-context.ts';
import { startService } from '../child.ts';
import { createShop, type IngestShop, insertInvoices, planPayments } from '../ingest/shop.ts';

/** A target for floods: an API and one of its shops. */
export type Flooded = { url: string; shop: IngestShop };

const INVOICES = 100;

/**
 * Another service on the same machine, with its own database on the same server. A flood of it uses the processor, the PostgreSQL server
 * and the disk that the measured service needs, although that service receives no flood.
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
