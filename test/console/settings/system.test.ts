import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readMigrations } from '../../../src/core/store/db/migrate.ts';
import { recordActions } from '../../../src/faces/operator/record-actions.ts';
import { readConfig } from '../../../src/server/config/config.ts';
import { FILE_VARIABLES, NODE_VARIABLES, SECRET_VARIABLES, VARIABLES } from '../../../src/server/config/settings.ts';
import { newDirectory } from '../../cli/run-cli.ts';
import { ANN, joinByPasskey } from '../../people/desk.ts';
import { openConsole } from '../open-console.ts';
import { cookieOf, sendWithPasskey } from './ask-again.ts';

const SYSTEM = '/settings/system';
const MARK = 'C4n4ry';

/** Every variable that may hold a secret, with a marked secret wherever one could appear. */
const SECRETS: Record<string, string> = {
  DATABASE_URL: `postgres://${MARK}user:${MARK}@db.example:6432/shop?sslmode=verify-full&application_name=${MARK}`,
  DATABASE_OWNER_URL: `postgres://${MARK}@db.example/shop?password=${MARK}&sslmode=verify-full`,
  QUITTANCE_TRON_API_KEY: MARK,
  QUITTANCE_MASTER_KEY: `${MARK}${'A'.repeat(37)}=`,
  QUITTANCE_BACKUP_RECIPIENT: `age1${MARK.toLowerCase()}${'q'.repeat(52)}`,
  QUITTANCE_MAINNET_NODES: `https://api.trongrid.io,https://node.example/${MARK}/v1#operator=ours&key=${MARK}`,
  QUITTANCE_NILE_NODES: `grpcs://nile.example:50051#solidity=grpcs://nile.example:1/&key=${MARK}`,
  QUITTANCE_DEVNET_NODES: `http://127.0.0.1:9090/${MARK}#solidity=http://127.0.0.1:9091/${MARK}`,
};
const OPEN = {
  QUITTANCE_PUBLIC_URL: 'https://pay.example',
  QUITTANCE_DEVNET_USDT: 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t',
};

async function openSystem(env: NodeJS.ProcessEnv) {
  const read = readConfig(env);
  if (read.kind === 'invalid') throw new Error(JSON.stringify(read.errors));
  const desk = await openConsole({ settings: read.config.settings });
  const { token, key } = await joinByPasskey(desk, 'ann');
  const cookie = cookieOf(token);
  const look = () => desk.ask(SYSTEM, { cookie });
  /** Returns a variable and its displayed value as text. */
  const shownOf = async (name: string) => {
    const row = (await look()).text
      .split('<tr role="row">')
      .find((each) => each.includes(`<bdi class="mono">${name}</bdi>`));
    return [...(row ?? '').matchAll(/<td[^>]*>(.*?)<\/td>/g)]
      .map(([, cell = '']) => cell.replace(/<[^>]+>/g, ''))
      .slice(1);
  };
  return { ...desk, cookie, key, look, shownOf };
}

test('no secret of any variable is on the page, whether it was given or stood in a file', async () => {
  const folder = newDirectory();
  const inFiles = [...FILE_VARIABLES].map(([name, variable]) => {
    const file = join(folder, variable);
    writeFileSync(file, SECRETS[variable] ?? '', { mode: 0o600 });
    return [name, file];
  });
  expect(Object.keys(SECRETS).toSorted()).toEqual([...new Set(FILE_VARIABLES.values())].toSorted());
  for (const env of [
    { ...OPEN, ...SECRETS },
    { ...OPEN, ...Object.fromEntries(inFiles) },
  ]) {
    const { look, shownOf } = await openSystem(env);
    const { status, text } = await look();
    expect([status, text.toLowerCase().includes(MARK.toLowerCase())]).toEqual([200, false]);
    expect(await shownOf('DATABASE_URL')).toEqual(['db.example:6432/shop', 'environment']);
    expect(await shownOf('DATABASE_OWNER_URL')).toEqual(['db.example:5432/shop', 'environment']);
    expect(await shownOf('QUITTANCE_MAINNET_NODES')).toEqual([
      'trongrid.io (https://api.trongrid.io), ours (https://node.example)',
      'environment',
    ]);
    for (const name of ['QUITTANCE_MASTER_KEY', 'QUITTANCE_TRON_API_KEY', 'QUITTANCE_BACKUP_RECIPIENT']) {
      expect(await shownOf(name)).toEqual(['set, not shown', 'environment']);
    }
  }
});

test('each variable has its name and what holds now, also where another setting decides it', async () => {
  const { look, shownOf } = await openSystem({
    QUITTANCE_NILE_NODES: 'https://nile.example',
    QUITTANCE_RATE_LIMIT: '7',
    QUITTANCE_TRUST_PROXY: 'loopback,10.0.0.0/8',
  });
  const { text } = await look();
  for (const name of VARIABLES) expect(text).toContain(`<bdi class="mono">${name}</bdi>`);
  expect(await shownOf('QUITTANCE_RATE_LIMIT')).toEqual(['7', 'environment']);
  expect(await shownOf('QUITTANCE_RATE_BURST')).toEqual(['200', 'default']);
  expect(await shownOf('QUITTANCE_TRUST_PROXY')).toEqual(['loopback, 10.0.0.0/8', 'environment']);
  expect(await shownOf('QUITTANCE_METRICS_PORT')).toEqual(['9464', 'default']);
  expect(await shownOf('QUITTANCE_CONSOLE_PORT')).toEqual(['off', 'default']);
  expect(await shownOf('QUITTANCE_WEBHOOK_LOCAL_TARGETS')).toEqual(['deny', 'default']);
  expect(await shownOf('QUITTANCE_AGREEMENT')).toEqual(['nile: 1', 'default']);
  expect(await shownOf('QUITTANCE_DATA_DIR')).toEqual([join(process.cwd(), '.quittance'), 'default']);
  for (const name of [...SECRET_VARIABLES, NODE_VARIABLES.mainnet, 'QUITTANCE_PUBLIC_URL']) {
    expect([name, ...(await shownOf(name))]).toEqual([name, 'not set', 'default']);
  }
});

test('it says which program, Node.js and PostgreSQL run with which schema, by which roles, and since when', async () => {
  const { look, pass, sql } = await openSystem({});
  pass(3 * 3_600_000);
  const { text } = await look();
  const [{ server_version: version }] = await sql('show server_version');
  const migrations = await readMigrations();
  const shown = [
    '0.0.0-test',
    process.versions.node,
    version,
    `${migrations.length} migrations`,
    migrations.at(-1)?.name,
    '3 h ago',
  ];
  for (const each of shown) expect(text).toContain(each);
});

test('the last backup has its age, and whether that very one was examined and found good', async () => {
  const { db, look, pass, deps } = await openSystem({});
  expect((await look()).text).toContain('No backup yet');
  const record = (action: 'backup.created' | 'backup.verified', subject: string, detail: object) =>
    recordActions(db, ANN, deps.now(), [{ projectId: null, action, subject, detail }]);
  await record('backup.created', '2026-09-01T00:00:00.000Z', { file: '/backups/first', isFinal: false });
  await record('backup.verified', '2026-09-01T00:00:00.000Z', { file: '/elsewhere/first', good: true });
  pass(11 * 3_600_000);
  const first = await look();
  for (const shown of ['/backups/first', '11 h ago', 'Verified']) expect(first.text).toContain(shown);
  expect(first.text).not.toContain('not recorded in this database');
  await record('backup.created', '2026-09-03T00:00:00.000Z', { file: `/backups/${'ד'.repeat(100)}<b>`, isFinal: true });
  await record('backup.verified', '2026-09-03T00:00:00.000Z', { file: '/elsewhere/second', good: false });
  const second = await look();
  for (const shown of ['&lt;b&gt;', 'this ledger is closed', 'not recorded in this database'])
    expect(second.text).toContain(shown);
});

test('an owner asks for a backup after proving again who it is, and the page says that it is asked for until it is made', async () => {
  const without = await openSystem({});
  expect((await without.look()).text).not.toContain('Back up now');
  expect((await without.ask(`${SYSTEM}/backup`, { cookie: without.cookie })).status).toBe(409);

  const { db, ask, cookie, look, pass, key, deps, sql } = await openSystem({ QUITTANCE_BACKUP_DIR: newDirectory() });
  pass(3_600_000);
  expect((await look()).text).toContain('<a class="button" href="/settings/system/backup">Back up now</a>');
  const sent = await sendWithPasskey({ ask, cookie }, `${SYSTEM}/backup`, key);
  expect([sent.status, sent.location]).toEqual([303, SYSTEM]);
  const asked = await look();
  expect(asked.text).toContain('A backup was requested at');
  expect(asked.text).not.toContain('Back up now');
  const requests = () => sql("select acted_by as by from operator_actions where action = 'backup.requested'");
  expect(await requests()).toEqual([{ by: 'ann' }]);
  // A request is already pending.
  expect((await sendWithPasskey({ ask, cookie }, `${SYSTEM}/backup`, key)).status).toBe(303);
  expect(await requests()).toHaveLength(1);

  const made = { action: 'backup.created', subject: 'x', detail: { file: '/b/1.backup', isFinal: false } } as const;
  await recordActions(db, ANN, deps.now(), [{ projectId: null, ...made }]);
  const after = (await look()).text;
  expect([after.includes('A backup was requested at'), after.includes('Back up now')]).toEqual([false, true]);
});
