import type { Sql } from './database.ts';
import type { Parameter, Row, Shape, Statement } from './statement.ts';

/** The first row of an answer; `null`: there is none. */
export async function findRow<Fields extends Shape>(
  db: Sql,
  statement: Statement<Fields>,
  parameters: readonly Parameter[],
): Promise<Row<Fields> | null> {
  const [row] = await db.run(statement, parameters);
  return row ?? null;
}
