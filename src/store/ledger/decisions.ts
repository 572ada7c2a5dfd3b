import type { Sql } from '../db/database.ts';
import { rowsOf } from '../db/rows-of.ts';
import { type SealedTable, sealColumn } from '../db/seal.ts';
import { SEALED_ANNULMENT, SEALED_PASSED, SEALED_RESOLUTION } from '../db/sealed-tables.ts';
import { isAsSealed } from '../db/statement.ts';

/** What operators decide is little; somebody who puts more there is found by the first of it. */
const newest = (name: string, table: SealedTable, order: string) =>
  rowsOf(
    name,
    { isSound: isAsSealed({ ...table, isReadOnce: true }) },
    `select ${sealColumn(table, 't.')} as is_sound from ${table.name} t order by ${order} desc limit 1000`,
    () => [],
  );

const DECISIONS = [
  newest('decisions-annulments', SEALED_ANNULMENT, 't.annulled_at'),
  newest('decisions-resolutions', SEALED_RESOLUTION, 't.id'),
  newest('decisions-passed-blocks', SEALED_PASSED, 't.id'),
];

/** Reads the newest decisions of operators about transfers and blocks, which examines their seals. */
export async function examineDecisions(db: Sql): Promise<void> {
  for (const read of DECISIONS) await read(db);
}
