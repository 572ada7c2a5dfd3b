import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseAddress } from '@quittance/tron/address';
import { expect, inject, onTestFinished, test } from 'vitest';
import { unlimitedNode } from '../../src/core/domain/node.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { openExternalCheckpoint } from '../../src/core/payments/external-checkpoint.ts';
import { startLogWatch } from '../../src/core/payments/watch-audit-log.ts';
import { examineDecisions } from '../../src/core/payments/watch-guarantees.ts';
import { createKeyRing, createMasterKey, type KeyRing } from '../../src/core/runtime/key-ring.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { openDatabase } from '../../src/core/store/db/database.ts';
import { migrate, readMigrations } from '../../src/core/store/db/migrate.ts';
import { createSeals } from '../../src/core/store/db/seals.ts';
import { advanceSequences, BACKED_UP } from '../../src/core/store/db/tables.ts';
import { startService } from '../../src/server/service.ts';
import { runCli } from '../cli/run-cli.ts';
import { runSql } from '../contract/sql.ts';
import { TEST_KEY_RING } from '../support/key-ring.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import {
  createInvoice,
  eventually,
  payExactly,
  startTestService,
  type TestService,
  untilStatus,
} from '../support/service.ts';
import { someCases } from '../support/some-cases.ts';
import { startFastWatch } from './fast-watch.ts';

/** The alarms that report a changed database. */
const TAMPERING = ['row-changed', 'rows-missing', 'audit-broken', 'alarms-silenced', 'schema-changed', 'key-unknown'];
const DAY_MS = 86_400_000;
const SILENT = createLogger({ level: 'silent' });
const KEY = TEST_KEY_RING.current();
const text = (...keys: { bytes: Buffer }[]) => keys.map(({ bytes }) => bytes.toString('base64')).join();

type Place = Pick<TestDatabase, 'connectionString' | 'ownerString'>;
type Mode = 'ledger' | 'warn' | 'require';

class Ledger {
  service: TestService;
  mode: Mode;
  dataDir: string;
  /** The ledger's current place, and the keys of its processes. */
  place: Place;
  keyRing: KeyRing = TEST_KEY_RING;
  keys = text(KEY);

  constructor(service: TestService, mode: Mode, dataDir: string) {
    this.service = service;
    this.mode = mode;
    this.dataDir = dataDir;
    this.place = service;
  }

  env(place = this.place, keys = this.keys) {
    const { devnet } = this.service;
    return {
      ...{ DATABASE_URL: place.connectionString, DATABASE_OWNER_URL: place.ownerString, QUITTANCE_MASTER_KEY: keys },
      ...{ QUITTANCE_ROW_MACS: this.mode, QUITTANCE_DATA_DIR: this.dataDir, QUITTANCE_METRICS_PORT: 'off' },
      ...{ QUITTANCE_DEVNET_NODES: devnet.url, QUITTANCE_DEVNET_USDT: devnet.usdtContract },
    };
  }

  async cli(...args: string[]) {
    const done = await runCli([...args, '--json'], { env: this.env() });
    expect([args.join(' '), done.code, done.code === 0 ? '' : done.stdout]).toEqual([args.join(' '), 0, '']);
    return done.json;
  }

  /** Starts another process where the ledger is now. */
  async process(aheadMs = 0) {
    const usdt = parseAddress(this.service.devnet.usdtContract);
    if (usdt.kind !== 'ok') throw new Error(usdt.reason);
    const service = await startService({
      config: {
        ...{ host: '127.0.0.1', port: 0, publicUrl: null, databasePoolSize: 5, trustProxy: [] },
        ...{ metrics: null, rowMacs: this.mode, dataDir: this.dataDir, roles: ['api', 'watcher', 'webhooks'] },
        networks: { devnet: { nodes: [unlimitedNode(this.service.devnet.url)], usdt: usdt.account, agreement: 1 } },
        rateLimit: { perSecond: 100_000, burst: 100_000 },
        webhooks: { localTargets: true, retentionDays: 90 },
      },
      ...{ connection: this.place.connectionString, keyRing: this.keyRing, log: SILENT, blockMs: 40 },
      ...{ clock: { now: () => Date.now() + aheadMs }, comparesClocks: true },
    });
    let isStopped = false;
    const stop = async () => {
      if (!isStopped) await service.stop();
      isStopped = true;
    };
    onTestFinished(stop);
    return { ...service, stop };
  }

  /** Returns the test's service, but for another process. */
  at({ url }: { url: string | null }): TestService {
    return Object.create(this.service, { url: { value: url } });
  }

  /** Makes a payment through a process other than the first one. */
  async serve(process: { url: string | null }): Promise<void> {
    const there = this.at(process);
    const { status, body } = await createInvoice(there);
    expect([status, body]).toMatchObject([201, {}]);
    await payExactly(there, body.invoiceId);
    this.service.devnet.mineUntilSolid();
    await untilStatus(there, body.invoiceId, 'PAID');
  }

  /** Runs all watches twice over everything, and the commands that check the same. */
  async expectUntouched(aheadMs = 0): Promise<void> {
    const { connectionString } = this.place;
    const mark = await openExternalCheckpoint(this.dataDir, 'inventory-head-devnet.json');
    const watch = startFastWatch({ connectionString }, () => 600_000 + aheadMs, { mark, keyRing: this.keyRing });
    const seals = createSeals({ mode: this.mode, onProblem: () => undefined }, async () => this.keyRing);
    const db = openDatabase({
      ...{ connection: connectionString, poolSize: 2, applicationName: 'watch', onError: () => undefined, seals },
    });
    let looks = 0;
    const logWatch = startLogWatch({
      ...{ db, seals, network: 'devnet', isLeader: () => true, log: SILENT },
      headMark: await openExternalCheckpoint(this.dataDir, 'audit-head.json'),
      // Each check reads the whole log.
      now: () => {
        looks += 1;
        return unixMs(Date.now() + aheadMs + looks * 60_000);
      },
    });
    try {
      await watch.lookAgain();
      await eventually(
        async () => looks,
        (count) => count > 2,
      );
      await watch.lookAgain();
    } finally {
      await Promise.all([watch.stop(), logWatch.stop()]);
      await db.close();
    }
    const raised = await runSql(this.place, 'select kind, subject, detail from alarms where kind = any($1)', [
      TAMPERING,
    ]);
    expect(raised.map(({ kind, subject, detail }) => `${kind} ${subject}: ${detail}`)).toEqual([]);
    expect(await this.cli('ledger', 'seal', '--check')).toMatchObject({ good: true });
    expect(await this.cli('audit', 'verify')).toMatchObject({ good: true });
  }
}

/** Creates a ledger in use: with paid, open and expired orders, and operators' actions. */
async function openLedger(mode: Mode): Promise<Ledger> {
  const dataDir = await mkdtemp(join(tmpdir(), 'quittance-lifecycle-'));
  await chmod(dataDir, 0o711);
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
  const service = await startTestService({ config: { rowMacs: mode, dataDir }, addressCount: 2 });
  onTestFinished(() => service.stop());
  const ledger = new Ledger(service, mode, dataDir);
  await ledger.serve(service);
  await createInvoice(service);
  const { projectId, addresses } = service.project;
  const key = await ledger.cli('key', 'create', '--project', projectId, '--name', 'second');
  await ledger.cli('key', 'revoke', key.keyId);
  await ledger.cli('address', 'retire', addresses[1] ?? '');
  await ledger.cli('project', 'update', projectId, '--name', 'Renamed');
  await service.stopService();
  await ledger.expectUntouched();
  return ledger;
}

async function newPlace(): Promise<TestDatabase> {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  return database;
}

/** Events in a ledger's life. Each begins while no process is running. */
const EVENTS: Record<string, (ledger: Ledger) => Promise<void>> = {
  'a start and a command with another master key': async (ledger) => {
    const before = await runSql(ledger.place, 'select count(*)::int as rows from operator_actions');
    const { keyRing } = ledger;
    ledger.keyRing = createKeyRing([createMasterKey()]);
    await expect(ledger.process()).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      message: expect.stringMatching(
        /did not seal any row of this ledger.*Nothing was written\. Set QUITTANCE_MASTER_KEY/,
      ),
    });
    ledger.keyRing = keyRing;
    const wrong = await runCli(['project', 'update', ledger.service.project.projectId, '--name', 'x', '--json'], {
      env: ledger.env(ledger.place, text(createMasterKey())),
    });
    expect(wrong).toMatchObject({ code: 2, json: { error: { code: 'CONFIG_INVALID' } } });
    expect(await runSql(ledger.place, 'select count(*)::int as rows from operator_actions')).toEqual(before);
    await ledger.serve(await ledger.process());
  },
  'a restore of an earlier backup': (ledger) => restore(ledger, false),
  'a restore over which a service was started': (ledger) => restore(ledger, true),
  'a final backup that moves it': async (ledger) => {
    const file = join(ledger.dataDir, 'final.backup');
    await ledger.cli('backup', '--final', '--to', file);
    ledger.place = await newPlace();
    await ledger.cli('restore', file);
    await ledger.serve(await ledger.process());
  },
  'a clock that is 95 days ahead, and right again': async (ledger) => {
    const ahead = await ledger.process(95 * DAY_MS);
    await createInvoice(ledger.at(ahead));
    await ledger.expectUntouched(95 * DAY_MS);
    await ahead.stop();
    await ledger.serve(await ledger.process());
  },
  'a second process that goes on where the first one stops': async (ledger) => {
    const [first, second] = [await ledger.process(), await ledger.process()];
    await ledger.serve(first);
    await ledger.serve(second);
    await first.stop();
    await ledger.serve(second);
  },
  'a rotation of the master key, beside a process that goes on': async (ledger) => {
    const newer = createMasterKey();
    ledger.keyRing = createKeyRing([newer, KEY]);
    ledger.keys = text(newer, KEY);
    const both = await ledger.process();
    await ledger.serve(both);
    await ledger.cli('master-key', 'rotate');
    await ledger.serve(both);
    await both.stop();
    ledger.keyRing = createKeyRing([newer]);
    ledger.keys = text(newer);
    await ledger.serve(await ledger.process());
  },
  'a promotion of the database server': async (ledger) => {
    // The database refuses to record another server than itself.
    await runSql(
      ledger.place,
      `do $$ declare bounds text := (select pg_get_constraintdef(oid) from pg_constraint where conname = 'ledger_identity_timeline_bounds');
       begin
         set local session_replication_role = 'replica';
         alter table ledger_identity drop constraint ledger_identity_timeline_bounds;
         update ledger_identity set timeline = timeline - 1;
         execute 'alter table ledger_identity add constraint ledger_identity_timeline_bounds ' || bounds;
       end $$`,
    );
    const promoted = await ledger.process();
    expect(await runSql(ledger.place, `select kind from alarms where kind = 'database-promoted'`)).toHaveLength(1);
    await ledger.serve(promoted);
  },
};

/** The first migration that the previous release lacks. */
const SINCE = 'more_seals.sql';
/** Rows that had no seal in the previous release, and need one now. */
const ROWS = `
  insert into outgoing_transfers (network, tx_id, log_index, project_id, address_id, block_number, block_id, block_time, to_address,
    amount_micro, verified, nodes)
  select network, sha256('x'), 0, project_id, address_id, block_number + 1, sha256('y'), now(), from_address, 1, 'proven', '{}' from transfers limit 1;
  update projects set max_unpaid = 50`;

/** Copies a ledger's rows into the schema of the previous release. */
async function asBefore({ place }: Ledger): Promise<TestDatabase> {
  const migrations = await readMigrations();
  const former = await newPlace();
  await runSql(former, 'drop schema public cascade; create schema public');
  const db = openDatabase({ connection: former.owner, poolSize: 1, applicationName: 'test', onError: () => undefined });
  await migrate(db, {
    migrations: migrations.slice(
      0,
      migrations.findIndex(({ name }) => name.endsWith(SINCE)),
    ),
  });
  const mark = `select set_config('session_replication_role', 'replica', false)`;
  for (const table of [...BACKED_UP, 'ledger_identity']) {
    const columns = await runSql(
      former,
      `select attname::text as name from pg_attribute where attrelid = to_regclass($1) and attnum > 0 and not attisdropped and attgenerated = ''`,
      [table],
    );
    const names = columns.map(({ name }) => `"${name}"`).join(', ');
    if (names === '') continue;
    const [found] = await runSql(
      place,
      `select coalesce(json_agg(t), '[]')::text as rows from (select ${names} from only ${table}) t`,
    );
    await runSql(
      former,
      `with replica as materialized (${mark})
       insert into ${table} (${names}) overriding system value
       select ${names} from replica, json_populate_recordset(null::${table}, $1)`,
      [found?.['rows']],
    );
  }
  await advanceSequences(db);
  await db.close();
  await runSql(former, ROWS);
  await runSql(
    former,
    'update ledger_identity set database_oid = (select oid from pg_database where datname = current_database())',
  );
  return former;
}

async function restore(ledger: Ledger, isStarted: boolean): Promise<void> {
  const file = join(ledger.dataDir, 'nightly.backup');
  await ledger.cli('backup', '--to', file);
  // Later events are in the data directory, but not in the backup.
  const process_ = await ledger.process();
  await ledger.serve(process_);
  await ledger.cli('key', 'create', '--project', ledger.service.project.projectId, '--name', 'lost');
  await process_.stop();
  await ledger.expectUntouched();
  ledger.place = await newPlace();
  if (isStarted) await (await ledger.process()).stop();
  await ledger.cli('restore', file);
  const there = await ledger.process();
  await eventually(
    () => runSql(ledger.place, 'select from chain_cursors'),
    ({ length }) => length === 1,
  );
  const key = await ledger.cli('key', 'create', '--project', ledger.service.project.projectId, '--name', 'new');
  expect(key).toMatchObject({ keyId: expect.any(String) });
  expect((await createInvoice(ledger.at(there))).body).toMatchObject({ code: 'AMOUNT_UNAVAILABLE' });
}

test.each(someCases(['warn', 'require'] as const, 2))(
  'with QUITTANCE_ROW_MACS=%s, an upgrade of a ledger of the former release leaves no alarm that says somebody changed the database',
  async (mode) => {
    const ledger = await openLedger('warn');
    ledger.mode = mode;
    ledger.place = await asBefore(ledger);
    await ledger.cli('migrate');
    const upgraded = await ledger.process();
    await ledger.serve(upgraded);
    await examineDecisions(upgraded.db);
    await eventually(
      () =>
        runSql(
          ledger.place,
          `select subject from alarms where kind = 'row-unsealed' and resolved_at is null order by subject`,
        ),
      (alarms) => JSON.stringify(alarms) === '[{"subject":"outgoing_transfers"},{"subject":"projects.limits"}]',
    );
    await ledger.cli('ledger', 'seal', '--yes');
    await ledger.expectUntouched();
  },
);

// The mode doesn't affect what is found, but `npm run test:long` tests it anyway.
const MODES: readonly Mode[] = inject('everyCase') ? ['ledger', 'warn'] : ['ledger'];

test.each(MODES.flatMap((mode) => someCases(Object.keys(EVENTS), 2).map((what) => [mode, what] as const)))(
  'with QUITTANCE_ROW_MACS=%s, %s leaves no alarm that says somebody changed the database',
  async (mode, what) => {
    const ledger = await openLedger(mode);
    await EVENTS[what]?.(ledger);
    await ledger.expectUntouched();
  },
);

test.each([
  ['alone', false, 'did not seal any row of this ledger'],
  ['with every seal', true, "seals-required records that this data directory's ledger requires seals"],
])('whoever takes away the requirement of seals %s stops the next start', async (_, isStripped, says) => {
  const ledger = await openLedger('ledger');
  const columns = await runSql(
    ledger.place,
    `select format('update %s set %I = null', attrelid::regclass, attname) as text from pg_attribute a join pg_class c on c.oid = a.attrelid
     where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and attname ~ '(^|_)mac$' and not attnotnull`,
  );
  await runSql(
    ledger.place,
    [
      'set session_replication_role = replica',
      ...(isStripped
        ? ['delete from ledger_proofs', 'delete from inventory_pages', ...columns.map((each) => each['text'])]
        : []),
      'update ledger_identity set id = gen_random_uuid()',
    ].join('; '),
  );
  await expect(ledger.process()).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringContaining(says),
  });
});
