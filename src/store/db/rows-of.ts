import type { Sql } from './database.ts';
import { type Parameter, type Row, type Shape, statement } from './statement.ts';

/**
 * A statement as the function that runs it: what it is asked with becomes its parameters, and its rows are the answer. For all that
 * need no more than that.
 */
export function rowsOf<const Fields extends Shape, Values extends readonly unknown[]>(
  name: string,
  shape: Fields,
  text: string,
  bind: (...values: Values) => readonly Parameter[],
): (db: Sql, ...values: Values) => Promise<Row<Fields>[]> {
  const declared = statement(name, shape, text);
  return (db, ...values) => db.run(declared, bind(...values));
}

/** The same for a statement that finds one row or none. */
export function rowOf<const Fields extends Shape, Values extends readonly unknown[]>(
  ...declaration: Parameters<typeof rowsOf<Fields, Values>>
): (db: Sql, ...values: Values) => Promise<Row<Fields> | null> {
  const find = rowsOf(...declaration);
  return async (db, ...values) => (await find(db, ...values))[0] ?? null;
}
