import { randomBytes, randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { loadSandboxSecrets, seedSandbox } from '../../src/cli/sandbox/secrets.ts';
import { encodeId } from '../../src/domain/ids.ts';
import { unixMs } from '../../src/domain/time.ts';
import { keyFilePath, writeKeyFile } from '../../src/runtime/key-file.ts';
import { createKeyRing, createMasterKey, type KeyRing, seal } from '../../src/runtime/key-ring.ts';
import { createLogger } from '../../src/runtime/log.ts';
import { requireKeyRing } from '../../src/runtime/open-key-ring.ts';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { insertWebhookEndpoint } from '../../src/store/webhook-endpoints.ts';
import { countSecretsByKey, endWebhookSecrets, findActiveSecrets } from '../../src/store/webhook-secrets.ts';
import { addWebhookEndpoint } from '../../src/webhooks/add-endpoint.ts';
import { addEndpointSecret, openEndpointSecrets } from '../../src/webhooks/endpoint-secrets.ts';
import { prepareSecrets } from '../../src/webhooks/prepare-secrets.ts';
import { resealSecrets } from '../../src/webhooks/reseal-secrets.ts';
import { createWebhookSecret } from '../../src/webhooks/sign.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { eventually } from './fixture.ts';

const [older, newer] = [createMasterKey(), createMasterKey()];
const OLDER = createKeyRing([older]);
const BOTH = createKeyRing([newer, older]);

let database: TestDatabase;
let client: pg.Client;
let db: Database;
let projectId: string;
let lines: string[];
beforeEach(async () => {
  database = await createTestDatabase();
  client = new pg.Client(database.connection);
  await client.connect();
  const { connection } = database;
  db = openDatabase({ connection, poolSize: 6, applicationName: 'secrets', onError: () => undefined });
  projectId = randomUUID();
  lines = [];
  await client.query("insert into projects (id, name, network) values ($1, 'shop', 'devnet')", [projectId]);
});
afterEach(async () => {
  await db.close();
  await client.end();
  await database.drop();
});

const now = () => unixMs(Date.now());

async function addEndpoint(ring: KeyRing, secret = createWebhookSecret(randomBytes)) {
  const endpoint = { id: randomUUID(), projectId, url: 'https://shop.example/', secret };
  await addWebhookEndpoint({ db, keyRing: ring, now: now(), random: randomBytes }, endpoint);
  return endpoint;
}

/** As the former release left it. */
async function addPlainEndpoint(secret: string) {
  const id = randomUUID();
  await client.query(
    `insert into webhook_endpoints (id, project_id, network, url, secret) values ($1, $2, 'devnet', 'https://a.example/', $3)`,
    [id, projectId, secret],
  );
  return { id, secret };
}

async function open(ring: KeyRing, ...endpoints: { id: string }[]) {
  const ids = endpoints.map(({ id }) => id);
  return openEndpointSecrets(ring, await findActiveSecrets(db, ids, now()));
}

function prepare(keyRing: KeyRing) {
  const log = createLogger({ level: 'trace', destination: { write: (line) => void lines.push(line) } });
  return prepareSecrets({ db, keyRing, log, now, random: randomBytes });
}

function newDirectory(): string {
  const path = mkdtempSync(join(tmpdir(), 'quittance-secrets-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Everything that the database shows, byte strings in hexadecimal. */
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
  // The whole sealed value into another endpoint's row.
  await client.query(
    'update webhook_secrets set sealed = (select sealed from webhook_secrets where endpoint_id = $2) where endpoint_id = $1',
    [one.id, two.id],
  );
  expect(await open(OLDER, one)).toEqual([{ kind: 'damaged' }]);
  // The row itself to another endpoint.
  await client.query('delete from webhook_secrets where endpoint_id = $1', [one.id]);
  await client.query('update webhook_secrets set endpoint_id = $1', [one.id]);
  expect(await open(OLDER, one)).toEqual([{ kind: 'damaged' }]);
  // The right row and endpoint, but sealed as something else.
  await client.query('delete from webhook_secrets');
  await db.transaction((tx) =>
    addEndpointSecret(tx, OLDER, { endpointId: two.id, secret: two.secret, now: now(), random: randomBytes }),
  );
  const [row] = await findActiveSecrets(db, [two.id], now());
  const other = seal(OLDER, Buffer.from(two.secret.slice(6), 'base64'), `webhook_secrets.other:${row?.id}:${two.id}`);
  await client.query('update webhook_secrets set sealed = $1', [other.sealed]);
  expect(await open(OLDER, two)).toEqual([{ kind: 'damaged' }]);
});

test('without its master key a secret does not open, and the start is refused with the key that is missing', async () => {
  const endpoint = await addEndpoint(OLDER);
  const plain = await addPlainEndpoint(createWebhookSecret(randomBytes));
  const stranger = createKeyRing([newer]);
  expect(await open(stranger, endpoint)).toEqual([{ kind: 'unknown-key' }]);
  const refusal = { name: 'AppError', code: 'CONFIG_INVALID' };
  await expect(prepare(stranger)).rejects.toMatchObject({
    ...refusal,
    message: expect.stringMatching(
      `${older.id}, and QUITTANCE_MASTER_KEY has ${newer.id}. Add it to QUITTANCE_MASTER_KEY`,
    ),
  });
  const file = createKeyRing([newer], { kind: 'file', path: '/data/master-key' });
  await expect(prepare(file)).rejects.toThrow(/the file \/data\/master-key has .* from a backup/);
  // The wrong process sealed nothing.
  expect(await open(stranger, plain)).toEqual([]);
  await prepare(BOTH);
  expect(await open(BOTH, endpoint, plain)).toHaveLength(2);
  // What signs nothing any more keeps nobody from starting.
  await endWebhookSecrets(db, endpoint.id, unixMs(Date.now() - 1));
  await endWebhookSecrets(db, plain.id, unixMs(Date.now() - 1));
  await prepare(createKeyRing([createMasterKey()]));
});

test('plain secrets of the former release are sealed once, however many processes start, and still sign', async () => {
  await client.query(
    `insert into webhook_endpoints (id, project_id, network, url, secret)
     select gen_random_uuid(), $1, 'devnet', 'https://a.example/', 'whsec_' || encode(sha256(n::text::bytea), 'base64')
     from generate_series(1, 600) n`,
    [projectId],
  );
  const { rows: before } = await client.query('select id, secret from webhook_endpoints');
  await Promise.all([prepare(OLDER), prepare(OLDER), prepare(OLDER)]);
  const sealed = await findActiveSecrets(
    db,
    before.map(({ id }) => id),
    now(),
  );
  const secrets = new Map(before.map(({ id, secret }) => [id, secret]));
  expect(sealed).toHaveLength(600);
  for (const [index, opened] of (await openEndpointSecrets(OLDER, sealed)).entries()) {
    expect(opened).toEqual({ kind: 'ok', secret: secrets.get(sealed[index]?.endpoint_id) });
  }
  const all = (await readAll()) + lines.join('');
  for (const { secret } of before.slice(0, 20)) expectNoTrace(all, secret);
  expect(lines.join('')).toContain('sealed now');
  lines.length = 0;
  await prepare(OLDER);
  expect(lines).toEqual([]);
});

test('the sandbox of the former release keeps its endpoint and its secret', async () => {
  const dataDir = newDirectory();
  const sandbox = await loadSandboxSecrets(dataDir, Date.now());
  await seedSandbox(db, OLDER, sandbox, 'http://127.0.0.1:1/');
  await client.query('delete from webhook_secrets');
  await client.query('update webhook_endpoints set secret = $1', [sandbox.webhookSecret]);
  await seedSandbox(db, OLDER, await loadSandboxSecrets(dataDir, Date.now()), 'http://127.0.0.1:2/');
  await prepare(OLDER);
  expect(await open(OLDER, { id: sandbox.endpointId })).toEqual([{ kind: 'ok', secret: sandbox.webhookSecret }]);
});

test('a plain secret that is malformed, or was replaced before it could be sealed, is forgotten and said', async () => {
  const [malformed, replaced] = [await addPlainEndpoint('whsec_h0rse'), await addEndpoint(OLDER)];
  await client.query('update webhook_endpoints set secret = $2 where id = $1', [
    replaced.id,
    createWebhookSecret(randomBytes),
  ]);
  await prepare(OLDER);
  const [error, warning] = lines.filter((line) => line.includes('whe_')).sort();
  const said = [error, warning].map((line) => JSON.parse(line ?? '{}'));
  expect(said).toContainEqual(
    expect.objectContaining({
      level: 'error',
      endpoint: encodeId('whe', malformed.id),
      msg: expect.stringContaining('malformed'),
    }),
  );
  expect(said).toContainEqual(expect.objectContaining({ level: 'warn', endpoint: encodeId('whe', replaced.id) }));
  expect(lines.join('')).not.toContain('h0rse');
  expect(await open(OLDER, malformed, replaced)).toEqual([{ kind: 'ok', secret: replaced.secret }]);
  const { rows } = await client.query('select id from webhook_endpoints where secret is not null');
  expect(rows).toEqual([]);
});

test('resealing that is cut off is finished by the next one; secrets stay as they are and no trace is left', async () => {
  const endpoints = [await addEndpoint(OLDER), await addEndpoint(OLDER), await addEndpoint(OLDER)];
  await endWebhookSecrets(db, endpoints[0]?.id ?? '', unixMs(Date.now() - 1));
  await client.query(
    `create function fail() returns trigger language plpgsql as $$ begin raise exception 'cut off'; end $$;
     create trigger cut before update on webhook_secrets for each row when (new.endpoint_id = '${endpoints[2]?.id}')
     execute function fail()`,
  );
  await expect(resealSecrets(db, BOTH, now())).rejects.toThrow('cut off');
  expect(await open(BOTH, ...endpoints)).toHaveLength(2);
  await client.query('drop trigger cut on webhook_secrets');
  expect(await resealSecrets(db, BOTH, now())).toEqual({ resealed: 3, lostEndpoints: [] });
  expect(await resealSecrets(db, BOTH, now())).toEqual({ resealed: 0, lostEndpoints: [] });
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
  const result = await resealSecrets(db, BOTH, now());
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
  const resealing = resealSecrets(db, command, now());
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
  // The running service has not read the file since; it does when it meets the new key, and before it seals.
  expect(service.current()).toEqual(former);
  expect(await open(service, endpoint)).toEqual([{ kind: 'ok', secret: endpoint.secret }]);
  expect(await open(service, late)).toEqual([{ kind: 'ok', secret: late.secret }]);
  await addEndpoint(service);
  expect([...(await countSecretsByKey(db, now())).keys()]).toEqual([newer.id]);
});
