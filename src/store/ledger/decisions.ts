import type { Sql } from '../db/database.ts';
import { rowsOf } from '../db/rows-of.ts';
import { type SealedTable, sealColumn } from '../db/seal.ts';
import {
  SEALED_ANNULMENT,
  SEALED_LIMITS,
  SEALED_OUTGOING,
  SEALED_PASSED,
  SEALED_RESOLUTION,
} from '../db/sealed-tables.ts';
import { isAsSealed } from '../db/statement.ts';

const isSound = (table: SealedTable) => ({ isSound: isAsSealed({ ...table, isReadOnce: true }) });

/** What operators decide is little; somebody who puts more there is found by the first of it. */
const newest = (name: string, table: SealedTable, order: string) =>
  rowsOf(
    name,
    isSound(table),
    `select ${sealColumn(table, 't.')} as is_sound from ${table.name} t order by ${order} desc limit 1000`,
    () => [],
  );

/** What left each project's addresses lately: "transfers refund" relies on it. */
const outgoing = rowsOf(
  'decisions-outgoing',
  isSound(SEALED_OUTGOING),
  `select ${sealColumn(SEALED_OUTGOING, 't.')} as is_sound
   from (select id from projects order by created_at desc, id limit 1000) p
   cross join lateral (select * from outgoing_transfers o where o.project_id = p.id order by o.block_number desc limit 100) t
   limit 10000`,
  () => [],
);

const limits = rowsOf(
  'decisions-limits',
  isSound(SEALED_LIMITS),
  `select ${sealColumn(SEALED_LIMITS, 't.')} as is_sound from projects t order by created_at desc, id limit 1000`,
  () => [],
);

const DECISIONS = [
  outgoing,
  limits,
  newest('decisions-annulments', SEALED_ANNULMENT, 't.annulled_at'),
  newest('decisions-resolutions', SEALED_RESOLUTION, 't.id'),
  newest('decisions-passed-blocks', SEALED_PASSED, 't.id'),
];

/** Reads the newest decisions of operators, and what left their addresses, which examines the seals. */
export async function examineDecisions(db: Sql): Promise<void> {
  for (const read of DECISIONS) await read(db);
}
