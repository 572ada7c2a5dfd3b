import type { Sql } from './database.ts';
import { type Parameter, type Row, type Shape, statement } from './statement.ts';

type Run<Values extends readonly unknown[], Answer> = (db: Sql, ...values: Values) => Promise<Answer>;

/**
 * Declares a statement as a function that runs it and returns the rows. `bind` turns the function's arguments into parameters. Use it for
 * statements that need no other code.
 */
export function rowsOf<const Fields extends Shape, Values extends readonly unknown[] = []>(
  name: string,
  shape: Fields,
  text: string,
  bind: (...values: Values) => readonly Parameter[] = () => [],
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
export function rowOf<const Fields extends Shape, Values extends readonly unknown[] = []>(
  name: string,
  shape: Fields,
  text: string,
  bind: (...values: Values) => readonly Parameter[] = () => [],
): Run<Values, Row<Fields> | null> {
  return answerOf(name, shape, text, bind, ([row]) => row ?? null);
}

/** Like `rowsOf`, for a statement without a result. */
export function commandOf<Values extends readonly unknown[] = []>(
  name: string,
  text: string,
  bind: (...values: Values) => readonly Parameter[] = () => [],
): Run<Values, void> {
  return answerOf(name, {}, text, bind, () => undefined);
}

/** Declares a condition as a function that says whether it holds. */
export function conditionOf<Values extends readonly unknown[] = []>(
  name: string,
  condition: string,
  bind: (...values: Values) => readonly Parameter[] = () => [],
): Run<Values, boolean> {
  return answerOf(name, { isMet: 'bool' }, `select ${condition} as is_met`, bind, ([row]) => row?.isMet === true);
}

/** Like `commandOf`, with the number of rows the statement changed. */
export function changesOf<Values extends readonly unknown[]>(
  name: string,
  text: string,
  bind: (...values: Values) => readonly Parameter[],
): Run<Values, number> {
  return answerOf(name, { isDone: 'bool' }, `${text} returning true as is_done`, bind, ({ length }) => length);
}

/** Like `changesOf`, but returns whether the statement changed any row. */
export function attemptOf<Values extends readonly unknown[]>(
  name: string,
  text: string,
  bind: (...values: Values) => readonly Parameter[],
): Run<Values, boolean> {
  const change = changesOf(name, text, bind);
  return async (db, ...values) => (await change(db, ...values)) > 0;
}
