import { randomBytes } from 'node:crypto';
import type { Client } from 'pg';
import { encodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import type { Database } from '../../src/core/store/db/database.ts';
import type { PostgresConnection } from '../../src/core/store/embedded/connection.ts';
import { insertPerson } from '../../src/faces/operator/subjects/people.ts';
import { openSession } from '../../src/faces/operator/subjects/sessions.ts';
import type { BenchContext, BenchResult } from '../bench-context.ts';
import { ask, freePort, startScript, startService } from '../child.ts';
import { onServer } from '../databases.ts';
import { createDatabase, createGrowthShop, type GrowthShop } from '../growth/shop.ts';
import type { LoadJob, LoadResult } from '../load.ts';
import { ADDRESS_COUNT, fillLedger } from '../sizes/fill.ts';
import { newKey } from './new-key.ts';
import { NOWHERE, type Pages, timePages } from './pages.ts';
import { judgeConsole, PHASES, type Phase, showConsole } from './report.ts';

type Plan = { invoices: number; looks: number; rounds: number; seconds: number };
const FULL: Plan = { invoices: 1_000_000, looks: 100, rounds: 12, seconds: 8 };
const QUICK: Plan = { invoices: 20_000, looks: 20, rounds: 1, seconds: 3 };

/** Four people, each of whom opens another page every second. */
const PEOPLE = 4;
const CONNECTIONS = 16;

/**
 * Measures how long the console's pages take with a million invoices, compared with a page that asks the database only for the session.
 * Also measures how much four people who click, and one who exports all invoices, slow down creation. With `invoices`, measures only the
 * pages, with that many invoices. One process has the roles `api` and `console`, as by default.
 */
export async function runConsole(context: BenchContext, invoices: number | null): Promise<BenchResult> {
  const { command, postgres, flags, onProgress, onStart } = context;
  const plan = { ...(flags.quick ? QUICK : FULL), ...(invoices === null ? {} : { invoices, rounds: 0 }) };
  const { db, connection } = await createDatabase(postgres, 'console');
  const shop = await createGrowthShop(db, 'tail', ADDRESS_COUNT);
  const apiKey = await newKey(db, shop);
  const cookie = `quittance=${await signIn(db)}`;
  await onServer(connection, (client) => fillLedger(client, shop, plan.invoices, onProgress));
  await onServer(connection, (client) => leaveUnmatched(client, shop));
  await onServer(connection, (client) => client.query(COMPARE));
  const samples = await findSamples(connection, shop);
  await db.close();
  const port = await freePort();
  const service = await startService(command, connection, {
    env: { QUITTANCE_ROLES: 'api,console', QUITTANCE_CONSOLE_PORT: String(port) },
  });
  onStart(service);
  const pages = { url: `http://localhost:${port}`, api: service.url, cookie };
  onProgress('looking at pages');
  const looked = await timePages(pages, samples, plan.looks);
  const [load] = await startScript('./load.ts', {});
  onStart(load);
  const job: LoadJob = {
    ...{ kind: 'create', url: `${service.url}/v1/invoices`, connections: CONNECTIONS, seconds: plan.seconds },
    headers: { 'x-api-key': apiKey },
  };
  await ask(load, job);
  const phases: Phase[] = [];
  for (let round = 1; round <= plan.rounds; round += 1) {
    for (const [kind, { looks, exports }] of Object.entries(PHASES)) {
      onProgress(`creating, ${kind}, round ${round} of ${plan.rounds}`);
      const until = performance.now() + plan.seconds * 1000;
      const others = Promise.all([looks ? click(pages, samples, until) : 0, exports ? download(pages, until) : 0]);
      const { requests, seconds, p99, unexpected } = await ask<LoadResult>(load, job);
      if (unexpected > 0) throw new Error(`${unexpected} creations failed`);
      const [clicks, bytes] = await others;
      phases.push({ kind, perSecond: requests / seconds, p99, clicks, bytes });
    }
  }
  return {
    markdown: showConsole(plan.invoices, looked, phases),
    targets: judgeConsole(looked, phases),
    record: { plan, looked, phases },
  };
}

/** Creates a session of an owner, as signing in does. */
async function signIn(db: Database): Promise<string> {
  const now = () => unixMs(Date.now());
  const person = {
    id: uuidV7(now(), randomBytes(10)),
    login: 'bench',
    name: 'bench',
    role: 'owner',
    projects: null,
  } as const;
  const from = { origin: '127.0.0.1', network: '127.0.0.1', userAgent: null, requestId: null };
  return db.transaction(async (tx) => {
    await insertPerson(tx, person, now());
    const { token } = await openSession(tx, { db: tx, now, random: randomBytes }, { person, from, proof: 'totp' });
    return token;
  });
}

type Sample = Record<
  'invoice' | 'payable' | 'old' | 'recent' | 'endpoint' | 'event' | 'txid' | 'address' | 'waiting',
  string
>;

/** Returns the paths of one item of each kind, by the name of their screen. */
async function findSamples(
  connection: PostgresConnection,
  { projectId, addressIds }: GrowthShop,
): Promise<Record<string, string>> {
  const { rows } = await onServer(connection, (client) => client.query<Sample>(SAMPLE, [projectId, addressIds[0]]));
  const [row] = rows;
  if (row === undefined) throw new Error('the ledger has no paid invoice');
  const { invoice, payable, old, recent, endpoint, event, txid, address, waiting } = row;
  return {
    ...{
      Today: '/',
      Invoices: '/invoices',
      'Invoices, expired': '/invoices?status=EXPIRED',
      'New invoice': '/invoices/new',
    },
    ...{
      Invoice: `/invoices/${encodeId('inv', invoice)}`,
      'Find an amount': `/find?q=${payable}`,
      'Find an old order': `/find?q=${old}`,
      'Find the start of orders': `/find?q=${recent.slice(0, -2)}`,
      [NOWHERE]: '/find?q=no-such-order',
      'Find a price': `/find?q=%24${payable.slice(0, -4)}`,
      'Find what waits': `/find?q=${waiting}`,
      'Find a transaction': `/find?q=${txid.slice(0, 8)}%E2%80%A6`,
      'Find a shortened address': `/find?q=${address.slice(0, 5)}%E2%80%A6${address.slice(-5)}`,
    },
    ...{ Unmatched: '/unmatched', Webhooks: '/webhooks', Endpoint: `/webhooks/${encodeId('whe', endpoint)}` },
    ...{ Event: `/events/${encodeId('evt', event)}`, Addresses: '/addresses', Chain: '/chain', Reports: '/reports' },
    ...{ Requests: '/requests', Settings: '/settings', 'API keys': '/settings/keys', People: '/settings/people' },
    'Audit log': '/settings/audit',
  };
}

/** As many as accumulated in one shop where no one resolved them. */
const UNMATCHED = 3191;

/** Adds transfers, spread over the year, that paid no invoice: too small, without the tail, mistyped, or with a missing digit. */
async function leaveUnmatched(client: Client, { projectId }: GrowthShop): Promise<void> {
  await client.query("set session_replication_role = 'replica'");
  await client.query(INSERT_UNMATCHED, [projectId, UNMATCHED]);
  await client.query("set session_replication_role = 'origin'");
  await client.query('vacuum analyze transfers');
}

const INSERT_UNMATCHED = `
  insert into transfers (id, project_id, network, address_id, tx_id, log_index, block_number, block_id, block_time, from_address,
    amount_micro, kind, verified, nodes, recorded_at)
  select uuidv7(created_at - now() + interval '4 minutes'), project_id, network, address_id, sha256(uuid_send(id)), 0, 5,
    sha256(int8send(5)), created_at + interval '4 minutes', 'T' || left(md5(id::text) || md5(address_id::text), 33),
    case n % 4 when 0 then payable_micro - 1000000 when 1 then requested_micro when 2 then payable_micro + 90
      else payable_micro / 10 end,
    'unmatched', 'agreed:2', '{https://api.trongrid.io,https://tron.example.com}', created_at + interval '5 minutes'
  from (
    select *, row_number() over (order by id) as n from invoices
    where project_id = $1 and status = 'EXPIRED' order by random() limit $2) i`;

/** Every address was compared with the chain less than a day ago, as a watcher does. */
const COMPARE = `
  insert into balance_checks (address_id, project_id, network, opening_micro, opening_block, good_block, checked_block, balance_micro,
    expected_micro, node, checked_at, due_at)
  select a.id, a.project_id, a.network, 0, 0, t.block, t.block, t.micro, t.micro, 'bench', now(), now() + interval '1 day'
  from addresses a cross join lateral (
    select coalesce(max(block_number), 0) as block, coalesce(sum(amount_micro), 0) as micro from transfers where address_id = a.id) t`;

const SAMPLE = `
  select i.id as invoice, i.external_id as recent, (i.payable_micro / 1e6)::numeric(20, 6)::text as payable,
    (select external_id from invoices where project_id = $1 and status = 'EXPIRED' order by id limit 1) as old,
    (select id from webhook_endpoints where project_id = $1 limit 1) as endpoint,
    (select id from events where project_id = $1 order by position desc limit 1) as event,
    encode(w.tx_id, 'hex') as txid, a.address, (w.amount_micro / 1e6)::numeric(20, 6)::text as waiting
  from invoices i join addresses a on a.id = i.address_id
    join lateral (select * from transfers where project_id = $1 and kind = 'unmatched' order by id desc limit 1) w on true
  where i.project_id = $1 and i.address_id = $2 and i.status = 'PAID' order by i.id desc limit 1`;

/** Simulates four people, each of whom opens another page every second. Returns how many pages were opened. */
async function click(pages: Pages, samples: Record<string, string>, until: number): Promise<number> {
  const paths = Object.values(samples);
  let clicks = 0;
  const person = async (offset: number) => {
    for (let turn = offset; performance.now() < until; turn += 1) {
      await (await fetch(pages.url + paths[turn % paths.length], { headers: { cookie: pages.cookie } })).arrayBuffer();
      clicks += 1;
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  };
  await Promise.all(Array.from({ length: PEOPLE }, (_, index) => person(index * 4)));
  return clicks;
}

/** Simulates one person who downloads every invoice. Returns how many bytes arrived until then. */
async function download(pages: Pages, until: number): Promise<number> {
  const ended = AbortSignal.timeout(Math.max(0, Math.round(until - performance.now())));
  let bytes = 0;
  try {
    const { body } = await fetch(`${pages.url}/invoices.csv`, { headers: { cookie: pages.cookie }, signal: ended });
    for await (const chunk of body ?? []) bytes += chunk.length;
  } catch (error) {
    if (!ended.aborted) throw error;
  }
  return bytes;
}
