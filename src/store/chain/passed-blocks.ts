import type { Network } from '../../domain/network.ts';
import { jsonRows } from '../db/json-rows.ts';
import { commandOf, rowOf } from '../db/rows-of.ts';
import { count, hex, listColumns, type Row } from '../db/statement.ts';

const passed = {
  number: count,
  blockId: hex(),
  digest: hex(),
  passedAt: 'timestamptz',
  passedBy: 'text',
  reason: 'text',
} as const;

/** A block that no node could prove, and that an operator let pass. `blockId`, and `digest` over all that was shown of it, are 64 hex characters. */
export type PassedBlock = Row<typeof passed>;

/** The block that an operator let pass at a height; the newest, if it was decided anew. */
export const findPassedBlock = rowOf(
  'passed-block-select',
  passed,
  `select ${listColumns(passed)} from passed_blocks where network = $1 and number = $2 order by id desc limit 1`,
  (network: Network, number: number) => [network, number],
);

const rows = jsonRows(passed);

/** Notes that a block passes. A second note of the same is refused by constraint. */
export const insertPassedBlock = commandOf(
  'passed-block-insert',
  `insert into passed_blocks (network, ${rows.columns}) select $1, ${rows.columns} from ${rows.table('$2')}`,
  (network: Network, block: PassedBlock) => [network, rows.bind([block])],
);
