import type { MicroUsdt } from '../../domain/money.ts';
import type { UnixMs } from '../../domain/time.ts';
import { answerOf, commandOf } from '../db/rows-of.ts';
import { micro } from '../db/statement.ts';

export const noteRefusedAmount = commandOf(
  'refused-amount-upsert',
  `insert into refused_amounts (project_id, requested_micro, refused_at) values ($1, $2, $3)
   on conflict (project_id, requested_micro) do update set refused_at = excluded.refused_at`,
  (projectId: string, requestedMicro: MicroUsdt, refusedAt: UnixMs) => [projectId, requestedMicro, new Date(refusedAt)],
);

/** Returns the amounts that were refused since a time, latest first. */
export const findRefusedAmounts = answerOf(
  'refused-amount-select',
  { requestedMicro: micro<MicroUsdt>('int8') },
  `select requested_micro from refused_amounts
   where project_id = $1 and refused_at > $2 order by refused_at desc limit $3`,
  (projectId: string, since: UnixMs, limit: number) => [projectId, new Date(since), limit],
  (rows) => rows.map(({ requestedMicro }) => requestedMicro),
);
