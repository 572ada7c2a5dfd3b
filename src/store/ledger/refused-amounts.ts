import type { MicroUsdt } from '../../domain/money.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Sql } from '../db/database.ts';
import { micro, statement } from '../db/statement.ts';

const upsert = statement(
  'refused-amount-upsert',
  {},
  `insert into refused_amounts (project_id, requested_micro, refused_at) values ($1, $2, $3)
   on conflict (project_id, requested_micro) do update set refused_at = excluded.refused_at`,
);

/** Notes that an invoice of this amount was refused. */
export async function noteRefusedAmount(
  db: Sql,
  projectId: string,
  requestedMicro: MicroUsdt,
  refusedAt: UnixMs,
): Promise<void> {
  await db.run(upsert, [projectId, requestedMicro, new Date(refusedAt)]);
}

const select = statement(
  'refused-amount-select',
  { requestedMicro: micro<MicroUsdt>('int8') },
  `select requested_micro from refused_amounts
   where project_id = $1 and refused_at > $2 order by refused_at desc limit $3`,
);

/** The amounts that were refused since a time, the latest first. */
export async function findRefusedAmounts(
  db: Sql,
  projectId: string,
  since: UnixMs,
  limit: number,
): Promise<MicroUsdt[]> {
  const rows = await db.run(select, [projectId, new Date(since), limit]);
  return rows.map(({ requestedMicro }) => requestedMicro);
}
