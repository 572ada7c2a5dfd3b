import type { TronAddress } from '@quittance/tron/address';
import { toIso, type UnixMs } from '../../domain/time.ts';
import { type SealColumn, type SealedTable, type SealParameter, sealColumn, snakeCase } from './seal.ts';

/** PostgreSQL column types and their TypeScript types. The parsers are in `database.ts`. */
type ColumnTypes = {
  uuid: string;
  text: string;
  /** One of our addresses, selected with `addressColumn`. It can be read only if its text matches its account. */
  address: TronAddress;
  'text[]': string[];
  'int8[]': bigint[];
  int4: number;
  int8: bigint;
  numeric: bigint;
  bool: boolean;
  bytea: Buffer;
  timestamptz: UnixMs;
};

/** A column type. A trailing `?` means that the column can be null. */
type ColumnType = keyof ColumnTypes | `${keyof ColumnTypes}?`;

type ColumnValue<Type> = Type extends `${infer Base extends keyof ColumnTypes}?`
  ? ColumnTypes[Base] | null
  : Type extends keyof ColumnTypes
    ? ColumnTypes[Type]
    : never;

declare const KIND: unique symbol;
/**
 * A column whose values have a narrower type than its SQL type. `isCount`: an `int8` that is read as a `number`. `isHex`: a `bytea` that is
 * selected as hex text. `isJson`: a `jsonb` that is selected as text.
 */
type Narrow<Type> = {
  readonly column: ColumnType;
  readonly isCount?: true;
  readonly isHex?: true;
  readonly isJson?: true;
  readonly [KIND]?: Type;
};
/**
 * The MAC of the row that the other fields belong to. It's verified whenever the row is read. `isReady`: a subquery has already built the
 * column. `isTold`: the result has a field that says whether the row is valid, and the statement doesn't fail. Otherwise the result has no
 * such field.
 */
type Seal<IsTold extends boolean = boolean> = {
  readonly sealed: SealedTable;
  readonly isReady: boolean;
  readonly isTold: IsTold;
  /** The fields next to this one belong to another row. */
  readonly isOfOther?: boolean;
};
/** Fields that have their own columns: `invoice.id` is in `invoice_id`. */
type Group<Fields extends Shape> = { readonly fields: Fields; readonly mayLack: false };
/** Like `Group`, but null if the first field is null, as after a left join. */
type Maybe<Fields extends Shape> = { readonly fields: Fields; readonly mayLack: true };

/** A row's fields. Each column is named after its field, in snake case (`txId` is `tx_id`). */
export type Shape = { readonly [name: string]: ColumnType | Narrow<unknown> | Group<Shape> | Maybe<Shape> | Seal };

export type Row<Fields extends Shape> = {
  -readonly [Name in keyof Fields]: Fields[Name] extends ColumnType
    ? ColumnValue<Fields[Name]>
    : Fields[Name] extends Maybe<infer Inner extends Shape>
      ? Row<Inner> | null
      : Fields[Name] extends Group<infer Inner extends Shape>
        ? Row<Inner>
        : Fields[Name] extends Narrow<infer Type>
          ? Type
          : Fields[Name] extends Seal<true>
            ? boolean
            : undefined;
};

/** A text from a fixed set, or a branded text. */
export const text = <Type extends string = string>(): Narrow<Type> => ({ column: 'text' });
export const maybeText = <Type extends string = string>(): Narrow<Type | null> => ({ column: 'text?' });
/** Bytes as hex: a block id, a transaction id, or an account. */
export const hex = <Type extends string = string>(): Narrow<Type> => ({ column: 'text', isHex: true });
export const maybeHex: Narrow<string | null> = { column: 'text?', isHex: true };
/** A `jsonb` value of this type. PostgreSQL doesn't preserve the order of its members. */
export const json = <Type>(): Narrow<Type> => ({ column: 'text', isJson: true });
/** An amount in millionths. The column is `numeric` by default. */
export const micro = <Type extends bigint = bigint>(column: 'numeric' | 'int8' = 'numeric'): Narrow<Type> => ({
  column,
});
export const maybeMicro = <Type extends bigint = bigint>(): Narrow<Type | null> => ({ column: 'numeric?' });
/** An `int8` that never exceeds 2^53: heights and counts. */
export const count: Narrow<number> = { column: 'int8', isCount: true };
export const maybeCount: Narrow<number | null> = { column: 'int8?', isCount: true };
export const group = <const Fields extends Shape>(fields: Fields): Group<Fields> => ({
  fields,
  mayLack: false,
});
export const maybe = <const Fields extends Shape>(fields: Fields): Maybe<Fields> => ({
  fields,
  mayLack: true,
});

export const sealed = (table: SealedTable): Seal<false> => ({ sealed: table, isReady: false, isTold: false });
export const sealedBefore = (table: SealedTable, { isOfOther = false } = {}): Seal<false> => ({
  ...{ sealed: table, isReady: true, isTold: false, isOfOther },
});
export const isAsSealed = (table: SealedTable, { isOfOther = false } = {}): Seal<true> => ({
  ...{ sealed: table, isReady: true, isTold: true, isOfOther },
});

/** The values of parameters. Bind times as `Date`, and byte strings as `Buffer`. */
export type Parameter =
  | (string | number | bigint | boolean | Date | Buffer | null)
  | readonly (string | bigint | null)[]
  | SealParameter;

/**
 * `columns`: the returned columns by SQL name, in order. `addressColumns`: the columns of type `address`. `sealColumns`: the columns with
 * seals. `read` converts a row to its fields.
 */
export type Statement<Fields extends Shape = Shape> = {
  name: string;
  text: string;
  shape: Fields;
  columns: Readonly<Record<string, ColumnType>>;
  addressColumns: readonly string[];
  sealColumns: readonly SealColumn[];
  read(row: Record<string, unknown>): Row<Fields>;
};

/** Every statement in the program. A test prepares each one and compares its columns. */
export const allStatements: Statement[] = [];

/**
 * Declares an SQL statement, which is prepared once per connection under its name. `shape` declares the fields of its rows, and so the
 * returned columns in order; a test checks it against PostgreSQL.
 */
export function statement<const Fields extends Shape>(name: string, shape: Fields, text: string): Statement<Fields> {
  const declared = unlistedStatement(name, shape, text);
  allStatements.push(declared);
  return declared;
}

/** Like `statement`, but for statements that aren't part of the program. */
export function unlistedStatement<const Fields extends Shape>(
  name: string,
  shape: Fields,
  text: string,
): Statement<Fields> {
  const columns = columnsOf(shape);
  const addressColumns = Object.keys(columns).filter((column) => columns[column]?.startsWith('address'));
  const sealColumns = sealColumnsOf(shape, columns);
  return { name, text, shape, columns, addressColumns, sealColumns, read: readerOf(shape) as Reader<Row<Fields>> };
}

/** The SQL for fields that aren't table columns. For a group, it's the SQL of its fields, or the prefix of its columns. */
type Sources = { readonly [name: string]: string | Sources | undefined };

/** Lists a shape's columns for a statement's text: `t.log_index, encode(t.tx_id, 'hex') as tx_id` with the prefix `t.`. */
export function listColumns(shape: Shape, prefix = '', sources: Sources = {}, before = ''): string {
  const listed = Object.entries(shape).map(([name, field]) => {
    const [own, column] = [`${prefix}${snakeCase(name)}`, `${before}${snakeCase(name)}`];
    const source = sources[name];
    if (isGroup(field)) {
      const [ofGroup, within] = typeof source === 'object' ? [prefix, source] : [source ?? prefix, {}];
      return listColumns(field.fields, ofGroup, within, `${column}_`);
    }
    if (isSeal(field)) {
      const sql = typeof source === 'string' ? source : field.isReady ? own : sealColumn(field.sealed, prefix);
      return sql === column ? sql : `${sql} as ${column}`;
    }
    const sql = source ?? (isHex(field) ? `encode(${own}, 'hex')` : isJson(field) ? `${own}::text` : own);
    return sql === own && before === '' ? own : `${sql} as ${column}`;
  });
  return listed.join(', ');
}

function isGroup(field: Shape[string]): field is Group<Shape> | Maybe<Shape> {
  return typeof field === 'object' && 'fields' in field;
}

function isSeal(field: Shape[string]): field is Seal {
  return typeof field === 'object' && 'sealed' in field;
}

function isHex(field: Shape[string]): boolean {
  return typeof field === 'object' && 'isHex' in field;
}

function isJson(field: Shape[string]): boolean {
  return typeof field === 'object' && 'isJson' in field;
}

function columnOf(field: Shape[string]): ColumnType {
  if (isGroup(field)) throw new Error('a group of fields has no column of its own');
  if (isSeal(field)) return 'text?';
  return typeof field === 'string' ? field : field.column;
}

function columnsOf(shape: Shape, prefix = '', mayBeNull = false): Record<string, ColumnType> {
  const entries = Object.entries(shape).flatMap(([name, field]): [string, ColumnType][] => {
    const column = prefix + snakeCase(name);
    if (isGroup(field)) return Object.entries(columnsOf(field.fields, `${column}_`, mayBeNull || field.mayLack));
    const type = columnOf(field);
    return [[column, mayBeNull && !type.endsWith('?') ? (`${type}?` as ColumnType) : type]];
  });
  return Object.fromEntries(entries);
}

function sealColumnsOf(shape: Shape, columns: Record<string, ColumnType>, prefix = ''): SealColumn[] {
  return Object.entries(shape).flatMap(([name, field]): SealColumn[] => {
    const column = prefix + snakeCase(name);
    if (isGroup(field)) return sealColumnsOf(field.fields, columns, `${column}_`);
    if (!isSeal(field)) return [];
    // PostgreSQL formats JSON in its own way, and not every deadline is sealed.
    const covered = Object.entries(field.sealed.fields)
      .map(([each, type], place) => [prefix + snakeCase(each), place, type] as const)
      .filter(([each, , type]) => each in columns && type !== 'json' && type !== 'deadline');
    return [
      {
        column,
        table: field.sealed,
        isTold: field.isTold,
        beside: field.isOfOther === true ? [] : covered,
      },
    ];
  });
}

type Reader<Value = unknown> = (row: Record<string, unknown>) => Value;

/** Builds a reader once per statement, so that little work is left for each row of a page. */
function readerOf(shape: Shape, prefix = ''): Reader<Record<string, unknown>> {
  const readers = Object.entries(shape)
    .filter(([, field]) => !isSeal(field) || field.isTold)
    .map(([name, field]) => [name, fieldReader(field, prefix + snakeCase(name))] as const);
  return (row) => {
    const fields: Record<string, unknown> = {};
    for (const [name, read] of readers) fields[name] = read(row);
    return fields;
  };
}

function fieldReader(field: Shape[string], column: string): Reader {
  if (isGroup(field)) {
    const read = readerOf(field.fields, `${column}_`);
    const first = `${column}_${snakeCase(Object.keys(field.fields)[0] ?? '')}`;
    return field.mayLack ? (row) => (row[first] === null ? null : read(row)) : read;
  }
  if (isJson(field)) return (row) => JSON.parse(row[column] as string);
  if (typeof field === 'string' || isSeal(field) || field.isCount !== true) return (row) => row[column];
  return (row) => (row[column] === null ? null : Number(row[column]));
}

/** Binds many rows to one JSON parameter, for `insert … select … from`. The shape must not contain groups. */
export function jsonRows<const Fields extends Shape>(shape: Fields) {
  const fields = Object.entries(shape).map(([name, field]) => {
    const type = isHex(field) ? 'bytea' : columnOf(field).replace('?', '');
    return { name, column: snakeCase(name), type };
  });
  const definitions = fields.map(({ column, type }) => `"${column}" ${type}`).join(', ');
  return {
    /** For example `"id", "project_id", …`. */
    columns: fields.map(({ column }) => `"${column}"`).join(', '),
    /** The SQL for turning a parameter's rows into the table `t`. */
    table: (parameter: `$${number}`) => `jsonb_to_recordset(${parameter}::text::jsonb) as t(${definitions})`,
    /** Returns the text to bind to that parameter. Row fields that aren't in the shape are left out. */
    bind: (rows: readonly Row<Fields>[]): string => {
      const entries = (row: Record<string, unknown>) =>
        fields.map(({ name, column, type }) => [column, toJson(row[name], type)] as const);
      return JSON.stringify(rows.map((row) => Object.fromEntries(entries(row))));
    },
  };
}

/** PostgreSQL reads `\x0ca1…` as bytes. Amounts are bound as text, because not every amount fits a JSON number. */
function toJson(value: unknown, type: string): unknown {
  if (value === null) return null;
  if (typeof value === 'bigint') return value.toString();
  if (type === 'bytea') return `\\x${value}`;
  return type === 'timestamptz' ? toIso(value as UnixMs) : value;
}
