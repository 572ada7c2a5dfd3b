import { randomBytes, randomUUID } from 'node:crypto';
import pg from 'pg';
import { onTestFinished } from 'vitest';
import { uuidV7 } from '../../src/core/domain/ids.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { createMetrics, type Metrics } from '../../src/core/runtime/metrics.ts';
import { type Database, openDatabase } from '../../src/core/store/db/database.ts';
import {
  createLivePages,
  type LivePage,
  type LivePages,
  type LivePagesDeps,
} from '../../src/faces/checkout/live/live-routes.ts';
import type { LiveMessage } from '../../src/faces/checkout/page/page.ts';
import { wordsOf } from '../../src/faces/checkout/words/words.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { createTestProject, eventually } from '../support/service.ts';
import { letRowsStandAlone } from '../support/stand-alone.ts';

export type LiveInvoice = { id: string; token: string };

export const SITE = { publicUrl: () => 'https://pay.example', usdt: {}, proofOf: () => null };
export const READER = { words: wordsOf('en'), isLanguageAsked: false, site: SITE };

/** The newest block when a test begins. */
const HEAD = { number: 1000, time: Date.parse('2026-09-01T12:00:00Z') };

export type LiveFixture = {
  db: Database;
  metrics: Metrics;
  logged: string[];
  deps: LivePagesDeps;
  /** Resolves once they receive notifications. */
  pages(options?: Pick<LivePagesDeps, 'lookMs' | 'sweepMs'>): Promise<LivePages>;
  /** Moves this side's clock. */
  advance(ms: number): void;
  invoice(): Promise<LiveInvoice>;
  invoices(count: number): Promise<LiveInvoice[]>;
  setStatus(status: string, invoices: readonly LiveInvoice[]): Promise<void>;
  /** Makes the next block, 3 s after the previous one. */
  mine(): Promise<void>;
  /** Puts a transfer for an invoice into the newest block, and sets its status. */
  detect(invoice: LiveInvoice): Promise<void>;
  /** Replaces the newest block by one without the previous one's transfers. */
  orphan(): Promise<void>;
  sql(text: string, values?: unknown[]): Promise<pg.QueryResult>;
  queries(kind: 'invoices' | 'heads'): Promise<number>;
  close(): Promise<void>;
};

/** Creates a database with a project and a chain, and live pages on it. */
export async function createLiveFixture(): Promise<LiveFixture> {
  const database = await createTestDatabase();
  const db = openDatabase({
    connection: database.connection,
    poolSize: 4,
    applicationName: 'live pages test',
    onError: () => undefined,
  });
  await letRowsStandAlone(database.owner);
  const client = new pg.Client(database.owner);
  client.on('error', () => undefined);
  await client.connect();
  const { id: projectId } = await createTestProject(db);
  const sql = (text: string, values: unknown[] = []) => client.query(text, values);
  await sql("insert into chain_cursors (network, solid_number, solid_id, solid_time) values ('devnet', $1, $2, $3)", [
    HEAD.number,
    randomBytes(32),
    new Date(HEAD.time),
  ]);
  let [offsetMs, head, amount] = [1000, HEAD, 10_000_001];
  const metrics = createMetrics();
  const logged: string[] = [];
  const log = createLogger({ level: 'info', destination: { write: (line: string) => void logged.push(line) } });
  const deps: LivePagesDeps = { db, log, metrics, now: () => unixMs(HEAD.time + offsetMs) };
  const setStatus = async (status: string, invoices: readonly LiveInvoice[]) => {
    await sql(
      "update invoices set status = $1, event_count = event_count + ('CONFIRMING' in (status, $1))::int where id = any($2)",
      [status, invoices.map(({ id }) => id)],
    );
  };
  const insertBlock = (number: number, time: number) =>
    sql("insert into head_blocks (network, number, block_id, block_time) values ('devnet', $1, $2, $3)", [
      ...[number, randomBytes(32), new Date(time)],
    ]);
  const addInvoices = async (count: number) => {
    const made = Array.from({ length: count }, () => ({ id: uuidV7(Date.now(), randomBytes(10)), token: newToken() }));
    const amounts = made.map((_, index) => amount + 10 * index);
    amount += 10 * count;
    await sql(INSERT_INVOICES, [
      ...[projectId, made.map(({ id }) => id), made.map(({ token }) => token), amounts],
      ...[new Date(HEAD.time), new Date(HEAD.time + 1_800_000)],
    ]);
    return made;
  };
  return {
    db,
    metrics,
    logged,
    deps,
    setStatus,
    sql,
    pages: async (options = {}) => {
      let isListening = false;
      const listen: Database['listen'] = (channel, onNotify) =>
        deps.db.listen(channel, (payload) => {
          onNotify(payload);
          isListening = true;
        });
      const pages = createLivePages({ ...deps, db: { ...deps.db, listen }, ...options });
      onTestFinished(() => pages.stop());
      await eventually(() => isListening, Boolean);
      return pages;
    },
    advance: (ms) => {
      offsetMs += ms;
    },
    invoices: addInvoices,
    invoice: async () => {
      const [invoice] = await addInvoices(1);
      if (invoice === undefined) throw new Error('no invoice was made');
      return invoice;
    },
    mine: async () => {
      head = { number: head.number + 1, time: head.time + 3000 };
      await insertBlock(head.number, head.time);
    },
    detect: async (invoice) => {
      await sql(
        `insert into sightings (network, block_number, tx_id, log_index, project_id, invoice_id, from_address, amount_micro)
         values ('devnet', $1, $2, 0, $3, $4, 'TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZY', 1)`,
        [head.number, randomBytes(32), projectId, invoice.id],
      );
      await setStatus('CONFIRMING', [invoice]);
    },
    orphan: async () => {
      await sql('delete from head_blocks where number = $1', [head.number]);
      await insertBlock(head.number, head.time + 1000);
    },
    close: async () => {
      await client.end();
      await db.close();
      await database.drop();
    },
    queries: async (kind) => {
      const { values } = await metrics.livePageQueries.get();
      return values.find(({ labels }) => labels.kind === kind)?.value ?? 0;
    },
  };
}

const INSERT_INVOICES = `
  insert into invoices (id, project_id, network, address_id, idempotency_key, external_id, requested_micro, payable_micro,
    status, checkout_token, created_at, expires_at)
  select id, $1, 'devnet', a.address_id, id::text, id::text, amount, amount, 'PENDING', token, $5, $6
  from unnest($2::uuid[], $3::text[], $4::int8[]) as i (id, token, amount),
    (select id as address_id from addresses where project_id = $1 limit 1) a`;

/** An open page and the messages it received, beginning with the full page. */
export type Followed = { page: LivePage; reported: LiveMessage[] };

export async function follow(pages: LivePages, { token }: LiveInvoice, reader = READER): Promise<Followed> {
  const page = await pages.open(token, reader);
  if (page === null) throw new Error('the link is unknown');
  const reported: LiveMessage[] = [];
  page.start('', (message) => reported.push(message));
  await eventually(
    () => reported.length,
    (count) => count > 0,
  );
  return { page, reported };
}

function newToken(): string {
  return randomUUID().replaceAll(/[0-]/g, 'x').slice(0, 22);
}
