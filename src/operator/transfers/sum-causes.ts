import { CAUSE_CODES, type CauseCode } from '../../domain/mismatch.ts';
import { formatAmount, microUsdt } from '../../domain/money.ts';
import { diagnoseTransfers } from '../../payments/mismatch/diagnose-transfers.ts';
import type { Database } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';
import { limitTime } from '../limit-time.ts';
import { selectProject } from '../projects/select-project.ts';
import { listDeskTransfers } from './transfer-desk.ts';
import type { CauseSumsView } from './views.ts';

/** More than wait in a shop that looks after them, and diagnosed in a few tenths of a second. */
const MAX_DIAGNOSED = 100;
const TIMEOUT_MS = 5000;

/** What waits for a decision, by its likeliest cause: of the newest 100 transfers. The largest sum first. */
export async function sumCauses(
  { db }: { db: Database },
  actor: Actor,
  { projectId }: { projectId: string | undefined },
): Promise<CauseSumsView> {
  const project = await selectProject(db, actor, projectId);
  return db.snapshot(async (tx) => {
    await limitTime(tx, TIMEOUT_MS);
    const filter = { kinds: ['unmatched', 'duplicate'], state: 'open', from: null, until: null, before: null } as const;
    const found = await listDeskTransfers(tx, project.id, { ...filter, limit: MAX_DIAGNOSED + 1 });
    const summed = found.slice(0, MAX_DIAGNOSED);
    const causes = await diagnoseTransfers(
      tx,
      summed.map(({ id }) => id),
    );
    const sums = new Map<CauseCode, { count: number; micro: bigint }>();
    for (const { id, amountMicro } of summed) {
      const code = causes.get(id)?.[0]?.code ?? 'UNKNOWN';
      const { count, micro } = sums.get(code) ?? { count: 0, micro: 0n };
      sums.set(code, { count: count + 1, micro: micro + amountMicro });
    }
    const rows = CAUSE_CODES.flatMap((code) => ({ code, ...(sums.get(code) ?? { count: 0, micro: 0n }) }));
    const data = rows
      .filter(({ count }) => count > 0)
      .toSorted((a, b) => (a.micro < b.micro ? 1 : a.micro > b.micro ? -1 : 0))
      .map(({ code, count, micro }) => ({ code, count, amount: formatAmount(microUsdt(micro)) }));
    return { data, isAll: found.length === summed.length };
  });
}
