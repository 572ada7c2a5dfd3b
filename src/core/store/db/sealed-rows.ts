import { createHash } from 'node:crypto';
import type { Sql } from './database.ts';
import { answerOf, conditionOf, rowsOf } from './rows-of.ts';
import { type SealedTable, sealColumn } from './seal.ts';
import * as tables from './sealed-tables.ts';
import { count } from './statement.ts';

/**
 * A row with its seals: for each table, the result of `sealColumn`, or null if the row doesn't need that seal. `key` identifies the row.
 */
export type StoredRow = { key: string; seals: readonly (string | null)[] };
/** For each table: the seal as it was read, and the new MAC in hex. A null entry keeps the current MAC. */
export type Resealed = { key: string; seals: readonly ({ seal: string; mac: string } | null)[] };

/**
 * All rows in one database table, valid or not. A key consists of its columns' texts, separated by `/`; `idPlace` is the id's position in
 * the key.
 */
export type SealedRows = {
  /** The sealed tables that the rows belong to. */
  tables: readonly SealedTable[];
  keyTypes: readonly KeyType[];
  idPlace: number;
  /** A key that sorts before the first row. */
  start: string;
  /** Returns the next 1,000 rows after a key. */
  read(db: Sql, after: string): Promise<StoredRow[]>;
  /** Counts the next 50,000 rows after a key by their MAC's master key; `null` means rows without a MAC. */
  count(db: Sql, after: string): Promise<{ keyId: string | null; rows: number; last: string }[]>;
  /** Returns the first 500 rows with an id, because some ids match several rows. */
  find(db: Sql, id: string): Promise<StoredRow[]>;
  /**
   * Gives rows new MACs, unless they have changed since they were read. Returns the updated rows' keys. Skips locked rows, so that it can't
   * deadlock with other transactions.
   */
  reseal(db: Sql, rows: readonly Resealed[]): Promise<string[]>;
};

type KeyType = keyof typeof LOWEST;
/** A key's columns and their types, in order. */
type Key = Readonly<Record<string, KeyType>>;

const LOWEST = { uuid: '00000000-0000-0000-0000-000000000000', int8: '0', text: '', bytea: '' } as const;

export const SEALED_ROWS: readonly SealedRows[] = [
  rowsOfTable([tables.SEALED_PROJECT, tables.SEALED_LIMITS]),
  rowsOfTable([tables.SEALED_ACCOUNT_KEY]),
  rowsOfTable([tables.SEALED_ADDRESS]),
  rowsOfTable([tables.SEALED_API_KEY]),
  rowsOfTable([tables.SEALED_ENDPOINT, tables.SEALED_READ_RATE]),
  rowsOfTable([tables.SEALED_ADAPTER_ORDER], { project_id: 'uuid', invoice_id: 'uuid' }),
  rowsOfTable([tables.SEALED_PROOF], { key_id: 'text' }),
  rowsOfTable([tables.SEALED_RECEIPT_KEY], { id: 'text' }),
  rowsOfTable([tables.SEALED_PRODUCERS], { id: 'int8' }),
  rowsOfTable([tables.SEALED_CURSOR], { network: 'text' }),
  rowsOfTable([tables.SEALED_ACTION], { seq: 'int8' }),
  rowsOfTable([tables.SEALED_INVOICE, tables.SEALED_PAID, tables.SEALED_STATUS, tables.SEALED_WITHDRAWN], {
    project_id: 'uuid',
    id: 'uuid',
  }),
  rowsOfTable([tables.SEALED_TRANSFER]),
  // The same columns as in the primary keys. The last one distinguishes corrections.
  rowsOfTable([tables.SEALED_OUTGOING], { network: 'text', tx_id: 'bytea', log_index: 'int8', correction: 'int8' }, 1),
  rowsOfTable([tables.SEALED_REFUND], { transfer_id: 'uuid' }),
  rowsOfTable([tables.SEALED_EVENT]),
  rowsOfTable([tables.SEALED_SET_ASIDE], { id: 'text' }),
  rowsOfTable([tables.SEALED_PAGE]),
  rowsOfTable([tables.SEALED_ALARM, tables.SEALED_CLOSED]),
  rowsOfTable([tables.SEALED_CHANNEL]),
  rowsOfTable([tables.SEALED_NOTIFICATION]),
  rowsOfTable([tables.SEALED_PERSON]),
  rowsOfTable([tables.SEALED_PASSKEY], { id: 'bytea' }),
  rowsOfTable([tables.SEALED_RECOVERY_CODE], { sha256: 'bytea' }),
  rowsOfTable([tables.SEALED_INVITATION], { sha256: 'bytea' }),
  rowsOfTable([tables.SEALED_SESSION]),
  rowsOfTable([tables.SEALED_ADMIN_KEY]),
  rowsOfTable([tables.SEALED_ANNULMENT], { transfer_id: 'uuid' }),
  rowsOfTable([tables.SEALED_RESOLUTION], { id: 'int8' }),
  rowsOfTable([tables.SEALED_CLAIM], { transfer_id: 'uuid', invoice_id: 'uuid' }, 0),
  rowsOfTable([tables.SEALED_PASSED], { id: 'int8' }),
];

/** Whether this database user may change rows' MACs, which the service's own user may not. */
export const mayReseal = conditionOf('seals-may-update', `has_column_privilege('transfers', 'mac', 'update')`);

function rowsOfTable(
  seals: readonly SealedTable[],
  key: Key = { id: 'uuid' },
  idPlace = Object.keys(key).length - 1,
): SealedRows {
  // Each row is read once, so nothing is cached.
  const tables = seals.map((sealed) => ({ ...sealed, isReadOnce: true }));
  const keyTypes = Object.values(key);
  const from = tables[0]?.name ?? '';
  const columns = Object.entries(key).map(([column, type]) => ({ column, type }));
  const source = { tables, columns, idPlace, from, name: from.replaceAll('_', '-') };
  const start = keyTypes.map((type) => LOWEST[type]).join('/');
  return { tables, keyTypes, idPlace, start, ...readerOf(source), count: counterOf(source), reseal: writerOf(source) };
}

type Source = {
  tables: readonly SealedTable[];
  columns: readonly { column: string; type: KeyType }[];
  idPlace: number;
  from: string;
  name: string;
};

/** The key's columns, the SQL that joins them into one text, and the SQL that parses such a text. */
function keyOf({ columns }: Source) {
  return {
    listed: columns.map(({ column }) => `t.${column}`).join(', '),
    key: columns.map(({ column, type }) => written(`t.${column}`, type)).join(" || '/' || "),
    parts: (text: string) =>
      columns.map(({ type }, index) => parsed(`split_part(${text}, '/', ${index + 1})`, type)).join(', '),
  };
}

function readerOf(source: Source): Pick<SealedRows, 'read' | 'find'> {
  const { tables, columns, idPlace, from, name } = source;
  const { listed, key, parts } = keyOf(source);
  const seals = tables.map((table, place) => `${sealColumn(table, 't.')} as seal_${place}`).join(', ');
  const shape = {
    key: 'text',
    ...Object.fromEntries(tables.map((_table, place) => [`seal_${place}`, 'text?'])),
  } as const;
  const storedRow = (read: { key: string } & Record<string, unknown>): StoredRow => ({
    key: read.key,
    seals: tables.map((_table, place) => read[`seal_${place}`] as string | null),
  });
  const { column, type } = columns[idPlace] ?? { column: 'id', type: 'uuid' };
  const [first] = columns;
  // These tables' primary keys start with the project or the network.
  const isOfProject = first?.column === 'project_id';
  const isOfNetwork = first?.column === 'network' && idPlace > 0;
  return {
    read: answerOf(
      `seals-read-${name}`,
      shape,
      `select (${key})::text as key, ${seals} from ${from} t where (${listed}) > (${parts('$1')})
       order by ${listed} limit 1000`,
      (after: string) => [after],
      (rows) => rows.map(storedRow),
    ),
    find: answerOf(
      `seals-find-${name}`,
      shape,
      `select (${key})::text as key, ${seals} from ${from} t
       where t.${column} = ${parsed('$1::text', type)}${isOfProject ? ' and t.project_id in (select id from projects)' : ''}${isOfNetwork ? ' and t.network in (select network from chain_cursors)' : ''} order by ${listed} limit 500`,
      (wanted: string) => [wanted],
      (rows) => rows.map(storedRow),
    ),
  };
}

function counterOf(source: Source): SealedRows['count'] {
  const { tables, from, name } = source;
  const { listed, key, parts } = keyOf(source);
  const states = tables
    .map(({ mac, needed }, place) => `t.${mac} as mac_${place}, ${needed?.('t.') ?? 'true'} as needs_${place}`)
    .join(', ');
  const pairs = tables.map((_table, place) => `(mac_${place}, needs_${place})`).join(', ');
  return rowsOf(
    `seals-count-${name}`,
    { keyId: 'text?', rows: count, last: 'text' },
    `with seen as materialized (
       select (${key})::text as key, ${states}, row_number() over (order by ${listed}) as place from ${from} t
       where (${listed}) > (${parts('$1')}) order by ${listed} limit 50000)
     select encode(substring(mac for 8), 'hex') as key_id, count(*) filter (where is_needed) as rows,
       (select key from seen order by place desc limit 1) as last
     from seen cross join lateral (values ${pairs}) s (mac, is_needed) group by 1 order by 1`,
    (after: string) => [after],
  );
}

function writerOf(source: Source): SealedRows['reseal'] {
  const { tables, columns, from, name } = source;
  const { listed, parts } = keyOf(source);
  const parameters = tables.flatMap((_table, place) => [`$${2 * place + 2}::text[]`, `$${2 * place + 3}::text[]`]);
  const given = tables.flatMap((_table, place) => [`seal_${place}`, `mac_${place}`]);
  const keyOfFree = columns.map(({ column }) => `free.${column}`).join(', ');
  // Compares digests, because sending the texts back would cost a kilobyte per event.
  const digests = tables.map((table) => `encode(sha256(convert_to(${sealColumn(table, 't.')}, 'UTF8')), 'hex')`);
  const isAsRead = digests.map((digest, place) => `(free.seal_${place} is null or ${digest} = free.seal_${place})`);
  return answerOf(
    `seals-write-${name}`,
    { key: 'text' },
    // With the lateral join, each row is found by its key, whatever the planner assumes about the arrays.
    `with free as materialized (
       select g.*, ${listed} from unnest($1::text[], ${parameters.join(', ')}) g (given_key, ${given.join(', ')})
       cross join lateral (
         select ${listed} from ${from} t where (${listed}) = (${parts('g.given_key')}) for no key update of t skip locked) t)
     update ${from} t set ${newMacs(tables)} from free
     where (${listed}) = (${keyOfFree}) and ${isAsRead.join(' and ')}
     returning free.given_key as key`,
    (rows: readonly Resealed[]) => [
      rows.map((one) => one.key),
      ...tables.flatMap((_table, place) => [
        rows.map(({ seals }) => sha256(seals[place]?.seal)),
        rows.map(({ seals }) => seals[place]?.mac ?? null),
      ]),
    ],
    (rows) => rows.map((one) => one.key),
  );
}

function sha256(seal: string | undefined): string | null {
  return seal === undefined ? null : createHash('sha256').update(seal).digest('hex');
}

/** The SQL that sets each MAC column to its new MAC, if one of its seals has a new MAC. */
function newMacs(tables: readonly SealedTable[]): string {
  return [...new Set(tables.map(({ mac }) => mac))]
    .map((column) => {
      const news = tables.flatMap(({ mac }, place) => (mac === column ? [`decode(free.mac_${place}, 'hex')`] : []));
      return `${column} = coalesce(${news.join(', ')}, t.${column})`;
    })
    .join(', ');
}

/** In a key, bytes are written as hex. */
function written(column: string, type: KeyType): string {
  return type === 'bytea' ? `encode(${column}, 'hex')` : column;
}

function parsed(text: string, type: KeyType): string {
  return type === 'bytea' ? `decode(${text}, 'hex')` : `${text}::${type}`;
}
