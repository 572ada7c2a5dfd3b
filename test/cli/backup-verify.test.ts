import { readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { runSql } from '../contract/sql.ts';
import { TEST_KEY_RING } from '../support/key-ring.ts';
import { createInvoice, payableOf, readInvoice, startTestService, untilStatus } from '../support/service.ts';
import { longTest } from '../support/some-cases.ts';
import { newDirectory, runCli } from './run-cli.ts';

longTest(
  'a backup is verified against itself, the running ledger and the chain, and nothing is left of it',
  async () => {
    const service = await startTestService({ config: { rowMacs: 'require' } });
    onTestFinished(() => service.stop());
    const env = {
      DATABASE_URL: service.connectionString,
      QUITTANCE_DEVNET_NODES: service.devnet.url,
      QUITTANCE_DEVNET_USDT: service.devnet.usdtContract,
      QUITTANCE_MASTER_KEY: TEST_KEY_RING.current().bytes.toString('base64'),
    };
    const file = join(newDirectory(), 'shop.backup');
    const pay = async (invoiceId: string) => {
      const { address, amountMicro } = await payableOf(service, invoiceId);
      await service.payer.transfer({ contract: service.devnet.usdtContract, to: address, amountMicro });
      service.devnet.mineUntilSolid();
      await untilStatus(service, invoiceId, 'PAID');
    };
    const ids: string[] = [];
    for (let i = 0; i < 3; i += 1) ids.push((await createInvoice(service)).body.invoiceId);
    await pay(ids[0] ?? '');
    expect(await runCli(['backup', '--to', file, '--json'], { env })).toMatchObject({ code: 0 });
    await pay(ids[1] ?? '');
    ids.push((await createInvoice(service)).body.invoiceId);
    await pay(ids[3] ?? '');

    const verify = () => runCli(['backup', '--verify', file, '--json'], { env });
    const good = await verify();
    expect(good).toMatchObject({
      code: 0,
      json: {
        ...{
          good: true,
          authenticity: 'authentic',
          differences: [],
          running: { compared: true, losses: [] },
          paidSince: 1,
        },
        chain: [{ kind: 'read', network: 'devnet', compared: { confirmed: 2, ofNewAddresses: 0, differences: [] } }],
      },
    });
    expect((await readInvoice(service, ids[2] ?? '')).status).toBe(200);
    // Finds rows removed from the running ledger, and rows added that the chain doesn't have.
    await runSql(service, 'alter table transfers disable trigger user');
    await runSql(
      service,
      `update transfers set amount_micro = amount_micro + 1, reserved_micro = reserved_micro + 1
    where id = (select id from transfers order by block_number desc limit 1)`,
    );
    await runSql(service, 'alter table invoices disable trigger user');
    await runSql(service, `update invoices set status = 'EXPIRED', paid_transfer_id = null`);
    const altered = await verify();
    expect(altered.json.chain[0].compared.differences.map(({ kind }: { kind: string }) => kind).sort()).toEqual([
      'missing-in-ledger',
      'not-on-chain',
    ]);
    expect(altered.json.running.losses).toMatchObject([{ what: 'invoice', kind: 'PAID', backup: { count: '1' } }]);
    expect(altered.code).toBe(1);

    expect((await readdir(tmpdir())).filter((name) => name.startsWith(`quittance-verify-${process.pid}-`))).toEqual([]);
  },
);
