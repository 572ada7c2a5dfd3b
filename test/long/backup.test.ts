import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readMigrations } from '../../src/core/store/db/migrate.ts';
import { createAgeKey, type Protection } from '../../src/faces/operator/backup/create-backup.ts';
import { loadBackup } from '../../src/faces/operator/backup/restore-backup.ts';
import { runCli } from '../cli/run-cli.ts';
import { fillLedger, forgetProofs, PROJECT, uuid } from '../support/full-ledger.ts';
import { TEST_KEY_RING } from '../support/key-ring.ts';
import { backUp, newFolder, newLedger } from '../support/ledger-copies.ts';

/** How many invoices to create; 1,000,000 take some minutes. */
const INVOICES = Number(process.env['BACKUP_INVOICES'] ?? 200_000);
const MAX_GROWTH_BYTES = 150 * 1024 * 1024;

const pair = await createAgeKey('now');
const PROTECTIONS: [string, Protection][] = [
  ['as it is', { masterKey: null, recipients: [] }],
  ['with a MAC and encrypted', { masterKey: TEST_KEY_RING.current(), recipients: [pair.recipient] }],
];

test.each(PROTECTIONS)(
  'a large ledger is backed up %s and restored in memory that does not depend on its size',
  async (name, protection) => {
    const source = await newLedger();
    await source.client.query(`
      insert into projects (id, name, network) values ('${PROJECT}', 'large', 'nile');
      insert into addresses (id, project_id, network, account, address, position)
        values ('${uuid(1)}', '${PROJECT}', 'nile', decode(repeat('01', 20), 'hex'), tron_address(decode(repeat('01', 20), 'hex')), 1);
      insert into invoices (id, project_id, network, address_id, idempotency_key, external_id, requested_micro, payable_micro, checkout_token,
          created_at, expires_at)
        select gen_random_uuid(), '${PROJECT}', 'nile', '${uuid(1)}', gen_random_uuid(), 'order-' || gen_random_uuid(), 25000000, 25000000 + n,
          left(md5(n::text) || n, 22), now(), now() from generate_series(1, ${INVOICES}) n`);
    const path = join(await newFolder(), 'large.backup');
    let peak = 0;
    const before = process.memoryUsage().rss;
    const watching = setInterval(() => {
      peak = Math.max(peak, process.memoryUsage().rss);
    }, 20);
    try {
      const started = performance.now();
      const { bytes } = await backUp(source, path, protection);
      const backedUp = performance.now();
      const target = await newLedger();
      const restoring = performance.now();
      const { rowCounts } = await loadBackup({
        connection: target.owner,
        path,
        takesUnauthenticated: protection.masterKey === null,
        keyRing: TEST_KEY_RING,
        identities: protection.recipients.length === 0 ? [] : [pair.file.split('\n')[2] ?? ''],
        finish: async () => null,
      });
      const seconds = (from: number, to: number) => ((to - from) / 1000).toFixed(1);
      process.stdout.write(
        `${INVOICES} invoices ${name}: backup ${seconds(started, backedUp)} s, ${(bytes / 1e6).toFixed(1)} MB; ` +
          `restore ${seconds(restoring, performance.now())} s; memory grew by ${((peak - before) / 2 ** 20).toFixed(0)} MiB\n`,
      );
      expect(rowCounts['invoices']).toBe(INVOICES);
      expect(peak - before).toBeLessThan(MAX_GROWTH_BYTES);
    } finally {
      clearInterval(watching);
    }
  },
  1_800_000,
);

test('a backup is verified on a machine that has neither the database nor nodes, and says so', async () => {
  const source = await newLedger();
  await fillLedger(source.client, (await readMigrations()).length);
  await forgetProofs(source.client);
  const path = join(await newFolder(), 'a.backup');
  await backUp(source, path);
  const env = { DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none', QUITTANCE_NILE_NODES: 'http://127.0.0.1:1' };
  const verify = ['backup', '--verify', path, '--unauthenticated'];
  expect(await runCli([...verify, '--json'], { env })).toMatchObject({
    code: 0,
    json: {
      authenticity: 'not-authenticated',
      running: { compared: false, reason: expect.stringContaining('nothing listens there') },
      chain: [{ kind: 'not-read', reason: 'no node for this network is configured here' }],
    },
  });
  const { stdout } = await runCli([...verify, '--no-chain'], { env });
  expect(stdout).toMatch(/sums of the file +the same/);
  expect(stdout).toMatch(/chain +not read, as requested/);
});
