import { randomUUID } from 'node:crypto';
import { encodeId } from '../domain/ids.ts';
import { formatAmount, type MicroUsdt } from '../domain/money.ts';
import type { Network } from '../domain/network.ts';
import type { UnixMs } from '../domain/time.ts';
import { adviseAddresses } from '../payments/watch-capacity.ts';
import type { Logger } from '../runtime/log.ts';
import { createLogThrottle } from '../runtime/log-throttle.ts';
import type { Metrics } from '../runtime/metrics.ts';
import { raiseAlarm } from '../store/chain/alarms.ts';
import type { Sql } from '../store/db/database.ts';
import { noteRefusedAmount } from '../store/ledger/refused-amounts.ts';

/** An order that a shop could not take. */
export type AmountRefusal = { projectId: string; network: Network; requestedMicro: MicroUsdt };

export type AmountRefusalDeps = { db: Sql; log: Logger; metrics: Metrics; now(): UnixMs };

/**
 * Counts requests that found no free payable amount. Once a minute for each project at most it warns, notes the amount and raises the
 * alarm `capacity-low`, which ends when the capacity is measured again and enough is free. The answer does not depend on this: if the
 * database fails meanwhile, the failure is logged, and the next refusal tries again.
 */
export function createAmountRefusals({ db, log, metrics, now }: AmountRefusalDeps) {
  const seldom = createLogThrottle(now);
  return async ({ projectId, network, requestedMicro }: AmountRefusal): Promise<void> => {
    const project = encodeId('prj', projectId);
    metrics.amountUnavailable.inc({ network, project });
    if (!seldom.isDue(projectId)) return;
    const amount = formatAmount(requestedMicro);
    const what = `${project} refused an invoice of ${amount} USDT (AMOUNT_UNAVAILABLE): no payable amount is free.`;
    try {
      const detail = `${what} ${await adviseAddresses(db, projectId)}`;
      log.warn({ project, network, amount }, detail);
      await noteRefusedAmount(db, projectId, requestedMicro, now());
      await raiseAlarm(db, network, { id: randomUUID(), kind: 'capacity-low', subject: project, detail });
    } catch (error) {
      seldom.forget(projectId);
      log.warn({ err: error, project }, 'the alarm of a refused invoice could not be raised');
    }
  };
}
