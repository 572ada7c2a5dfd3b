import { existsSync } from 'node:fs';
import { lstat, rename, symlink, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, inject, test } from 'vitest';
import { createLogger } from '../../src/core/runtime/log.ts';
import { findOpenAlarms } from '../../src/core/store/chain/alarms.ts';
import { withClient } from '../support/postgres-template.ts';
import { call, createInvoice, eventually, startTestService, type TestService } from '../support/service.ts';

let service: TestService;
const lines: string[] = [];
const log = createLogger({ level: 'info', destination: { write: (line: string) => void lines.push(line) } });
beforeEach(async () => {
  lines.length = 0;
  service = await startTestService({ log });
});
afterEach(() => service.stop());

/**
 * Simulates a full disk for the table of invoices: its file links to `/dev/full`, where every write fails as on a full disk. Returns a
 * function that frees the disk. Connections with the file open are closed.
 */
async function fillDisk(): Promise<() => Promise<void>> {
  const server = { ...inject('postgres'), database: new URL(service.ownerString).pathname.slice(1) };
  const path = await withClient(server, async (client) => {
    const { rows } = await client.query(
      "select current_setting('data_directory') as directory, pg_relation_filepath('invoices') as file",
    );
    return join(rows[0].directory, rows[0].file);
  });
  const reconnect = () =>
    withClient(server, (client) =>
      client.query(
        'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
      ),
    );
  expect((await lstat(path)).size).toBe(0);
  await rename(path, `${path}.empty`);
  await symlink('/dev/full', path);
  await reconnect();
  return async () => {
    await unlink(path);
    await rename(`${path}.empty`, path);
    await reconnect();
  };
}

const ready = () => call(`${service.metricsUrl}/readyz`);
const openKinds = async () => (await findOpenAlarms(service.db, 'devnet')).map(({ kind }) => kind);

test.skipIf(!existsSync('/dev/full'))(
  'a full disk is named as what it is, is not ready, and costs one line a minute',
  async () => {
    const makeRoom = await fillDisk();
    // Each closed connection is only noticed when it's used.
    const refused = await eventually(
      () => createInvoice(service),
      ({ body }) => body.detail?.includes('full'),
    );
    expect(refused).toMatchObject({ status: 503, body: { code: 'UNAVAILABLE' } });
    expect(refused.headers['retry-after']).toBe('5');
    expect(refused.body.detail).toBe('The database disk is full. Nothing was changed; retry in a few seconds.');
    const { status, body } = await ready();
    expect(status).toBe(503);
    expect(body).toMatchObject({
      status: 'unavailable',
      reason: expect.stringMatching(/^the database disk is full: until this is fixed, new invoices are refused/),
      troubles: [{ kind: 'database-full' }],
    });
    for (let n = 0; n < 50; n += 1) expect(await createInvoice(service)).toMatchObject({ status: 503 });
    expect(await eventually(openKinds, (kinds) => kinds.includes('database-full'))).toContain('database-full');
    const metrics = await fetch(`${service.metricsUrl}/metrics`);
    expect(await metrics.text()).toContain('quittance_troubles{kind="database-full"} 1');
    const told = lines.filter((line) => line.includes('database disk is full'));
    // One message about the trouble itself, and one about the requests that it affects.
    expect(told).toHaveLength(2);
    expect(told.join('').length).toBeLessThan(1000);

    await makeRoom();
    service.clock.advance(11_000);
    await eventually(ready, (answer) => answer.status === 200);
    await eventually(
      () => createInvoice(service),
      (answer) => answer.status === 201,
    );
    await eventually(openKinds, (kinds) => !kinds.includes('database-full'));
  },
);

test.skipIf(!existsSync('/dev/full'))(
  'where statements are done again, it is not ready until there is room for a file',
  async () => {
    const name = new URL(service.ownerString).pathname.slice(1);
    const limit = (text: string) =>
      withClient(inject('postgres'), (client) => client.query(`alter database ${name} ${text}`));
    const makeRoom = await fillDisk();
    await limit('set temp_file_limit = 0');
    await eventually(
      () => createInvoice(service),
      ({ body }) => body.detail?.includes('full'),
    );
    await makeRoom();
    service.clock.advance(11_000);
    await eventually(ready, ({ status, body }) => status === 503 && /reached a configured limit/.test(body.reason));
    await limit('reset temp_file_limit');
    await withClient({ ...inject('postgres'), database: name }, (client) =>
      client.query(
        'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
      ),
    );
    service.clock.advance(11_000);
    await eventually(ready, ({ status }) => status === 200);
  },
);
