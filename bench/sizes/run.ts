import type { PostgresConnection } from '../../src/core/store/embedded/connection.ts';
import type { BenchResult } from '../bench-context.ts';
import { onServer } from '../databases.ts';
import { createDatabase, createGrowthShop } from '../growth/shop.ts';
import { table } from '../targets.ts';
import { ADDRESS_COUNT, fillLedger, type LedgerCounts } from './fill.ts';

const FULL = 1_000_000;
const QUICK = 20_000;

type Size = { name: string; rows: number; heap: number; indexes: number };

/** Measures the disk space of a ledger with this many invoices, by table and index. */
export async function runSizes(options: {
  postgres: PostgresConnection;
  isQuick: boolean;
  onProgress(text: string): void;
}): Promise<BenchResult> {
  const { postgres, isQuick, onProgress } = options;
  const count = isQuick ? QUICK : FULL;
  const { db, connection } = await createDatabase(postgres, 'sizes');
  const shop = await createGrowthShop(db, 'tail', ADDRESS_COUNT);
  await db.close();
  const counts = await onServer(connection, (client) => fillLedger(client, shop, count, onProgress));
  const { tables, indexes } = await onServer(connection, async (client) => ({
    tables: (await client.query<Size>(TABLES)).rows,
    indexes: (await client.query<{ name: string; bytes: number }>(INDEXES)).rows,
  }));
  return { markdown: show(count, counts, tables, indexes), record: { count, counts, tables, indexes } };
}

const TABLES = `
  select c.relname as name, c.reltuples::float8 as rows, (pg_total_relation_size(c.oid) - pg_indexes_size(c.oid))::float8 as heap,
    pg_indexes_size(c.oid)::float8 as indexes
  from pg_class c where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace
  order by pg_total_relation_size(c.oid) desc`;

const INDEXES = `
  select c.relname as name, pg_relation_size(c.oid)::float8 as bytes
  from pg_class c where c.relkind = 'i' and c.relnamespace = 'public'::regnamespace order by 2 desc`;

/** Smaller tables hold a project's settings and don't grow. */
const SHOWN_BYTES = 1_000_000;

function show(
  count: number,
  counts: LedgerCounts,
  tables: readonly Size[],
  indexes: readonly { name: string; bytes: number }[],
): string {
  const perMillion = (bytes: number) => ((bytes / count) * 1_000_000) / 1e6;
  const mega = (bytes: number) => perMillion(bytes).toFixed(0);
  const rows = tables
    .filter(({ heap, indexes }) => heap + indexes > SHOWN_BYTES)
    .map((each) => {
      const all = each.heap + each.indexes;
      const share = `${Math.round((100 * each.indexes) / all)} %`;
      return [each.name, String(Math.round(each.rows)), mega(each.heap), mega(each.indexes), mega(all), share];
    });
  const [heap, index] = [sum(tables, ({ heap }) => heap), sum(tables, ({ indexes }) => indexes)];
  rows.push([
    'all',
    '',
    mega(heap),
    mega(index),
    mega(heap + index),
    `${Math.round((100 * index) / (heap + index))} %`,
  ]);
  return [
    `${count} invoices: ${JSON.stringify(counts)}. MB for each million invoices:`,
    table(['Table', 'Rows', 'Rows of it', 'Indexes', 'Together', 'Indexes of it'], rows),
    table(
      ['Index', 'MB'],
      indexes.filter(({ bytes }) => bytes > SHOWN_BYTES).map(({ name, bytes }) => [name, mega(bytes)]),
    ),
  ].join('\n\n');
}

function sum(tables: readonly Size[], of: (size: Size) => number): number {
  return tables.reduce((total, each) => total + of(each), 0);
}
