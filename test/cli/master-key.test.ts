import { randomBytes, randomUUID } from 'node:crypto';
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { runAndPrint } from '../../src/cli/terminal/add-operations.ts';
import { describeError } from '../../src/cli/terminal/describe-error.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { lockDataDir } from '../../src/core/runtime/instance-lock.ts';
import { createKeyRing, createMasterKey, type KeyRing } from '../../src/core/runtime/key-ring.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { keyFilePath, lockKeyFile, openKeyRing, requireKeyRing } from '../../src/core/runtime/open-key-ring.ts';
import { type Database, openDatabase } from '../../src/core/store/db/database.ts';
import { migrate } from '../../src/core/store/db/migrate.ts';
import { startEmbeddedPostgres } from '../../src/core/store/embedded/embedded.ts';
import { findActiveSecrets } from '../../src/core/store/outbox/webhook-secrets.ts';
import { openEndpointSecrets } from '../../src/core/webhooks/endpoint-secrets.ts';
import { createWebhookSecret } from '../../src/core/webhooks/sign.ts';
import type { LocalOperation } from '../../src/faces/operator/operation.ts';
import { rotateMasterKeyOperation, showMasterKeys } from '../../src/faces/operator/subjects/master-keys.ts';
import { addWebhookEndpoint } from '../../src/faces/operator/subjects/webhooks.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { longTest } from '../support/some-cases.ts';
import { recordTerminal } from '../support/terminal.ts';
import { newDirectory, runProcess } from './run-cli.ts';

const notes: string[] = [];

function terminalWith(env: NodeJS.ProcessEnv) {
  return { ...recordTerminal({ json: true, env }), note: (text: string) => void notes.push(text) };
}

async function run(env: NodeJS.ProcessEnv, operation: LocalOperation) {
  const terminal = terminalWith(env);
  const result = await runAndPrint(terminal, operation, { input: {}, by: undefined });
  terminal.print(result);
  return { data: result?.data, next: String(result?.next), exitCode: terminal.exitCode() };
}

const statusOf = (env: NodeJS.ProcessEnv) => run(env, showMasterKeys as LocalOperation);
const rotate = (env: NodeJS.ProcessEnv) => run(env, rotateMasterKeyOperation as LocalOperation);
const failure = (work: Promise<unknown>) => work.then(() => null, describeError);

let external: TestDatabase;
beforeAll(async () => {
  external = await createTestDatabase();
});
afterAll(() => external.drop());

/** Opens a separate pool for the test. */
function openPool(connection: pg.ClientConfig): Database {
  const { host = '', port = 0, user = '', password, database = '' } = connection;
  const db = openDatabase({
    connection: { host, port, user, password: String(password), database },
    poolSize: 2,
    applicationName: 'test',
    onError: () => undefined,
  });
  onTestFinished(() => db.close());
  return db;
}

async function addEndpoints(db: Database, connection: pg.ClientConfig, ring: KeyRing, count: number) {
  const projectId = randomUUID();
  const client = new pg.Client(connection);
  await client.connect();
  await client.query("insert into projects (id, name, network) values ($1, 'shop', 'devnet')", [projectId]);
  await client.end();
  const endpoints = Array.from({ length: count }, () => ({
    id: randomUUID(),
    secret: createWebhookSecret(randomBytes),
  }));
  const deps = { db, keyRing: ring, now: unixMs(Date.now()), random: randomBytes };
  for (const endpoint of endpoints) {
    await addWebhookEndpoint(deps, { ...endpoint, projectId, url: 'https://shop.example/' });
  }
  return endpoints;
}

async function secretsOf(db: Database, ring: KeyRing, endpoints: readonly { id: string }[]): Promise<string[]> {
  const ids = endpoints.map(({ id }) => id);
  const opened = await openEndpointSecrets(ring, await findActiveSecrets(db, ids, unixMs(Date.now())));
  return opened.map((one) => (one.kind === 'ok' ? one.secret : one.kind)).sort();
}

test('keys of the setting: everything is sealed under the first, the others can be dropped, and nothing else changes', async () => {
  const [older, newer] = [createMasterKey(), createMasterKey()];
  const text = (...keys: { bytes: Buffer }[]) => keys.map(({ bytes }) => bytes.toString('base64')).join();
  const env = (...keys: { bytes: Buffer }[]) => ({
    DATABASE_URL: external.connectionString,
    ...(keys.length === 0 ? {} : { QUITTANCE_MASTER_KEY: text(...keys) }),
  });
  const db = openPool(external.connection);
  const endpoints = await addEndpoints(db, external.owner, createKeyRing([older]), 3);

  expect(await statusOf(env(older, newer))).toMatchObject({
    exitCode: 0,
    data: {
      source: 'QUITTANCE_MASTER_KEY',
      keys: [
        { keyId: older.id, use: 'seals', signing: 3, ended: 0, canBeDropped: false },
        { keyId: newer.id, use: 'opens', signing: 0, ended: 0, canBeDropped: true },
      ],
    },
  });
  expect(await statusOf(env(newer))).toMatchObject({
    exitCode: 1,
    next: expect.stringContaining('to QUITTANCE_MASTER_KEY'),
    data: { keys: [{ keyId: newer.id }, { keyId: older.id, use: 'missing', signing: 3 }] },
  });
  expect(await statusOf(env())).toMatchObject({ exitCode: 1, data: { source: 'none' } });

  // A missing key decrypts nothing: lost secrets are named and left alone.
  expect(await rotate(env(newer))).toMatchObject({ exitCode: 1, data: { resealed: 0, lostEndpoints: { length: 3 } } });
  expect(await failure(rotate(env()))).toMatchObject({ code: 'CONFIG_INVALID', exitCode: 2 });

  const rotated = await rotate(env(newer, older));
  expect(rotated).toMatchObject({
    exitCode: 0,
    data: { keyId: newer.id, isNew: false, resealed: 3, dropped: [], droppable: [older.id], lostEndpoints: [] },
  });
  expect(await rotate(env(newer, older))).toMatchObject({ data: { resealed: 0 } });
  expect(await statusOf(env(newer))).toMatchObject({ exitCode: 0, data: { keys: [{ signing: 3 }] } });
  const expected = endpoints.map(({ secret }) => secret).sort();
  expect(await secretsOf(db, createKeyRing([newer]), endpoints)).toEqual(expected);
  for (const key of [older, newer]) expect(JSON.stringify([rotated, notes])).not.toContain(text(key).slice(0, 40));
});

test('the key file: a rotation beside a running service, cut off after each step and finished', async () => {
  const dataDir = join(newDirectory(), 'data');
  const env = { QUITTANCE_DATA_DIR: dataDir };
  const lock = await lockDataDir(dataDir);
  const postgres = await startEmbeddedPostgres({ dataDir, log: createLogger({ level: 'warn' }), isDurable: false });
  onTestFinished(async () => {
    await postgres.stop();
    await lock.release();
  });
  await migrate(openPool(postgres.owner));
  const db = openPool(postgres.connection);
  const client = new pg.Client(postgres.owner);
  await client.connect();
  onTestFinished(() => client.end());
  const settings = { masterKeys: null, databaseUrl: null, dataDir };
  const path = keyFilePath(dataDir);
  const linesOf = () => readFileSync(path, 'utf8').trimEnd().split('\n');

  // Showing the status creates no key, and there is nothing to rotate.
  expect(await statusOf(env)).toMatchObject({ exitCode: 0, data: { source: 'none', keys: [] } });
  expect(await failure(rotate(env))).toMatchObject({ code: 'NOT_FOUND', exitCode: 3 });
  expect(await openKeyRing(settings, { mayCreate: false })).toBeNull();

  const service = await requireKeyRing(settings);
  const endpoints = await addEndpoints(db, postgres.owner, service, 3);
  const expected = endpoints.map(({ secret }) => secret).sort();
  const [first = ''] = linesOf();

  // Interrupted while encrypting: the file has both keys, and every secret can be decrypted.
  await client.query(
    `create function fail() returns trigger language plpgsql as $$ begin raise exception 'cut off'; end $$;
     create trigger cut before update on webhook_secrets for each row execute function fail()`,
  );
  expect(await failure(rotate(env))).toMatchObject({ message: expect.stringContaining('cut off') });
  const [second = '', ...others] = linesOf();
  expect(others).toEqual([first]);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(await secretsOf(db, service, endpoints)).toEqual(expected);
  await client.query('drop trigger cut on webhook_secrets');

  // The next run finishes it without creating another key.
  expect(await rotate(env)).toMatchObject({ exitCode: 0, data: { isNew: false, resealed: 3, dropped: { length: 1 } } });
  expect(linesOf()).toEqual([second]);
  expect(await secretsOf(db, service, endpoints)).toEqual(expected);

  // Interrupted after everything was encrypted, before the old key was removed.
  writeFileSync(path, `${second}\n${first}\n`);
  expect(await rotate(env)).toMatchObject({ exitCode: 0, data: { isNew: false, resealed: 0, dropped: { length: 1 } } });
  expect(linesOf()).toEqual([second]);

  // Of two concurrent runs, one is refused. An undisturbed run creates one new key.
  const running = await lockKeyFile(dataDir);
  expect(await failure(rotate(env))).toMatchObject({ code: 'CONFLICT', exitCode: 4 });
  await running.release();
  // The second key sealed the audit log entries of the previous rotations, which only the owner may seal again.
  expect(await rotate(env)).toMatchObject({
    data: { isNew: true, resealed: 3, dropped: [], needed: [{ rows: 2 }] },
  });
  expect(linesOf()).toEqual([expect.any(String), second]);
  expect(await secretsOf(db, service, endpoints)).toEqual(expected);
  expect(await statusOf(env)).toMatchObject({
    exitCode: 0,
    data: { source: path, keys: [{ signing: 3 }, { signing: 0, sealsRows: true }] },
  });
  expect(readdirSync(dataDir).filter((name) => name.startsWith('master-key'))).toEqual(['master-key']);

  // If the file is missing, no key is created, and the error says what is missing.
  rmSync(path);
  expect(await failure(rotate(env))).toMatchObject({ code: 'NOT_FOUND' });
  expect(await statusOf(env)).toMatchObject({ exitCode: 1, next: expect.stringContaining('from a backup') });
  expect(readdirSync(dataDir)).not.toContain('master-key');
});

longTest(
  'the key file keeps the former key as long as rows need it, which are sealed anew while no service runs',
  async () => {
    const dataDir = join(newDirectory(), 'data');
    const env = { QUITTANCE_DATA_DIR: dataDir };
    const lock = await lockDataDir(dataDir);
    const postgres = await startEmbeddedPostgres({ dataDir, log: createLogger({ level: 'warn' }), isDurable: false });
    const stop = async () => {
      await postgres.stop();
      await lock.release();
    };
    onTestFinished(stop);
    const owner = openPool(postgres.owner);
    await migrate(owner);
    const made = ['project', 'create', '--name', 'shop', '--network', 'nile', '--json'];
    expect(await runProcess(made, { env })).toMatchObject({ code: 0 });
    const check = () => runProcess(['ledger', 'seal', '--check', '--json'], { env });
    expect(await check()).toMatchObject({ code: 0 });

    const beside = await rotate(env);
    expect(beside).toMatchObject({ data: { isNew: true, rows: 0, dropped: [], needed: [{ rows: 3 }] } });
    expect(beside.next).toContain('stop the service');
    expect(await statusOf(env)).toMatchObject({ data: { keys: [{}, { sealsRows: true, canBeDropped: false }] } });
    expect(await check()).toMatchObject({ code: 0 });
    const refused = await runProcess(['ledger', 'seal', '--yes', '--json'], { env });
    expect(refused).toMatchObject({
      code: 4,
      json: { error: { message: expect.stringContaining('stop the service') } },
    });
    await stop();

    expect(await rotate(env)).toMatchObject({ data: { isNew: false, rows: 3, dropped: { length: 1 }, needed: [] } });
    expect(readFileSync(keyFilePath(dataDir), 'utf8').trimEnd().split('\n')).toHaveLength(1);
    expect(await check()).toMatchObject({ code: 0, json: { good: true } });
  },
);

test('a service with a database elsewhere and no master key is refused at the start, by the command', async () => {
  const env = { DATABASE_URL: 'postgres://u:p@127.0.0.1:1/q', QUITTANCE_NILE_NODES: 'http://127.0.0.1:1' };
  const { code, json } = await runProcess(['start', '--json'], { env });
  expect(code).toBe(2);
  expect(json.error).toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringContaining('QUITTANCE_MASTER_KEY is not set'),
  });
});
