import type { Sql } from './database.ts';
import { answerOf, rowOf, rowsOf } from './rows-of.ts';
import { type SealedTable, sealColumn } from './seal.ts';
import * as tables from './sealed-tables.ts';
import { count } from './statement.ts';

/** A row as its seal is judged: `seal` is what `sealColumn` made, null where the row needs none. `key` finds it again. */
export type StoredRow = { key: string; seal: string | null };
/** `seal`: as it was read; `mac`: the new one, in hex. */
export type Resealed = { key: string; seal: string; mac: string };

/** The rows of one sealed table, whatever is in them. A key is its columns' texts with `/` between; the last one is the id of the row. */
export type SealedRows = {
  table: SealedTable;
  keyTypes: readonly KeyType[];
  /** Before the first row. */
  start: string;
  /** The next 1,000 rows behind a key. */
  read(db: Sql, after: string): Promise<StoredRow[]>;
  /** How many of the next 50,000 rows behind a key have the MAC of each master key; `null` as its id for those without. */
  count(db: Sql, after: string): Promise<{ keyId: string | null; rows: number; last: string }[]>;
  find(db: Sql, id: string): Promise<StoredRow | null>;
  /**
   * Gives rows new MACs, unless they are no longer as they were read. Returns the keys of those that it gave one. It waits for nobody's lock,
   * so that nobody who waits for a row of it waits for ever.
   */
  reseal(db: Sql, rows: readonly Resealed[]): Promise<string[]>;
};

type KeyType = keyof typeof LOWEST;
type KeyColumn = { column: string; type: KeyType };

const LOWEST = { uuid: '00000000-0000-0000-0000-000000000000', int8: '0', text: '', bytea: '' } as const;
const ID: KeyColumn = { column: 'id', type: 'uuid' };
const BY_NETWORK: KeyColumn = { column: 'network', type: 'text' };
/** The primary key of invoices begins with the project. */
const PROJECT: KeyColumn = { column: 'project_id', type: 'uuid' };
const BY_SHA256: KeyColumn = { column: 'sha256', type: 'bytea' };

export const SEALED_ROWS: readonly SealedRows[] = [
  rowsOfTable(tables.SEALED_PROJECT, [ID]),
  rowsOfTable(tables.SEALED_ACCOUNT_KEY, [ID]),
  rowsOfTable(tables.SEALED_ADDRESS, [ID]),
  rowsOfTable(tables.SEALED_API_KEY, [ID]),
  rowsOfTable(tables.SEALED_ENDPOINT, [ID]),
  rowsOfTable(tables.SEALED_RECEIPT_KEY, [{ column: 'id', type: 'text' }]),
  rowsOfTable(tables.SEALED_PRODUCERS, [{ column: 'id', type: 'int8' }]),
  rowsOfTable(tables.SEALED_CURSOR, [BY_NETWORK]),
  rowsOfTable(tables.SEALED_ACTION, [{ column: 'seq', type: 'int8' }]),
  rowsOfTable(tables.SEALED_INVOICE, [PROJECT, ID]),
  rowsOfTable(tables.SEALED_TRANSFER, [ID]),
  rowsOfTable(tables.SEALED_REFUND, [{ column: 'transfer_id', type: 'uuid' }]),
  rowsOfTable(tables.SEALED_PAID, [PROJECT, ID]),
  rowsOfTable(tables.SEALED_STATUS, [PROJECT, ID]),
  rowsOfTable(tables.SEALED_EVENT, [ID]),
  rowsOfTable(tables.SEALED_PAGE, [ID]),
  rowsOfTable(tables.SEALED_ALARM, [ID]),
  rowsOfTable(tables.SEALED_CHANNEL, [ID]),
  rowsOfTable(tables.SEALED_NOTIFICATION, [ID]),
  rowsOfTable(tables.SEALED_PERSON, [ID]),
  rowsOfTable(tables.SEALED_PASSKEY, [{ column: 'id', type: 'bytea' }]),
  rowsOfTable(tables.SEALED_RECOVERY_CODE, [BY_SHA256]),
  rowsOfTable(tables.SEALED_INVITATION, [BY_SHA256]),
  rowsOfTable(tables.SEALED_SESSION, [ID]),
  rowsOfTable(tables.SEALED_ADMIN_KEY, [ID]),
  rowsOfTable(tables.SEALED_ANNULMENT, [{ column: 'transfer_id', type: 'uuid' }]),
  rowsOfTable(tables.SEALED_RESOLUTION, [{ column: 'id', type: 'int8' }]),
  rowsOfTable(tables.SEALED_PASSED, [{ column: 'id', type: 'int8' }]),
];

/** Whether this user of the database may give rows another MAC: the service's own may not. */
export const mayReseal = answerOf(
  'seals-may-update',
  { isAllowed: 'bool' },
  `select has_column_privilege('transfers', 'mac', 'update') as is_allowed`,
  () => [],
  ([row]) => row?.isAllowed === true,
);

function rowsOfTable(sealed: SealedTable, columns: readonly KeyColumn[]): SealedRows {
  // Each row is read once, so nothing of it is remembered.
  const table = { ...sealed, isReadOnce: true };
  const [from = ''] = table.name.split('.');
  const name = table.name.replaceAll(/[._]/g, '-');
  const listed = columns.map(({ column }) => `t.${column}`).join(', ');
  const key = columns.map(({ column, type }) => written(`t.${column}`, type)).join(" || '/' || ");
  const parts = (text: string) =>
    columns.map(({ type }, index) => parsed(`split_part(${text}, '/', ${index + 1})`, type)).join(', ');
  const seal = sealColumn(table, 't.');
  const mac = `t.${table.mac}`;
  const needed = table.needed === null ? 'true' : table.needed('t.');
  const id = columns.at(-1) ?? ID;
  const shape = { key: 'text', seal: 'text?' } as const;
  return {
    table,
    keyTypes: columns.map(({ type }) => type),
    start: columns.map(({ type }) => LOWEST[type]).join('/'),
    read: rowsOf(
      `seals-read-${name}`,
      shape,
      `select (${key})::text as key, ${seal} as seal from ${from} t where (${listed}) > (${parts('$1')})
       order by ${listed} limit 1000`,
      (after: string) => [after],
    ),
    count: rowsOf(
      `seals-count-${name}`,
      { keyId: 'text?', rows: count, last: 'text' },
      `with seen as materialized (
         select (${key})::text as key, ${mac} as mac, ${needed} as is_needed, row_number() over (order by ${listed}) as place from ${from} t
         where (${listed}) > (${parts('$1')}) order by ${listed} limit 50000)
       select encode(substring(mac for 8), 'hex') as key_id, count(*) filter (where is_needed) as rows,
         (select key from seen order by place desc limit 1) as last
       from seen group by 1 order by 1`,
      (after: string) => [after],
    ),
    find: rowOf(
      `seals-find-${name}`,
      shape,
      `select (${key})::text as key, ${seal} as seal from ${from} t
       where t.${id.column} = ${parsed('$1::text', id.type)}${columns.length === 1 ? '' : ' and t.project_id in (select id from projects)'}`,
      (given: string) => [given],
    ),
    reseal: answerOf(
      `seals-write-${name}`,
      { key: 'text' },
      // Laterally, each row is found by its key, whatever the planner makes of the arrays.
      `with free as materialized (
         select g.*, ${listed} from unnest($1::text[], $2::text[], $3::text[]) g (given_key, given_seal, given_mac)
         cross join lateral (
           select ${listed} from ${from} t where (${listed}) = (${parts('g.given_key')}) for no key update of t skip locked) t)
       update ${from} t set ${table.mac} = decode(free.given_mac, 'hex') from free
       where (${listed}) = (${columns.map(({ column }) => `free.${column}`).join(', ')}) and ${seal} = free.given_seal
       returning free.given_key as key`,
      (rows: readonly Resealed[]) => [
        rows.map((row) => row.key),
        rows.map((row) => row.seal),
        rows.map((row) => row.mac),
      ],
      (rows) => rows.map((row) => row.key),
    ),
  };
}

/** Bytes stand in a key as hex. */
function written(column: string, type: KeyType): string {
  return type === 'bytea' ? `encode(${column}, 'hex')` : column;
}

function parsed(text: string, type: KeyType): string {
  return type === 'bytea' ? `decode(${text}, 'hex')` : `${text}::${type}`;
}
