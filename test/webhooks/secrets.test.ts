import { randomBytes, randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { encodeId } from '../../src/core/domain/ids.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { createKeyRing, createMasterKey, encrypt, type KeyRing } from '../../src/core/runtime/key-ring.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { keyFilePath, requireKeyRing, writeKeyFile } from '../../src/core/runtime/open-key-ring.ts';
import type { Database } from '../../src/core/store/db/database.ts';
import { insertWebhookEndpoint } from '../../src/core/store/outbox/webhook-endpoints.ts';
import {
  countSecretsByKey,
  endWebhookSecrets,
  findActiveSecrets,
} from '../../src/core/store/outbox/webhook-secrets.ts';
import { addEndpointSecret, openEndpointSecrets } from '../../src/core/webhooks/endpoint-secrets.ts';
import { createWebhookSecret } from '../../src/core/webhooks/sign.ts';
import { refuseMissingKeys, startSecretWatch } from '../../src/core/webhooks/watch-endpoints.ts';
import { reencryptSecrets } from '../../src/faces/operator/subjects/master-keys.ts';
import { addWebhookEndpoint } from '../../src/faces/operator/subjects/webhooks.ts';
import { readConfig } from '../../src/server/config/config.ts';
import { startService } from '../../src/server/service.ts';
import { databaseOfTest, type TestDatabase } from '../support/postgres.ts';
import { eventually } from './fixture.ts';

const [older, newer] = [createMasterKey(), createMasterKey()];
const OLDER = createKeyRing([older]);
const BOTH = createKeyRing([newer, older]);

const read = readConfig({ QUITTANCE_METRICS_PORT: 'off' });
if (read.kind !== 'ok') throw new Error('the defaults are a configuration');
const WEBHOOKS_ALONE = { config: { ...read.config, roles: ['webhooks'] as const } };

let database: TestDatabase;
let client: pg.Client;
let db: Database;
let projectId: string;
beforeEach(async () => {
  ({ database, db, client } = await databaseOfTest(6));
  projectId = randomUUID();
  await client.query("insert into projects (id, name, network) values ($1, 'shop', 'devnet')", [projectId]);
  // A plain statement couldn't change encrypted secrets as these tests do.
  await client.query('alter table webhook_secrets disable trigger user');
});

/** A service refuses to start while guards are disabled. */
const GUARDED = 'alter table webhook_secrets enable trigger user';

const now = () => unixMs(Date.now());

async function addEndpoint(ring: KeyRing, secret = createWebhookSecret(randomBytes)) {
  const endpoint = { id: randomUUID(), projectId, url: 'https://shop.example/', secret };
  await addWebhookEndpoint({ db, keyRing: ring, now: now(), random: randomBytes }, endpoint);
  return endpoint;
}

async function open(ring: KeyRing, ...endpoints: { id: string }[]) {
  const ids = endpoints.map(({ id }) => id);
  return openEndpointSecrets(ring, await findActiveSecrets(db, ids, now()));
}

function prepare(keyRing: KeyRing) {
  return refuseMissingKeys({ db, keyRing }, now());
}

function newDirectory(): string {
  const path = mkdtempSync(join(tmpdir(), 'quittance-secrets-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Returns everything that the database contains, with byte strings in hexadecimal. */
async function readAll(): Promise<string> {
  const { rows } = await client.query("select tablename as name from pg_tables where schemaname = 'public'");
  const found: string[] = [];
  for (const { name } of rows) {
    const table = await client.query(`select to_jsonb(t)::text as row from ${pg.escapeIdentifier(name)} t`);
    found.push(...table.rows.map(({ row }) => row));
  }
  return found.join('\n');
}

function expectNoTrace(text: string, secret: string): void {
  const bytes = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const forms = [
    bytes.toString('base64').slice(0, -2),
    bytes.toString('base64url').slice(0, -2),
    bytes.toString('hex'),
  ];
  const encoded = [Buffer.from(secret).toString('base64').slice(0, -4), Buffer.from(secret).toString('hex')];
  for (const form of [...forms, ...encoded]) expect(text.toLowerCase()).not.toContain(form.toLowerCase());
}

test('a sealed secret that is moved to another row or endpoint, or sealed for another column, does not open', async () => {
  const [one, two] = [await addEndpoint(OLDER), await addEndpoint(OLDER)];
  expect(await open(OLDER, one)).toEqual([{ kind: 'ok', secret: one.secret }]);
  // Moves the whole encrypted value into another endpoint's row.
  await client.query(
    'update webhook_secrets set sealed = (select sealed from webhook_secrets where endpoint_id = $2) where endpoint_id = $1',
    [one.id, two.id],
  );
  expect(await open(OLDER, one)).toEqual([{ kind: 'damaged' }]);
  // Moves the row itself to another endpoint.
  await client.query('delete from webhook_secrets where endpoint_id = $1', [one.id]);
  await client.query('update webhook_secrets set endpoint_id = $1', [one.id]);
  expect(await open(OLDER, one)).toEqual([{ kind: 'damaged' }]);
  // The right row and endpoint, but encrypted for another purpose.
  await client.query('delete from webhook_secrets');
  await db.transaction((tx) =>
    addEndpointSecret(tx, OLDER, { endpointId: two.id, secret: two.secret, now: now(), random: randomBytes }),
  );
  const [row] = await findActiveSecrets(db, [two.id], now());
  const other = encrypt(
    OLDER,
    Buffer.from(two.secret.slice(6), 'base64'),
    `webhook_secrets.other:${row?.id}:${two.id}`,
  );
  await client.query('update webhook_secrets set sealed = $1', [other.sealed]);
  expect(await open(OLDER, two)).toEqual([{ kind: 'damaged' }]);
});

test('without its master key a secret does not open, and the start is refused with the key that is missing', async () => {
  const endpoint = await addEndpoint(OLDER);
  const stranger = createKeyRing([newer]);
  expect(await open(stranger, endpoint)).toEqual([{ kind: 'unknown-key' }]);
  const refusal = { name: 'AppError', code: 'CONFIG_INVALID' };
  await expect(prepare(stranger)).rejects.toMatchObject({
    ...refusal,
    message: expect.stringMatching(
      `${older.id} is missing, and QUITTANCE_MASTER_KEY has ${newer.id}. Add the missing key to QUITTANCE_MASTER_KEY`,
    ),
  });
  const file = createKeyRing([newer], { kind: 'file', path: '/data/master-key' });
  await expect(prepare(file)).rejects.toThrow(/the file \/data\/master-key has .* from a backup/);
  await prepare(BOTH);
  // A secret that no longer signs doesn't prevent a start.
  await endWebhookSecrets(db, endpoint.id, unixMs(Date.now() - 1));
  await prepare(createKeyRing([createMasterKey()]));
});

test('a secret that somebody plants as plain text is refused by the database, and no start takes one for ours', async () => {
  const endpoint = await addEndpoint(OLDER);
  await client.query('delete from webhook_secrets');
  await client.query(GUARDED);
  const planted = createWebhookSecret(randomBytes);
  const update = () => client.query('update webhook_endpoints set secret = $1', [planted]);
  await expect(update()).rejects.toThrow(/^secret of webhook_endpoints \S+ is never changed/);
  const insert = `insert into webhook_endpoints (id, project_id, network, url, secret)
    select gen_random_uuid(), project_id, network, url, $1 from webhook_endpoints`;
  const constraint = 'webhook_endpoints_no_plain_secret';
  await expect(client.query(insert, [planted])).rejects.toMatchObject({ constraint });
  // Not even if the tables' owner removed both.
  await client.query(
    `alter table webhook_endpoints disable trigger user; alter table webhook_endpoints drop constraint ${constraint}`,
  );
  await update();
  await client.query('alter table webhook_endpoints enable trigger user');
  const { connection } = database;
  const log = createLogger({ level: 'silent' });
  await expect(startService({ ...WEBHOOKS_ALONE, connection, keyRing: OLDER, log })).rejects.toMatchObject({
    code: 'SCHEMA_CHANGED',
    message: expect.stringContaining(`constraint webhook_endpoints.${constraint} is missing`),
  });
  expect(await open(OLDER, endpoint)).toEqual([]);
});

test('resealing that is cut off is finished by the next one; secrets stay as they are and no trace is left', async () => {
  const endpoints = [await addEndpoint(OLDER), await addEndpoint(OLDER), await addEndpoint(OLDER)];
  await endWebhookSecrets(db, endpoints[0]?.id ?? '', unixMs(Date.now() - 1));
  await client.query(
    `create function fail() returns trigger language plpgsql as $$ begin raise exception 'cut off'; end $$;
     create trigger cut before update on webhook_secrets for each row when (new.endpoint_id = '${endpoints[2]?.id}')
     execute function fail()`,
  );
  await expect(reencryptSecrets(db, BOTH, now())).rejects.toThrow('cut off');
  expect(await open(BOTH, ...endpoints)).toHaveLength(2);
  await client.query('drop trigger cut on webhook_secrets');
  expect(await reencryptSecrets(db, BOTH, now())).toEqual({ resealed: 3, lostEndpoints: [] });
  expect(await reencryptSecrets(db, BOTH, now())).toEqual({ resealed: 0, lostEndpoints: [] });
  expect([...(await countSecretsByKey(db, now()))]).toEqual([[newer.id, { total: 3, signing: 2 }]]);
  const opened = await open(createKeyRing([newer]), ...endpoints);
  expect(new Set(opened)).toEqual(new Set(endpoints.slice(1).map(({ secret }) => ({ kind: 'ok', secret }))));
  const all = await readAll();
  for (const { secret } of endpoints) expectNoTrace(all, secret);
});

test('resealing goes on past what no key opens, leaves it as it is, and names the endpoints that still sign with it', async () => {
  const [lost, damaged, ended, fine] = [
    await addEndpoint(createKeyRing([createMasterKey()])),
    await addEndpoint(OLDER),
    await addEndpoint(createKeyRing([createMasterKey()])),
    await addEndpoint(OLDER),
  ];
  await client.query("update webhook_secrets set sealed = sealed || '\\x00' where endpoint_id = $1", [damaged.id]);
  await endWebhookSecrets(db, ended.id, unixMs(Date.now() - 1));
  const result = await reencryptSecrets(db, BOTH, now());
  expect(result.resealed).toBe(1);
  expect(result.lostEndpoints.sort()).toEqual([lost.id, damaged.id].sort());
  expect(await open(BOTH, fine)).toEqual([{ kind: 'ok', secret: fine.secret }]);
});

test('a secret that is being sealed during a rotation is waited for, and the next one is sealed with the new key', async () => {
  const dataDir = newDirectory();
  const settings = { masterKeys: null, databaseUrl: null, dataDir };
  const [service, command] = [await requireKeyRing(settings), await requireKeyRing(settings)];
  const [former] = service.keys();
  if (former === undefined) throw new Error('a ring has a key');
  const endpoint = await addEndpoint(service);
  const late = { id: randomUUID(), projectId, url: 'https://late.example/', secret: createWebhookSecret(randomBytes) };
  const events = new EventEmitter();
  const [isSealed, mayCommit] = [once(events, 'sealed'), once(events, 'commit')];
  const adding = db.transaction(async (tx) => {
    await insertWebhookEndpoint(tx, late);
    await addEndpointSecret(tx, service, { endpointId: late.id, secret: late.secret, now: now(), random: randomBytes });
    events.emit('sealed');
    await mayCommit;
  });
  await isSealed;
  await writeKeyFile(keyFilePath(dataDir), [newer, former]);
  await command.reload();
  const resealing = reencryptSecrets(db, command, now());
  await eventually(async () => {
    const { rows } = await client.query(
      "select 1 from pg_locks l join pg_database d on d.oid = l.database and d.datname = current_database() where locktype = 'advisory' and not granted",
    );
    expect(rows).toHaveLength(1);
  });
  events.emit('commit');
  await adding;
  expect(await resealing).toEqual({ resealed: 2, lostEndpoints: [] });
  await writeKeyFile(keyFilePath(dataDir), [newer]);
  expect([...(await countSecretsByKey(db, now())).keys()]).toEqual([newer.id]);
  // The running service hasn't read the file since. It does when it encounters the new key, and before it encrypts.
  expect(service.current()).toEqual(former);
  expect(await open(service, endpoint)).toEqual([{ kind: 'ok', secret: endpoint.secret }]);
  expect(await open(service, late)).toEqual([{ kind: 'ok', secret: late.secret }]);
  await addEndpoint(service);
  expect([...(await countSecretsByKey(db, now())).keys()]).toEqual([newer.id]);
});

/** Returns the open alarms about secrets. */
async function alarms(): Promise<{ subject: string; detail: string }[]> {
  const { rows } = await client.query(
    `select subject, detail from alarms where kind = 'secret-damaged' and resolved_at is null order by subject`,
  );
  return rows;
}

const silent = createLogger({ level: 'silent' });

/** Runs a service that sends webhooks until the alarms are as expected. */
async function serve(keyRing: KeyRing, judge: () => Promise<void>): Promise<void> {
  await client.query(GUARDED);
  const service = await startService({ ...WEBHOOKS_ALONE, connection: database.connection, keyRing, log: silent });
  try {
    await eventually(judge);
  } finally {
    await service.stop();
  }
}

test('sealed secrets that were moved are an alarm for each endpoint, which is over when they open again', async () => {
  const [one, two, fine] = [await addEndpoint(OLDER), await addEndpoint(OLDER), await addEndpoint(OLDER)];
  const swap = `update webhook_secrets s set sealed = o.sealed from webhook_secrets o
    where s.endpoint_id = any($1) and o.endpoint_id = any($1) and o.endpoint_id <> s.endpoint_id`;
  await client.query(swap, [[one.id, two.id]]);
  const subjects = [one, two].map(({ id }) => encodeId('whe', id)).sort();
  await serve(OLDER, async () => expect((await alarms()).map(({ subject }) => subject)).toEqual(subjects));
  const [first] = await alarms();
  expect(first?.detail).toContain(`${subjects[0]} of ${encodeId('prj', projectId)} cannot be decrypted`);
  expect(first?.detail).toContain(`quittance webhook rotate ${subjects[0]}`);
  expect(first?.detail).not.toContain(encodeId('whe', fine.id));
  await client.query(swap, [[one.id, two.id]]);
  await serve(OLDER, async () => expect(await alarms()).toEqual([]));
});

test('a secret that is gone, or whose key is not here, is one alarm until it is mended; of a disabled endpoint it is none', async () => {
  const [gone, foreign, disabled] = [await addEndpoint(OLDER), await addEndpoint(OLDER), await addEndpoint(OLDER)];
  await client.query('delete from webhook_secrets where endpoint_id = any($1)', [[gone.id, disabled.id]]);
  await client.query(`update webhook_secrets set master_key_id = repeat('0', 16) where endpoint_id = $1`, [foreign.id]);
  await client.query(`update webhook_endpoints set disabled_at = now(), disabled_reason = 'x' where id = $1`, [
    disabled.id,
  ]);
  const receipts = { kind: 'ok' as 'ok' | 'damaged', masterKeyId: older.id };
  const watch = startSecretWatch({
    ...{ db, keyRing: OLDER, log: silent, networks: ['devnet'], checkMs: 10 },
    tryReceiptKey: async () => receipts,
  });
  const detailOf = async (subject: string) => (await alarms()).find((alarm) => alarm.subject === subject)?.detail;
  try {
    await eventually(async () => expect(await alarms()).toHaveLength(2));
    expect(await detailOf(encodeId('whe', gone.id))).toContain('is no longer in the database');
    expect(await detailOf(encodeId('whe', foreign.id))).toMatch(/with the master key 0{16}.* --key-is-lost/);
    receipts.kind = 'damaged';
    await eventually(async () => expect(await detailOf('receipts')).toContain('quittance receipt rotate'));
    receipts.kind = 'ok';
    await client.query('update webhook_secrets set master_key_id = $1', [older.id]);
    const deps = { endpointId: gone.id, secret: gone.secret, now: now(), random: randomBytes };
    await db.transaction((tx) => addEndpointSecret(tx, OLDER, deps));
    await eventually(async () => expect(await alarms()).toEqual([]));
  } finally {
    await watch.stop();
  }
  const { rows } = await client.query('select subject, count(*)::int as count from alarms group by 1');
  expect(rows.map(({ count }) => count)).toEqual([1, 1, 1]);
});

test('a process that has the key does not close what another one, which lacks it, goes on to say', async () => {
  const endpoint = await addEndpoint(OLDER);
  let rounds = 0;
  const tryReceiptKey = async () => {
    rounds += 1;
    return null;
  };
  const start = (keyRing: KeyRing) =>
    startSecretWatch({ db, keyRing, log: silent, networks: ['devnet'], checkMs: 10, tryReceiptKey });
  const seen = async () => {
    const { rows } = await client.query(`select resolved_at, seen_count from alarms where kind = 'secret-damaged'`);
    return rows;
  };
  const well = start(OLDER);
  // It has checked once, and found nothing.
  await eventually(async () => expect(rounds).toBeGreaterThan(1));
  const lacking = start(createKeyRing([newer]));
  try {
    await eventually(async () => expect((await seen())[0]?.seen_count).toBeGreaterThan(20));
    expect(await seen()).toEqual([expect.objectContaining({ resolved_at: null })]);
  } finally {
    await Promise.all([well.stop(), lacking.stop()]);
  }
  expect((await alarms())[0]?.subject).toBe(encodeId('whe', endpoint.id));
});
