import { randomBytes, randomInt, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import type { AccountXpub } from '@quittance/tron/account-xpub';
import { accountToAddress, parseAddress } from '@quittance/tron/address';
import { accountFromPublicKey } from '@quittance/tron/public-key';
import { afterAll, beforeAll, describe, expect, onTestFailed, onTestFinished, test } from 'vitest';
import { uuidV7 } from '../../src/core/domain/ids.ts';
import { microUsdt } from '../../src/core/domain/money.ts';
import { unlimitedNode } from '../../src/core/domain/node.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { createInvoice as createInvoiceIn } from '../../src/core/payments/create-invoice.ts';
import { deriveNextAddresses } from '../../src/core/payments/derive-addresses.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { takeLedger } from '../../src/core/store/db/ledger-identity.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { loadBackup, secureCopy } from '../../src/faces/operator/backup/restore-backup.ts';
import { writeText } from '../../src/faces/operator/command-words.ts';
import { recordedActor } from '../../src/faces/operator/record-actions.ts';
import type { ServiceOptions } from '../../src/server/context.ts';
import { type Service, startService } from '../../src/server/service.ts';
import { runCli } from '../cli/run-cli.ts';
import { runSql } from '../contract/sql.ts';
import { TEST_KEY_RING } from '../support/key-ring.ts';
import { backUp, type LedgerDatabase, newFolder, newLedger } from '../support/ledger-copies.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import {
  type Answer,
  call,
  createTestProject,
  eventually,
  type Json,
  startTestService,
  type TestService,
} from '../support/service.ts';

/** Published in BIP-39's test vectors, without anyone's money. */
const XPUB =
  'xpub6D1AabNHCupeiLM65ZR9UStMhJ1vCpyV4XbZdyhMZBiJXALQtmn9p42VTQckoHVn8WNqS7dqnJokZHAHcHGoaQgmv8D45oNUKx6DZMNZBCd' as AccountXpub;
const SILENT = createLogger({ level: 'silent' });
const now = () => unixMs(Date.now());
const random = (count: number) => randomBytes(count);

function newAddress(): string {
  return accountToAddress(accountFromPublicKey(secp256k1.getPublicKey(secp256k1.utils.randomSecretKey(), false)));
}

/** Returns settings for a service on a test's chain with another database. */
function settings({ devnet }: Pick<TestService, 'devnet'>): ServiceOptions['config'] {
  const usdt = parseAddress(devnet.usdtContract);
  if (usdt.kind !== 'ok') throw new Error(usdt.reason);
  return {
    ...{
      host: '127.0.0.1',
      port: 0,
      publicUrl: null,
      databasePoolSize: 5,
      metrics: { host: '127.0.0.1', port: 0 },
      trustProxy: [],
    },
    roles: ['api', 'watcher', 'webhooks'],
    networks: { devnet: { nodes: [unlimitedNode(devnet.url)], usdt: usdt.account, agreement: 1 } },
    rateLimit: { perSecond: 100_000, burst: 100_000 },
    webhooks: { localTargets: true, retentionDays: 90 },
  };
}

async function startOver(
  service: Pick<TestService, 'devnet'>,
  { connection }: TestDatabase,
  config: Partial<ServiceOptions['config']> = {},
): Promise<Service> {
  const started = await startService({
    config: { ...settings(service), ...config },
    ...{ connection, keyRing: TEST_KEY_RING, log: SILENT, blockMs: 40 },
  });
  let isStopped = false;
  const stop = async () => {
    if (!isStopped) await started.stop();
    isStopped = true;
  };
  onTestFinished(stop);
  return { ...started, stop };
}

async function newDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  return database;
}

type Shop = { url: string | null; apiKey: string };

function create(
  { url, apiKey }: Shop,
  key: string = randomUUID(),
  externalId = `order-${key}`,
  amount = '25.00',
): Promise<Answer> {
  return call(`${url}/v1/invoices`, {
    method: 'POST',
    headers: { 'x-api-key': apiKey, 'idempotency-key': key, 'content-type': 'application/json' },
    body: JSON.stringify({ amount, asset: 'USDT', network: 'TRON', externalId }),
  });
}

async function read({ url, apiKey }: Shop, invoiceId: string): Promise<Answer> {
  return call(`${url}/v1/invoices/${invoiceId}?expand=payment`, { headers: { 'x-api-key': apiKey } });
}

/** Returns the address and amount shown to an invoice's payer, which must never be shown to another. */
async function pairOf(shop: Shop, invoiceId: string): Promise<string> {
  const { payment } = (await read(shop, invoiceId)).body;
  return `${payment.address} ${payment.payableAmount}`;
}

const QUITTANCE_MASTER_KEY = Buffer.alloc(32, 1).toString('base64');

const urlsOf = ({ connectionString, ownerString }: TestService) => ({ connectionString, ownerString });

const cli = (database: Pick<TestDatabase, 'connectionString' | 'ownerString'>, ...args: string[]) =>
  runCli([...args, '--json'], {
    env: { DATABASE_URL: database.connectionString, DATABASE_OWNER_URL: database.ownerString, QUITTANCE_MASTER_KEY },
  });

describe('an old backup that is restored', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startTestService({ addressCount: 2 });
  });
  afterAll(() => service.stop());

  test('hands out no (address, amount) again, loses no money, and says what the operator must do', async () => {
    const { apiKey } = service.project;
    const shop: Shop = { url: service.url, apiKey };
    const kept: Json[] = [];
    for (let i = 0; i < 5; i += 1) kept.push((await create(shop, `kept-${i}`)).body);
    const file = join(await newFolder(), 'nightly.backup');
    const env = { DATABASE_URL: service.connectionString, QUITTANCE_MASTER_KEY };
    expect(await runCli(['backup', '--to', file, '--json'], { env })).toMatchObject({
      code: 0,
      json: { final: false, rowCounts: { invoices: 5 } },
    });

    const lost: Json[] = [];
    for (let i = 0; i < 40; i += 1) lost.push((await create(shop, `lost-${i}`)).body);
    const pairs = new Set<string>();
    for (const { invoiceId } of [...kept, ...lost]) pairs.add(await pairOf(shop, invoiceId));
    expect(pairs.size).toBe(45);
    // Two payments after the backup: one for an invoice that it contains, and one for an invoice that it lacks.
    for (const { invoiceId } of [kept[0], lost[0]]) {
      const { payment } = (await read(shop, invoiceId)).body;
      const amountMicro = BigInt(payment.payableAmount.replace('.', ''));
      await service.payer.transfer({ contract: service.devnet.usdtContract, to: payment.address, amountMicro });
    }
    service.devnet.mineUntilSolid();
    await eventually(
      async () => (await read(shop, lost[0].invoiceId)).body.status,
      (status) => status === 'PAID',
    );
    const [seen] = await runSql(service, 'select max(position)::text as position from events');

    const feedOf = (url: string | null, query = '') =>
      call(`${url}/v1/events${query}`, { headers: { 'x-api-key': apiKey } });
    const lastTold = (await feedOf(service.url)).body.data.at(-1);

    const target = await newDatabase();
    const restored = await cli(target, 'restore', file);
    expect(restored).toMatchObject({ code: 0, json: { barredAddresses: 2, final: false, rowCounts: { invoices: 5 } } });
    const [raised] = await runSql(target, "select detail from alarms where kind = 'database-restored'");
    for (const list of ['user list', 'admin-key list', 'webhook list', 'adapter list']) {
      expect(raised?.['detail']).toContain(`quittance ${list}`);
    }

    const over = await startOver(service, target);
    const there: Shop = { url: over.url, apiKey };
    expect(await create(there)).toMatchObject({ status: 409, body: { code: 'AMOUNT_UNAVAILABLE' } });
    // Requests acknowledged before the backup are repeated permanently; later ones are unknown.
    expect(await create(there, 'kept-1')).toMatchObject({
      status: 201,
      body: { invoiceId: kept[1].invoiceId },
      headers: { 'idempotent-replayed': 'true' },
    });
    expect((await read(there, lost[1].invoiceId)).status).toBe(404);
    await eventually(
      async () => (await read(there, kept[0].invoiceId)).body.status,
      (status) => status === 'PAID',
    );
    const desk = await eventually(
      () => cli(target, 'transfers', 'list', '--kind', 'unmatched'),
      ({ json }) => json.data.length === 1,
    );
    expect(desk.json.data[0].amount).toBe((await pairOf(shop, lost[0].invoiceId)).split(' ')[1]);
    const { alarms } = (await call(`${over.metricsUrl}/readyz`)).body.networks.devnet;
    expect(alarms).toContain('database-restored');

    // The addresses from before stay retired, whatever an operator tries.
    for (const address of service.project.addresses) {
      expect(await cli(target, 'address', 'activate', address)).toMatchObject({
        code: 4,
        json: { error: { code: 'CONFLICT' } },
      });
      expect(await cli(target, 'address', 'add', '--fresh', address)).toMatchObject({ code: 4 });
    }
    const fresh = newAddress();
    expect(await cli(target, 'address', 'add', fresh)).toMatchObject({
      code: 4,
      json: { error: { message: expect.stringContaining('--fresh') } },
    });
    expect((await cli(target, 'address', 'add', '--fresh', '--no-check', fresh)).code).toBe(0);
    for (let i = 0; i < 40; i += 1) {
      const { body, status } = await create(there, `lost-${i}`);
      expect(status).toBe(201);
      // Repeating the order creates another invoice at a new address.
      expect(body.invoiceId).not.toBe(lost[i].invoiceId);
      const pair = await pairOf(there, body.invoiceId);
      expect(pair).toContain(fresh);
      expect(pairs.has(pair)).toBe(false);
      pairs.add(pair);
    }
    // An event id from after the backup is unknown, so a reader starts from the beginning and misses nothing.
    expect(await feedOf(over.url, `?after=${lastTold.id}`)).toMatchObject({ status: 400 });
    const again = await eventually(
      async (): Promise<string[]> => (await feedOf(over.url)).body.data.map(({ type }: Json) => type),
      (types) => types.includes('transfer.unmatched'),
    );
    expect(again).toContain('invoice.paid');
    expect((await feedOf(over.url, '?types=invoice.paid')).body.data).toHaveLength(1);
    const [reported] = await runSql(target, 'select min(position)::text as position from events');
    expect(Number(reported?.['position'])).toBeGreaterThan(Number(seen?.['position']));
    const acknowledged = await runCli(['chain', 'acknowledge', '--alarm', 'database-restored', '--json'], {
      env: {
        DATABASE_URL: target.connectionString,
        DATABASE_OWNER_URL: target.ownerString,
        QUITTANCE_DEVNET_NODES: service.devnet.url,
        QUITTANCE_DEVNET_USDT: service.devnet.usdtContract,
      },
    });
    expect(acknowledged).toMatchObject({ code: 0, json: { closed: 1 } });
  });

  test('is refused while a service runs over the database', async () => {
    const target = await newDatabase();
    const file = join(await newFolder(), 'a.backup');
    await runCli(['backup', '--to', file], { env: { DATABASE_URL: service.connectionString, QUITTANCE_MASTER_KEY } });
    const over = await startOver(service, target, { roles: ['api'] });
    expect(await cli(target, 'restore', file)).toMatchObject({
      code: 4,
      json: { error: { message: expect.stringContaining('services are still using this database') } },
    });
    expect(await cli(target, 'backup', '--final', '--to', `${file}.final`)).toMatchObject({ code: 4 });
    await over.stop();
    // A started service writes something at once, but nothing of value before there is a project.
    expect(await cli(target, 'restore', file)).toMatchObject({ code: 0 });
    expect(await cli(target, 'restore', file)).toMatchObject({
      code: 1,
      json: { error: { code: 'DATABASE_NOT_EMPTY' } },
    });
  });
});

describe('a ledger that moves by a final backup', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startTestService();
  });
  afterAll(() => service.stop());

  test('creates no invoice any more where it was, and goes on with its addresses where it is restored', async () => {
    const { apiKey } = service.project;
    const [source, target] = [urlsOf(service), await newDatabase()];
    const before = await create({ url: service.url, apiKey }, 'before');
    const pair = await pairOf({ url: service.url, apiKey }, before.body.invoiceId);
    const file = join(await newFolder(), 'final.backup');
    expect(await cli(source, 'backup', '--final', '--to', file)).toMatchObject({ code: 4 });
    await service.stopService();
    expect(await cli(source, 'backup', '--final', '--to', file)).toMatchObject({ code: 0, json: { final: true } });
    // The database itself refuses a process of any release that is still running.
    const refusal = await runSql(source, 'insert into invoices select * from invoices limit 0').catch(
      (error: Error & { code: string }) => `${error.code} ${error.message}`,
    );
    expect(refusal).toMatch(/^25006 this ledger was closed by its final backup/);
    await expect(service.restart()).rejects.toMatchObject({ code: 'LEDGER_CLOSED' });
    // It can be repeated if the file was lost.
    expect(await cli(source, 'backup', '--final', '--to', `${file}.again`)).toMatchObject({ code: 0 });

    expect(await cli(target, 'restore', file)).toMatchObject({ code: 0, json: { final: true, barredAddresses: 0 } });
    const there = { url: (await startOver(service, target)).url, apiKey };
    expect((await create(there, 'before')).body.invoiceId).toBe(before.body.invoiceId);
    const after = await create(there, 'after');
    expect(after.status).toBe(201);
    const [address] = pair.split(' ');
    expect(await pairOf(there, after.body.invoiceId)).toContain(address);
    expect(await pairOf(there, after.body.invoiceId)).not.toBe(pair);
  });
});

describe('a database that was copied or migrated around our commands', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startTestService();
    await create({ url: service.url, apiKey: service.project.apiKey }, 'before');
    await service.stopService();
  });
  afterAll(() => service.stop());

  async function copied(): Promise<TestDatabase> {
    const target = await newDatabase();
    const { database } = target.connection;
    const source = new URL(service.connectionString).pathname.slice(1);
    const admin = { ownerString: service.ownerString.replace(source, 'postgres') };
    await runSql(admin, `drop database ${database}`);
    await runSql(admin, `create database ${database} template ${source}`);
    return target;
  }

  test('starts no role until an operator says what it is', async () => {
    const target = await copied();
    for (const role of ['api', 'watcher', 'webhooks'] as const) {
      await expect(startOver(service, target, { roles: [role] })).rejects.toMatchObject({
        code: 'DATABASE_COPIED',
        message: expect.stringMatching(/accept --retire-addresses.*accept --nothing-created-since/),
      });
    }
    expect(await cli(target, 'restore', 'accept')).toMatchObject({ code: 2 });
    expect(await cli(target, 'restore', 'accept', '--retire-addresses')).toMatchObject({
      code: 0,
      json: { barredAddresses: 1, retired: true },
    });
    const there = { url: (await startOver(service, target)).url, apiKey: service.project.apiKey };
    expect(await create(there, 'after')).toMatchObject({ status: 409, body: { code: 'AMOUNT_UNAVAILABLE' } });
  });

  test('leaves no session and no invitation open that may have ended after the copy was made', async () => {
    await runSql(
      service,
      `with ann as (insert into people (id, login, name, role, created_at)
         values (gen_random_uuid(), 'ann', 'Ann', 'owner', now()) returning id),
       invited as (insert into invitations (sha256, person_id, kind, created_at, expires_at)
         select sha256('link'), id, 'reset', now(), now() + interval '15 minutes' from ann)
       insert into sessions (id, sha256, person_id, proof, created_at, seen_at, origin, client_network)
         select gen_random_uuid(), sha256('cookie'), id, 'passkey', now(), now(), 'https://pay.example', '192.0.2.1' from ann`,
    );
    const target = await copied();
    const open = () =>
      runSql(
        target,
        `select (select count(*)::int from sessions where ended_at is null) as sessions,
           (select count(*)::int from invitations where ended_at is null) as invitations`,
      );
    expect(await open()).toEqual([{ sessions: 1, invitations: 1 }]);
    expect(await cli(target, 'restore', 'accept', '--retire-addresses')).toMatchObject({ code: 0 });
    expect(await open()).toEqual([{ sessions: 0, invitations: 0 }]);
  });

  test('is started by no role if a newer release has migrated it', async () => {
    const target = await newDatabase();
    await runSql(target, `insert into schema_migrations (version, name, sha256) values (9999, '9999_later.sql', 'x')`);
    for (const role of ['api', 'watcher', 'webhooks'] as const) {
      await expect(startOver(service, target, { roles: [role] })).rejects.toMatchObject({ code: 'SCHEMA_NEWER' });
    }
  });

  test('goes on as it is where nothing was created since, and the original starts as before', async () => {
    const target = await copied();
    expect(await cli(target, 'restore', 'accept', '--nothing-created-since')).toMatchObject({ code: 0 });
    const there = { url: (await startOver(service, target)).url, apiKey: service.project.apiKey };
    expect((await create(there, 'after')).status).toBe(201);
    expect(await cli(target, 'restore', 'accept', '--nothing-created-since')).toMatchObject({ code: 4 });
    await service.restart();
    await service.stopService();
    const original = urlsOf(service);
    expect(await cli(original, 'restore', 'accept', '--nothing-created-since')).toMatchObject({
      code: 4,
      json: { error: { message: expect.stringContaining('does not look like a copy') } },
    });
  });
});

describe('many restores', () => {
  /** One ledger over time: creating, deriving and backing up in any order, with any backup restored. */
  test('of whatever backup, again and again, never hand out a pair or derive an address twice', async () => {
    const seed = randomInt(2 ** 31);
    onTestFailed(() => console.error(`seed ${seed}`));
    let state = seed;
    const below = (n: number) => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
      return (state >>> 8) % n;
    };
    let ledger: LedgerDatabase = await newLedger();
    await takeLedger(ledger.db, { id: uuidV7(Date.now(), randomBytes(10)), firstIndex: 0 }, 'any');
    const project = await createTestProject(ledger.db, { addressCount: 0 });
    const folder = await newFolder();
    const backups: string[] = [];
    const pairs = new Set<string>();
    const derived = new Set<string>();
    // Hours pass between an operator's actions, or none: one restore may directly follow another.
    let hours = 0;
    const nowThere = () => unixMs(Date.now() + hours * 3_600_000);
    const operating = () => ({ db: ledger.db, actor: recordedActor(commandActor('test')), now: nowThere, random });
    const derive = async () => {
      const wanted = { projectId: project.id, xpub: XPUB, count: 1 + below(3), policy: null };
      let outcome = await deriveNextAddresses(operating(), wanted);
      if (outcome.kind === 'too-soon') {
        hours += 1;
        outcome = await deriveNextAddresses(operating(), wanted);
      }
      if (outcome.kind !== 'derived') throw new Error(outcome.kind);
      for (const { address } of outcome.added) {
        expect(derived.has(address)).toBe(false);
        derived.add(address);
      }
    };
    const sell = async () => {
      const key = randomUUID();
      const outcome = await createInvoiceIn(
        { db: ledger.db, now, random, randomBelow: (n) => below(n) },
        {
          ...{ keyId: project.keyId, projectId: project.id, policy: 'tail', maxSurchargeMicro: 10_000n },
          ...{ network: 'devnet', invoiceLifetimeMs: 1_800_000 },
          ...{ idempotencyKey: key, externalId: key, requestedMicro: microUsdt(25_000_000n) },
        },
      );
      if (outcome.kind === 'amount-unavailable') return derive();
      if (outcome.kind !== 'created') throw new Error(outcome.kind);
      const [row] = await runSql(
        ledger,
        'select a.address, i.payable_micro from invoices i join addresses a on a.id = i.address_id where i.id = $1',
        [outcome.invoice.id],
      );
      const pair = `${row?.['address']} ${row?.['payable_micro']}`;
      expect(pairs.has(pair), pair).toBe(false);
      pairs.add(pair);
    };
    const backUpNow = async () => {
      const path = join(folder, `${backups.length}.backup`);
      await backUp(ledger, path);
      backups.push(path);
    };
    const restoreAny = async () => {
      const path = backups[below(backups.length)] ?? '';
      const next = await newLedger();
      await loadBackup({
        connection: next.owner,
        path,
        takesUnauthenticated: true,
        finish: async (tx, header) => {
          if (header.ledger === null) throw new Error('the backup has no ledger');
          await takeLedger(tx, header.ledger, 'any');
          await secureCopy(
            tx,
            { now: nowThere, random, write: writeText },
            recordedActor(commandActor('test')),
            'a backup',
          );
        },
      });
      ledger = next;
    };
    await backUpNow(); // From before the account key was added.
    for (let restores = 0; restores < 3; restores += 1) {
      const deriving = [below(7), 7 + below(8)];
      for (let step = 0; step < 15; step += 1) await (deriving.includes(step) ? derive() : sell());
      await backUpNow();
      for (let step = 0; step < 4; step += 1) await sell();
      await restoreAny();
      if (below(2) === 0) await restoreAny();
    }
    expect(pairs.size).toBeGreaterThan(40);
    expect(derived.size).toBeGreaterThan(5);
  });
});
