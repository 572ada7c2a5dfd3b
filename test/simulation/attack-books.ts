import pg from 'pg';
import type { AlarmKind } from '../../src/core/domain/alarm-kinds.ts';
import { microUsdt } from '../../src/core/domain/money.ts';
import type { UnixMs } from '../../src/core/domain/time.ts';
import { createInvoice } from '../../src/core/payments/create-invoice.ts';
import { openDatabase } from '../../src/core/store/db/database.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { createTestProject } from '../support/service.ts';

/** Creates a real PostgreSQL with a project of one address, and the queries of the tests. */
export async function createAttackBooks({ now }: { now(): UnixMs }) {
  const database = await createTestDatabase();
  const { connection } = database;
  const db = openDatabase({ connection, poolSize: 4, applicationName: 'attack', onError: () => undefined });
  const client = new pg.Client(database.ownerString);
  await client.connect();
  const query = async (sql: string, values: unknown[] = []) => (await client.query(sql, values)).rows;
  const project = await createTestProject(db, { network: 'nile' });
  const random = (count: number) => crypto.getRandomValues(new Uint8Array(count));
  let orders = 0;
  const ask = {
    query,
    statuses: async () => (await query('select status from invoices order by created_at')).map(({ status }) => status),
    events: async () => (await query('select type from events order by sequence')).map(({ type }) => type),
    /** The rows that a first start stores. */
    stored: async () => {
      const [row] = await query(`select (select count(*)::int from chain_cursors) as cursors,
        (select count(*)::int from producer_sets) as sets`);
      return row as { cursors: number; sets: number };
    },
    /** The open kinds of alarms. */
    alarms: async (): Promise<AlarmKind[]> =>
      (await query('select distinct kind from alarms where resolved_at is null order by kind')).map(({ kind }) => kind),
    alarmDetail: async (kind: AlarmKind): Promise<string> => {
      const [row] = await query('select detail from alarms where resolved_at is null and kind = $1', [kind]);
      return row?.detail ?? '';
    },
    /** Creates an invoice, and returns the address and amount to pay. */
    async invoice() {
      orders += 1;
      const order = String(orders);
      const randomBelow = (count: number) => Math.floor(Math.random() * count);
      const input = { idempotencyKey: order, externalId: order, requestedMicro: microUsdt(25_000_000n) };
      const owner = {
        keyId: project.keyId,
        projectId: project.id,
        policy: 'tail',
        maxSurchargeMicro: 10_000n,
        network: 'nile',
        invoiceLifetimeMs: 1_800_000,
      } as const;
      const created = await createInvoice({ db, now, random, randomBelow }, { ...owner, ...input });
      if (created.kind !== 'created') throw new Error(created.kind);
      const [row] = await query(
        `select encode(a.account, 'hex') as account, i.payable_micro as amount
         from invoices i join addresses a on a.id = i.address_id where i.id = $1`,
        [created.invoice.id],
      );
      return { account: String(row.account), amount: BigInt(row.amount) };
    },
  };
  const close = async () => {
    await client.end();
    await db.close();
    await database.drop();
  };
  return { db, random, ask, close };
}
