import { encodeId } from '../domain/ids.ts';
import { formatAmount, type MicroUsdt } from '../domain/money.ts';
import type { Network } from '../domain/network.ts';
import type { UnixMs } from '../domain/time.ts';
import type { Logger } from '../runtime/log.ts';
import type { Metrics } from '../runtime/metrics.ts';

/** An order that a shop could not take. */
export type AmountRefusal = { projectId: string; network: Network; requestedMicro: MicroUsdt };

const WARN_MS = 60_000;
/** Projects whose last warning is remembered. */
const MAX_REMEMBERED = 10_000;

/** Counts requests that found no free payable amount, and warns of them once a minute for each project at most. */
export function createAmountRefusals({ log, metrics, now }: { log: Logger; metrics: Metrics; now(): UnixMs }) {
  const warnedAt = new Map<string, UnixMs>();
  return ({ projectId, network, requestedMicro }: AmountRefusal): void => {
    const project = encodeId('prj', projectId);
    metrics.amountUnavailable.inc({ network, project });
    const lastAt = warnedAt.get(projectId);
    if (lastAt !== undefined && now() - lastAt < WARN_MS) return;
    if (warnedAt.size >= MAX_REMEMBERED) warnedAt.clear();
    warnedAt.set(projectId, now());
    log.warn(
      { project, network, amount: formatAmount(requestedMicro) },
      `an invoice was refused (AMOUNT_UNAVAILABLE): no payable amount is free. Add addresses: quittance address add --project ${project} T…`,
    );
  };
}
