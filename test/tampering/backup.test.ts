import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runCli } from '../cli/run-cli.ts';
import { runSql } from '../contract/sql.ts';
import { editRows, putTogether, takeApart } from '../support/forge-backup.ts';
import { TEST_KEY_RING } from '../support/key-ring.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { type Attempt, tryGroup, World } from './world.ts';

const world = new World();
const THIEF = 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH';
let file: string;

/** Runs a command with the service's configuration. */
async function cli(database: { connectionString: string; ownerString: string }, ...args: string[]) {
  const env = {
    ...{
      DATABASE_URL: database.connectionString,
      DATABASE_OWNER_URL: database.ownerString,
      QUITTANCE_ROW_MACS: 'require',
    },
    ...{
      QUITTANCE_MASTER_KEY: TEST_KEY_RING.current().bytes.toString('base64'),
      QUITTANCE_MANIFEST_MODE: 'enforce',
    },
    ...{
      QUITTANCE_ADDRESS_MANIFEST: world.service.manifestPath,
      QUITTANCE_MANIFEST_KEYS: world.service.pinned.keys[0],
    },
  };
  return runCli([...args, '--json'], { env });
}

/**
 * Restores a backup with a thief's address and a matching digest; the second time also without its MAC, as in a release before MACs. Needs
 * no database rights.
 */
const edited: Attempt = async (_as, rights) => {
  const parts = await takeApart(file);
  const [own = ''] = world.service.project.addresses;
  const bare = { magic: Buffer.from('quittance-backup 1\n'), signature: Buffer.alloc(0) };
  const forged = `${file}.forged-${rights}`;
  await putTogether(forged, {
    ...parts,
    body: editRows(parts.body, own, THIEF),
    ...(rights === 'owner' ? bare : {}),
  });
  const target = await createTestDatabase();
  try {
    const { code, json } = await cli(target, 'restore', forged);
    expect(code).toBe(1);
    expect(await runSql(target, 'select from projects')).toEqual([]);
    throw Object.assign(new Error(json.error.message), { code: json.error.code });
  } finally {
    await target.drop();
  }
};

tryGroup(
  world,
  'storage',
  {
    shops: 0,
    prepare: async () => {
      await world.expectWell();
      file = join(world.dataDir, 'old.backup');
      expect(await cli(world.service, 'backup', '--to', file)).toMatchObject({ code: 0 });
    },
  },
  { 48: edited },
);

test('an old backup that nobody edited is restored; the operator is told of it, and its addresses take no order until somebody accepts it', async () => {
  const target = await createTestDatabase();
  try {
    const restored = await cli(target, 'restore', file);
    expect(restored).toMatchObject({ code: 0, json: { authenticity: 'authentic' } });
    expect(
      await runSql(target, `select detail from alarms where kind = 'database-restored' and resolved_at is null`),
    ).toEqual([{ detail: expect.stringMatching(/backup/) }]);
    expect(await runSql(target, 'select from addresses where retired_at is null')).toEqual([]);
    expect(await runSql(target, `select subject from operator_actions where action = 'backup.restored'`)).toHaveLength(
      1,
    );
  } finally {
    await target.drop();
  }
});
