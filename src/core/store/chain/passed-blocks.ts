import type { Network } from '../../domain/network.ts';
import type { Sql } from '../db/database.ts';
import { rowsOf } from '../db/rows-of.ts';
import { hexSeal, sealColumn } from '../db/seal.ts';
import { SEALED_PASSED } from '../db/sealed-tables.ts';
import { count, hex, isAsSealed, jsonRows, listColumns, maybeHex, type Row, statement } from '../db/statement.ts';

const passed = {
  number: count,
  blockId: hex(),
  digest: hex(),
  passedAt: 'timestamptz',
  passedBy: 'text',
  reason: 'text',
} as const;

/**
 * A block that no node could prove but that an operator let pass. `blockId` has 64 hex characters, and so has `digest`, which covers
 * everything that nodes showed for the block.
 */
type PassedBlock = Row<typeof passed>;

const judged = { id: count, ...passed, isSound: isAsSealed(SEALED_PASSED) } as const;

const PAGE = 1000;
const listPassed = rowsOf(
  'passed-blocks-list',
  judged,
  `select ${listColumns(judged, '', { isSound: sealColumn(SEALED_PASSED, '') })} from passed_blocks
   where network = $1 and number = $2 and id < $3 order by id desc limit ${PAGE}`,
  (network: Network, number: number, before: number) => [network, number, before],
);

/**
 * Returns the block that an operator let pass at a height. If there were several decisions, the newest one counts. Rows with a wrong seal
 * are ignored, however many there are.
 */
export async function findPassedBlock(db: Sql, network: Network, number: number): Promise<PassedBlock | null> {
  for (let before = Number.MAX_SAFE_INTEGER; ; ) {
    const blocks = await listPassed(db, network, number, before);
    const found = blocks.find(({ isSound }) => isSound);
    const last = blocks.at(-1);
    if (found !== undefined || last === undefined || blocks.length < PAGE) return found ?? null;
    before = last.id;
  }
}

const rows = jsonRows({ ...passed, mac: maybeHex });
const insert = statement(
  'passed-block-insert',
  {},
  `insert into passed_blocks (network, ${rows.columns}) select $1, ${rows.columns} from ${rows.table('$2')}`,
);

/** Records that an operator let a block pass. A constraint refuses a second record for the same block. */
export async function insertPassedBlock(tx: Sql, network: Network, block: PassedBlock): Promise<void> {
  const mac = hexSeal(await tx.sealer(), SEALED_PASSED, { ...block, network });
  await tx.run(insert, [network, rows.bind([{ ...block, mac }])]);
}
