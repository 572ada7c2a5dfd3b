import { encodeId } from '../../core/domain/ids.ts';
import { formatAmount, type MicroUsdt } from '../../core/domain/money.ts';
import type { Network } from '../../core/domain/network.ts';
import type { UnixMs } from '../../core/domain/time.ts';
import type { UnpaidRule } from '../../core/domain/unpaid.ts';
import { adviseAddresses } from '../../core/payments/derive-addresses.ts';
import { noteRefusedAmount } from '../../core/payments/measure-capacity.ts';
import { findBusiestUnpaid } from '../../core/payments/unpaid-gate.ts';
import { createLogThrottle, type Logger } from '../../core/runtime/log.ts';
import type { Metrics } from '../../core/runtime/metrics.ts';
import { raiseAlarm } from '../../core/store/chain/alarms.ts';
import type { Database } from '../../core/store/db/database.ts';

export type AmountRefusal = { projectId: string; network: Network; requestedMicro: MicroUsdt };

type RefusalDeps = { db: Database; log: Logger; metrics: Metrics; now(): UnixMs };

/**
 * Counts requests that found no free payable amount. At most once a minute per project, it logs a warning, stores the amount and raises the
 * alarm `capacity-low`. The alarm closes when a later measurement finds enough free amounts. The response to the request doesn't depend on
 * this. If the database fails, the error is logged, and the next refusal tries again.
 */
export function createAmountRefusals({ db, log, metrics, now }: RefusalDeps) {
  const throttle = createLogThrottle(now);
  return async ({ projectId, network, requestedMicro }: AmountRefusal): Promise<void> => {
    const project = encodeId('prj', projectId);
    metrics.amountUnavailable.inc({ network, project });
    if (!throttle.isDue(projectId)) return;
    const amount = formatAmount(requestedMicro);
    const what = `${project} refused an invoice of ${amount} USDT (AMOUNT_UNAVAILABLE): no payable amount is free.`;
    try {
      const detail = `${what} ${await adviseAddresses({ db, now }, projectId)}`;
      log.warn({ project, network, amount }, detail);
      await noteRefusedAmount(db, projectId, requestedMicro, now());
      await raiseAlarm(db, network, { kind: 'capacity-low', subject: project, detail });
    } catch (error) {
      throttle.forget(projectId);
      log.warn({ err: error, project }, 'could not raise the alarm about a refused invoice');
    }
  };
}

export type UnpaidRefusal = { projectId: string; network: Network; rule: UnpaidRule; limit: number };

/**
 * Counts requests beyond the limits on unpaid invoices. At most once a minute per project, it logs a warning and raises the alarm
 * `order-flood`. The process that follows the network closes the alarm. As with refused amounts, the response to the request doesn't depend
 * on this.
 */
export function createUnpaidRefusals({ db, log, metrics, now }: RefusalDeps) {
  const throttle = createLogThrottle(now);
  return async ({ projectId, network, rule, limit }: UnpaidRefusal): Promise<void> => {
    const project = encodeId('prj', projectId);
    metrics.unpaidRefused.inc({ network, project });
    if (!throttle.isDue(projectId)) return;
    try {
      const busiest = await findBusiestUnpaid(db, projectId, now());
      const amount =
        busiest === null
          ? ''
          : ` ${busiest.count} of the recent unpaid invoices are for ${formatAmount(busiest.requestedMicro)} USDT.`;
      const [span, option] =
        rule === 'unpaid' ? ['the last 30 minutes', '--max-unpaid'] : ['the last minute', '--max-unpaid-per-minute'];
      const detail = `${project} has reached its limit of ${limit} unpaid invoices from ${span}.${amount} Quittance refuses new invoices (TOO_MANY_UNPAID). If the shop does not have that many sales, someone is flooding it with orders: limit the number of orders per visitor in the shop (see docs/explained/amounts.md). If the shop is running a sale, raise the limit: quittance project update ${project} ${option} ${limit * 2}`;
      log.warn({ project, network, rule, limit }, detail);
      await raiseAlarm(db, network, { kind: 'order-flood', subject: project, detail });
    } catch (error) {
      throttle.forget(projectId);
      log.warn({ err: error, project }, 'could not raise the alarm about an order flood');
    }
  };
}
