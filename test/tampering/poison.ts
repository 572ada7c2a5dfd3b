import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { decodeId, encodeId } from '../../src/core/domain/ids.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { addChannel } from '../../src/faces/operator/subjects/notify.ts';
import { fillLedger } from '../support/full-ledger.ts';
import { addTestEndpoint, TEST_KEY_RING } from '../support/key-ring.ts';
import {
  call,
  createInvoice,
  createTestProject,
  eventually,
  type Json,
  startTestService,
  type TestProject,
  type TestService,
} from '../support/service.ts';

/** `prevented`: the database refuses the write. `alarm`: a channel gets an alarm that names the row. `harmless`: see `HARMLESS`. */
export type Outcome = 'prevented' | 'alarm' | 'harmless';
export type PoisonColumn = { table: string; column: string; type: string };
/** Repeats a request if the server closed an idle connection. */
async function ask<Answered>(question: () => Promise<Answered>): Promise<Answered> {
  return question().catch((error: unknown) => {
    if (error instanceof Error && /other side closed|ECONNRESET/.test(error.message)) return question();
    throw error;
  });
}

/**
 * A project whose rows are changed: an open order and a paid one, an endpoint, and every name by which an alarm may refer to one of its
 * rows.
 */
export type Victim = TestProject & {
  open: string;
  paid: string;
  names: string[];
  payable: { to: string; amountMicro: bigint };
};

/** The longest that an order of another project may take, even if a lease must expire first. */
const OTHER_MS = 60_000;
/** The promise in docs/guides/notifications.md, from the write to the channel. */
export const PROMISED_MS = 60_000;

const TYPES = ['int4', 'int8', 'numeric', 'timestamptz'] as const;

export class PoisonWorld {
  service!: TestService;
  #other!: TestProject;
  #rowMacs: 'warn' | 'require' = 'require';
  #stops: (() => Promise<unknown>)[] = [];
  /** The texts of the channel's messages, and when each arrived. */
  told: { text: string; atMs: number }[] = [];
  runtime!: pg.Client;
  owner!: pg.Client;

  async open(rowMacs: 'warn' | 'require'): Promise<void> {
    this.#rowMacs = rowMacs;
    this.service = await startTestService({ config: { rowMacs } });
    this.#stops.push(() => this.service.stop());
    this.runtime = await this.#connect(this.service.connectionString);
    this.owner = await this.#connect(this.service.ownerString);
    this.#other = await this.#addShop();
    await this.#addChannel();
    await this.#fill();
  }

  async close(): Promise<void> {
    for (const stop of this.#stops.splice(0).reverse()) await stop();
  }

  async #connect(connectionString: string): Promise<pg.Client> {
    const client = new pg.Client({ connectionString });
    client.on('error', () => undefined);
    await client.connect();
    this.#stops.push(() => client.end());
    return client;
  }

  async #addShop(): Promise<TestProject> {
    const shop = await createTestProject(this.service.db);
    const { inboxUrl: url, webhookSecret: secret } = this.service;
    await addTestEndpoint(this.service.db, { projectId: shop.id, url, secret });
    return shop;
  }

  async #addChannel(): Promise<void> {
    const server = createServer(async (request, response) => {
      const text = Buffer.concat(await request.toArray()).toString();
      this.told.push({ text, atMs: performance.now() });
      response.writeHead(200).end();
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    this.#stops.push(async () => {
      server.close();
      server.closeAllConnections();
    });
    const config = {
      masterKeys: TEST_KEY_RING.keys().map(({ bytes }) => bytes.toString('base64')),
      databaseUrl: 'postgres://',
      dataDir: '/nowhere',
    };
    const { db, clock } = this.service;
    const now = () => unixMs(clock.now());
    const deps = { db, now, random: randomBytes, config, note: () => undefined } as never;
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const wanted = addChannel.read({ name: 'ops', isOwnNetwork: true, kind: 'webhook', url } as never, now());
    await addChannel.run(deps, commandActor('anna'), wanted);
  }

  /** Adds rows to every table, on a network that no watcher follows here, so that each column has a row to change. */
  async #fill(): Promise<void> {
    const own = new Set(['leases', 'notify_channels', 'notifications', 'receipt_keys', 'operator_actions']);
    const { rows } = await this.owner.query('select count(*)::int as n from schema_migrations');
    const filling = {
      query: (text: string, values?: unknown[]) => {
        const [, table = ''] = /^insert into (\w+)/.exec(text) ?? [];
        if (own.has(table)) return { rows: [] };
        return this.owner.query(
          text,
          values?.map((value) => (value === 'devnet' ? 'nile' : value)),
        );
      },
    };
    await fillLedger(filling as never, rows[0].n);
  }

  /** Returns the number and time columns that the service's own role may update, according to the catalogue. */
  async columns(): Promise<PoisonColumn[]> {
    const { rows } = await this.owner.query<PoisonColumn>(
      `select g.table_name::text as table, g.column_name::text as column, t.typname::text as type
       from information_schema.role_column_grants g
       join pg_attribute a on a.attrelid = g.table_name::regclass and a.attname = g.column_name join pg_type t on t.oid = a.atttypid
       where g.grantee = 'quittance_runtime' and g.privilege_type = 'UPDATE' and g.table_schema = 'public' and t.typname = any($1)
       order by 1, 2`,
      [TYPES],
    );
    return rows;
  }

  async victim(): Promise<Victim> {
    const shop = await this.#addShop();
    // Nothing answers there, so its deliveries stay pending.
    await addTestEndpoint(this.service.db, {
      ...{ projectId: shop.id, url: 'http://127.0.0.1:9/', secret: this.service.webhookSecret },
    });
    const [open, paid] = [await this.#order(shop), await this.#order(shop)];
    await this.#pay(shop, paid);
    this.service.devnet.mineUntilSolid();
    await this.#untilPaid(shop, paid);
    await eventually(
      () => this.#inboxOf(paid),
      (told) => told.length > 0,
    );
    const uuids = await this.owner.query<{ id: string }>(
      `select id::text from invoices where project_id = $1 union all select id::text from webhook_endpoints where project_id = $1
       union all select id::text from events where project_id = $1 union all select id::text from api_keys where project_id = $1
       union all select id::text from addresses where project_id = $1 union all select id::text from webhook_secrets where project_id = $1`,
      [shop.id],
    );
    const ids = [shop.id, ...uuids.rows.map(({ id }) => id)];
    const prefixes = ['inv', 'prj', 'whe', 'evt', 'key'] as const;
    const names = [...ids, ...ids.flatMap((id) => prefixes.map((prefix) => encodeId(prefix, id))), ...shop.addresses];
    const payable = await this.#payableOf(shop, open);
    return { ...shop, payable, open: decodeId('inv', open) ?? '', paid: decodeId('inv', paid) ?? '', names };
  }

  async #order(shop: TestProject): Promise<string> {
    const answer = await eventually(
      () => ask(() => createInvoice(this.service, { apiKey: shop.apiKey })),
      ({ status }) => status === 201,
      OTHER_MS,
    );
    return answer.body.invoiceId;
  }

  async #read(shop: TestProject, invoiceId: string): Promise<Json> {
    const headers = { 'x-api-key': shop.apiKey };
    return (await ask(() => call(`${this.service.url}/v1/invoices/${invoiceId}?expand=payment`, { headers }))).body;
  }

  async #payableOf(shop: TestProject, invoiceId: string): Promise<Victim['payable']> {
    const { payment } = await this.#read(shop, invoiceId);
    return { to: payment.address, amountMicro: BigInt(String(payment.payableAmount).replace('.', '')) };
  }

  async pay(payable: Victim['payable']): Promise<void> {
    const { payer, devnet } = this.service;
    await payer.transfer({ contract: devnet.usdtContract, ...payable });
  }

  async #pay(shop: TestProject, invoiceId: string): Promise<void> {
    await this.pay(await this.#payableOf(shop, invoiceId));
  }

  async #untilPaid(shop: TestProject, invoiceId: string): Promise<void> {
    await eventually(
      () => this.#read(shop, invoiceId),
      ({ status }) => status === 'PAID',
      OTHER_MS,
    );
  }

  async #inboxOf(invoiceId: string): Promise<Json[]> {
    const { body } = await ask(() => call(`${this.service.inboxUrl}?invoiceId=${invoiceId}`));
    return body.data.filter(({ body: event }: Json) => event?.type === 'invoice.paid');
  }

  /** Expects that an order of an untouched project is created, paid, `PAID` and delivered. */
  async expectOtherGoesOn(victims: readonly Victim[] = []): Promise<void> {
    const invoiceId = await this.#order(this.#other);
    for (const { payable } of victims) await this.pay(payable);
    await this.#pay(this.#other, invoiceId);
    this.service.devnet.mineUntilSolid();
    await this.#untilPaid(this.#other, invoiceId);
    await eventually(
      () => this.#inboxOf(invoiceId),
      (told) => told.length > 0,
      OTHER_MS,
    );
  }

  /** Runs a statement with the service's rights. Returns the database's refusal, or `null`. */
  async refusalOf(text: string, values: unknown[] = [], as = this.runtime): Promise<string | null> {
    return (await this.write(text, values, as)).refusedBy;
  }

  /** `count` is how many rows it changed. */
  async write(
    text: string,
    values: unknown[] = [],
    as = this.runtime,
  ): Promise<{ refusedBy: string | null; count: number | null }> {
    try {
      return { refusedBy: null, count: (await as.query(text, values)).rowCount };
    } catch (error) {
      const { code, constraint, message } = error as { code?: string; constraint?: string; message: string };
      // Any other refusal is a mistake in the statement.
      if (!/^(42501|22003|23...)$/.test(String(code))) throw error;
      return { refusedBy: `${constraint ?? message}`, count: 0 };
    }
  }

  /** Returns after how many milliseconds the channel was notified of one of the names; `null` if not yet. */
  toldAfterMs(names: readonly string[], sinceMs: number): number | null {
    const found = this.told.find(({ text, atMs }) => atMs >= sinceMs && names.some((name) => text.includes(name)));
    return found === undefined ? null : found.atMs - sinceMs;
  }

  /** Whether a table's rows share an open alarm: forged ends of alarms, and with `warn` unsealed rows. */
  async isToldOfTable(table: string): Promise<boolean> {
    const { rows } = await this.owner.query(
      `select from alarms where resolved_at is null and network = 'devnet' and (
         $1 = 'alarms' and kind = 'alarms-silenced'
         or $2 and kind in ('row-changed', 'row-unsealed') and split_part(subject, '.', 1) = $1)`,
      [table, this.#rowMacs === 'warn'],
    );
    return rows.length > 0;
  }

  /** Waits until it was. */
  async untilTold(names: readonly string[], sinceMs: number): Promise<number> {
    const leftMs = Math.max(0, sinceMs + PROMISED_MS - performance.now());
    const told = await eventually(
      () => this.toldAfterMs(names, sinceMs),
      (afterMs) => afterMs !== null,
      leftMs,
    );
    return told ?? PROMISED_MS;
  }
}

/** The extremes of a type as SQL, and a value one step from the row's. */
const VALUES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  int4: { min: '-2147483648', max: '2147483647', one: '1', step: '$ + 1' },
  int8: {
    min: '-9223372036854775808',
    max: '9223372036854775807',
    'before the last': '9223372036854775806',
    one: '1',
    step: '$ + 1',
  },
  numeric: {
    min: '-(10::numeric ^ 79)',
    max: '10::numeric ^ 79',
    large: '10::numeric ^ 78 - 1',
    'no number': `'NaN'`,
    step: '$ + 1',
  },
  timestamptz: {
    min: `'-infinity'`,
    max: `'infinity'`,
    first: `'4713-01-01 00:00Z BC'`,
    last: `'294276-12-31Z'`,
    now: 'now()',
    'in 59 minutes': `now() + interval '59 minutes'`,
    'in an hour': `now() + interval '1 hour'`,
  },
};
const ANOTHER = 'of another row';

/** `sql` is the value, if it's the same for each row. */
export type Case = PoisonColumn & { value: string; sql: string };
/** The result of a case: its refusal, or after how many milliseconds a channel got its alarm; `null` if it got none. */
export type Result = Case & ({ refusedBy: string } | { toldAfterMs: number | null });

/** Returns each column with each value of its type, and with another row's value. */
export function casesOf(columns: readonly PoisonColumn[]): Case[] {
  return columns.flatMap((of) => {
    const own = Object.entries(VALUES[of.type] ?? {}).map(([value, sql]) => ({
      ...of,
      value,
      sql: sql.replace('$', `coalesce(${of.column}, 0)`),
    }));
    return [...own, { ...of, value: ANOTHER, sql: '' }];
  });
}

type Target = { ctid: string; sql: string; names: string[] };

/** Finds the row of a case: the victim's in tables with projects, otherwise the network's or any other. */
async function targetOf(
  world: PoisonWorld,
  { table, column, value, sql }: Case,
  victim: Victim,
): Promise<Target | null> {
  const { owner } = world;
  const { rows: found } = await owner.query(
    'select attname from pg_attribute where attrelid = $1::regclass and attnum > 0',
    [table],
  );
  const has = (name: string) => found.some(({ attname }) => attname === name);
  const isOfVictim = table === 'projects' || table === 'delivery_attempts' || has('project_id');
  const filter =
    table === 'projects'
      ? `t.id = '${victim.id}'`
      : table === 'invoices'
        ? `t.id = '${victim.open}'`
        : table === 'deliveries'
          ? `t.project_id = '${victim.id}' and t.status = 'pending'`
          : table === 'delivery_attempts'
            ? `t.endpoint_id in (select id from webhook_endpoints where project_id = '${victim.id}')`
            : has('project_id')
              ? `t.project_id = '${victim.id}'`
              : has('network')
                ? `t.network = 'devnet'`
                : 'true';
  const select = `select to_jsonb(t) as row, t.ctid::text, t.${column}::text as value from ${table} t`;
  const own = (await owner.query(`${select} where ${filter} order by t.ctid limit 1`)).rows[0];
  const row = own ?? (await owner.query(`${select} order by t.ctid limit 1`)).rows[0];
  if (row === undefined) return null;
  const known = ['id', 'name', 'address_id'].map((name) => row.row[name]).filter((each) => typeof each === 'string');
  const ids = known.length === 0 ? [table] : known;
  const names = own !== undefined && isOfVictim ? victim.names : ids;
  if (value !== ANOTHER) {
    const { rows } = await owner.query(`select from ${table} t where ctid = $1 and t.${column} = ${sql}`, [row.ctid]);
    return rows.length === 1 ? null : { ctid: row.ctid, sql, names };
  }
  const { rows: others } = await owner.query(
    `select t.${column}::text as value from ${table} t where t.${column}::text is distinct from $1 order by t.${column} is null, 1 limit 1`,
    [row.value],
  );
  if (others[0] === undefined) return null;
  return { ctid: row.ctid, sql: others[0].value === null ? 'null' : `'${others[0].value}'`, names };
}

const textOf = ({ table, column }: Case, { sql, ctid }: Target) =>
  `update ${table} set ${column} = ${sql} where ctid = '${ctid}'`;

/**
 * Writes each value to a row of a separate victim, and after each expects that an order of another project is created, paid and notified.
 * Victims are created first, because a row that changes in its first seconds isn't on any list yet. Cases without a row or another value
 * are skipped.
 */
export async function runCases(
  world: PoisonWorld,
  cases: readonly Case[],
  isHarmless: (of: Case) => boolean,
): Promise<Result[]> {
  const results: Result[] = [];
  const open: Case[] = [];
  const probe = await world.victim();
  for (const one of cases) {
    const target = await targetOf(world, one, probe);
    if (target === null) continue;
    await world.runtime.query('begin');
    const refusedBy =
      (await world.refusalOf(textOf(one, target))) ?? (await world.refusalOf('set constraints all immediate'));
    await world.runtime.query('rollback');
    if (refusedBy === null) open.push(one);
    else results.push({ ...one, refusedBy });
  }
  const victims: Victim[] = [];
  while (victims.length < open.length) {
    const some = open.slice(victims.length, victims.length + TOGETHER);
    victims.push(...(await Promise.all(some.map(() => world.victim()))));
  }
  await delay(LISTED_MS);
  const written: { one: Case; names: string[]; sinceMs: number }[] = [];
  for (let place = 0; place < open.length; ) {
    // Rows of victims are written together, all others one by one, because the next write to the same row would undo the previous one.
    const batch: string[] = [];
    const paying: Victim[] = [];
    for (let isAlone = false; place < open.length && batch.length < TOGETHER && !isAlone; place += 1) {
      const [one, victim] = [open[place], victims[place]];
      const target = one === undefined || victim === undefined ? null : await targetOf(world, one, victim);
      if (one === undefined || victim === undefined || target === null) continue;
      isAlone = target.names !== victim.names;
      if (isAlone && batch.length > 0) break;
      const { refusedBy, count } = await world.write(textOf(one, target));
      // The service has changed the row since it was read.
      if (refusedBy === null && count !== 1) {
        place -= 1;
        isAlone = false;
        continue;
      }
      if (refusedBy !== null) {
        results.push({ ...one, refusedBy });
        continue;
      }
      written.push({ one, names: target.names, sinceMs: performance.now() });
      batch.push(`${one.table}.${one.column} = ${one.value} (${target.sql})`);
      paying.push(victim);
    }
    if (batch.length === 0) continue;
    await world.expectOtherGoesOn(paying).catch((error: unknown) => {
      throw new Error(`another project's order stops after ${batch.join(', ')}`, { cause: error });
    });
  }
  for (const { one, names, sinceMs } of written) {
    const waits = isHarmless(one)
      ? Promise.resolve(world.toldAfterMs(names, sinceMs))
      : world.untilTold(names, sinceMs);
    const toldAfterMs = (await waits.catch(() => null)) ?? ((await world.isToldOfTable(one.table)) ? 0 : null);
    results.push({ ...one, toldAfterMs });
  }
  return results;
}

/** How many victims to create and write to at once. */
const TOGETHER = 8;
/** Longer than it takes until a row is listed. */
const LISTED_MS = 15_000;
