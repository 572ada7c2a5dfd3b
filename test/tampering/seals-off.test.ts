import { expect, test } from 'vitest';
import { runSql } from '../contract/sql.ts';
import { createInvoice, startTestService } from '../support/service.ts';

test('with QUITTANCE_ROW_MACS=off nothing is sealed or examined: a changed row is served as it stands, without an alarm; require refuses it', async () => {
  const config: { rowMacs: 'off' | 'require' } = { rowMacs: 'off' };
  const service = await startTestService({ config });
  try {
    const { status, body } = await createInvoice(service);
    expect(status).toBe(201);
    const seals = 'select bool_or(mac is not null) as sealed from';
    expect(await runSql(service, `${seals} invoices`)).toEqual([{ sealed: false }]);
    await runSql(service, `update projects set name = 'Changed past Quittance'`);
    const page = await fetch(body.checkoutUrl);
    expect([page.status, (await page.text()).includes('Changed past Quittance')]).toEqual([200, true]);
    expect(await runSql(service, `select 1 from alarms where kind = 'row-changed'`)).toEqual([]);

    config.rowMacs = 'require';
    await service.restart();
    expect((await fetch(body.checkoutUrl)).status).toBe(503);
  } finally {
    await service.stop();
  }
});
