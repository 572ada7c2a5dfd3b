import type { Sql } from './database.ts';
import { type Parameter, type Row, type Shape, statement } from './statement.ts';

type Run<Values extends readonly unknown[], Answer> = (db: Sql, ...values: Values) => Promise<Answer>;

/**
 * A statement as the function that runs it: what it is asked with becomes its parameters, and its rows are the answer. For all that
 * need no more than that.
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

/** The same for one whose answer is made of its rows. */
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

/** For one that finds one row or none. */
export function rowOf<const Fields extends Shape, Values extends readonly unknown[]>(
  ...declaration: Parameters<typeof rowsOf<Fields, Values>>
): Run<Values, Row<Fields> | null> {
  return answerOf(...declaration, ([row]) => row ?? null);
}

/** For one that answers nothing. */
export function commandOf<Values extends readonly unknown[]>(
  name: string,
  text: string,
  bind: (...values: Values) => readonly Parameter[],
): Run<Values, void> {
  return answerOf(name, {}, text, bind, () => undefined);
}
