import { expect } from 'vitest';
import { runSql } from '../contract/sql.ts';
import { call, createInvoice, payableOf, untilStatus } from '../support/service.ts';
import type { Figures } from './fuzz.ts';
import type { FuzzedService } from './fuzz-service.ts';

/**
 * Checks everything that must hold after the requests: the books, the counts of failures, and that an invoice can still be created and
 * paid.
 */
export async function expectUnharmed({ service, target }: FuzzedService, { acknowledged }: Figures): Promise<void> {
  const [twice] = await runSql(
    service,
    `select
       (select count(*) from (select from invoices group by address_id, payable_micro having count(*) > 1) a)::int as pairs,
       (select count(*) from (select from invoices group by project_id, idempotency_key having count(*) > 1) k)::int as keys,
       (select count(*) from (select from invoices group by project_id, external_id having count(*) > 1) e)::int as ids,
       (select count(*) from invoices i join addresses a on a.id = i.address_id where a.project_id <> i.project_id)::int as crossed,
       (select count(*) from invoices where project_id <> $1)::int as foreign`,
    [service.project.id],
  );
  expect(twice).toEqual({ pairs: 0, keys: 0, ids: 0, crossed: 0, foreign: 1 });
  for (const path of [...acknowledged].slice(0, 100)) {
    const { status } = await call(service.url + path, { headers: { 'x-api-key': target.names['key'] ?? '' } });
    expect(status, `what was acknowledged is lost: ${path}`).toBe(200);
  }
  const metrics = await (await fetch(`${service.metricsUrl}/metrics`)).text();
  // Includes answers that no client read. Streams requested behind other requests, and clients that have disconnected, may get 503.
  expect(metrics.split('\n').filter((line) => /request.*_count\{.*status="50[^3]"/.test(line))).toEqual([]);
  const { status, body } = await createInvoice(service);
  expect(status).toBe(201);
  const { address, amountMicro } = await payableOf(service, body.invoiceId);
  await service.payer.transfer({ contract: service.devnet.usdtContract, to: address, amountMicro });
  service.devnet.mineUntilSolid();
  await untilStatus(service, body.invoiceId, 'PAID');
}
