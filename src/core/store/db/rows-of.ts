import type { Sql } from './database.ts';
import { type Parameter, type Row, type Shape, statement } from './statement.ts';

type Run<Values extends readonly unknown[], Answer> = (db: Sql, ...values: Values) => Promise<Answer>;

/**
 * Declares a statement as a function that runs it and returns the rows. `bind` turns the function's arguments into parameters. Use it for
 * statements that need no other code.
 */
export function rowsOf<const Fields extends Shape, Values extends readonly unknown[]>(
  name: string,
  shape: Fields,
  text: string,
  bind: (...values: Values) => readonly Parameter[],
): Run<Values, Row<Fields>[]> {
  const declared = statement(name, shape, text);
  return (db, ...values) => db.run(declared, bind(...values));
}

/** Like `rowsOf`, with a result computed from the rows. */
export function answerOf<const Fields extends Shape, Values extends readonly unknown[], Answer>(
  name: string,
  shape: Fields,
  text: string,
  bind: (...values: Values) => readonly Parameter[],
  answer: (rows: Row<Fields>[]) => Answer,
): Run<Values, Answer> {
  const read = rowsOf(name, shape, text, bind);
  return async (db, ...values) => answer(await read(db, ...values));
}

/** Like `rowsOf`, but for a statement that returns at most one row. */
export function rowOf<const Fields extends Shape, Values extends readonly unknown[]>(
  ...declaration: Parameters<typeof rowsOf<Fields, Values>>
): Run<Values, Row<Fields> | null> {
  return answerOf(...declaration, ([row]) => row ?? null);
}

/** Like `rowsOf`, for a statement without a result. */
export function commandOf<Values extends readonly unknown[]>(
  name: string,
  text: string,
  bind: (...values: Values) => readonly Parameter[],
): Run<Values, void> {
  return answerOf(name, {}, text, bind, () => undefined);
}
