import type { UnixMs } from '../domain/time.ts';
import type { TronAddress } from '../tron/address.ts';

/** PostgreSQL column types and what they are in TypeScript. The parsers stand in `database.ts`. */
type ColumnTypes = {
  uuid: string;
  text: string;
  /** One of ours, in SQL `addressColumn`: read only where its text and its account fit. */
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

/** A column type; a trailing `?` says that the column may be null. */
export type ColumnType = keyof ColumnTypes | `${keyof ColumnTypes}?`;

type ColumnValue<Type> = Type extends `${infer Base extends keyof ColumnTypes}?`
  ? ColumnTypes[Base] | null
  : Type extends keyof ColumnTypes
    ? ColumnTypes[Type]
    : never;

export type Row<Columns extends Record<string, ColumnType>> = { [Name in keyof Columns]: ColumnValue<Columns[Name]> };

/** What can be bound to a parameter. Times are bound as `Date`, byte strings as `Buffer`. */
export type Parameter = string | number | bigint | boolean | Date | Buffer | null | readonly (string | bigint | null)[];

export type Statement<Columns extends Record<string, ColumnType> = Record<string, ColumnType>> = {
  name: string;
  text: string;
  columns: Columns;
};

/** Every statement of the program, for the test that prepares each and compares its columns. */
export const allStatements: Statement[] = [];

/**
 * Declares one SQL statement, prepared once per connection under its name. `columns` lists the columns it returns, in
 * order, and is the type of its rows; a test checks it against what PostgreSQL says.
 */
export function statement<const Columns extends Record<string, ColumnType>>(
  name: string,
  columns: Columns,
  text: string,
): Statement<Columns> {
  const declared = { name, text, columns };
  allStatements.push(declared);
  return declared;
}
