import type { Network } from '../../domain/network.ts';
import type { Sql } from '../db/database.ts';
import { jsonRows } from '../db/json-rows.ts';
import { answerOf } from '../db/rows-of.ts';
import { hexSeal, sealColumn } from '../db/seal.ts';
import { SEALED_PASSED } from '../db/sealed-tables.ts';
import { count, hex, isAsSealed, listColumns, maybeHex, type Row, statement } from '../db/statement.ts';

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

const judged = { ...passed, isSound: isAsSealed(SEALED_PASSED) } as const;

/** The block that an operator let pass at a height; the newest, if it was decided anew. One that nobody let pass is none. */
export const findPassedBlock = answerOf(
  'passed-block-select',
  judged,
  `select ${listColumns(judged, '', { isSound: sealColumn(SEALED_PASSED, '') })} from passed_blocks
   where network = $1 and number = $2 order by id desc limit 100`,
  (network: Network, number: number) => [network, number],
  (blocks): PassedBlock | null => blocks.find(({ isSound }) => isSound) ?? null,
);

const rows = jsonRows({ ...passed, mac: maybeHex });
const insert = statement(
  'passed-block-insert',
  {},
  `insert into passed_blocks (network, ${rows.columns}) select $1, ${rows.columns} from ${rows.table('$2')}`,
);

/** Notes that a block passes. A second note of the same is refused by constraint. */
export async function insertPassedBlock(tx: Sql, network: Network, block: PassedBlock): Promise<void> {
  const mac = hexSeal(await tx.sealer(), SEALED_PASSED, { ...block, network });
  await tx.run(insert, [network, rows.bind([{ ...block, mac }])]);
}
