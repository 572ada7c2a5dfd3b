import type { Gauge } from 'prom-client';
import type { Network } from '../../domain/network.ts';
import type { Metrics } from '../../runtime/metrics.ts';

/**
 * Takes what only the leader of a network knows out of the metrics of this process, which is not: else an alarm that is over, or a chain that
 * is seen again, would look otherwise here for as long as it stands by.
 */
export async function forgetGauges(metrics: Metrics, network: Network): Promise<void> {
  const plain = [
    ...[metrics.chainHeadNumber, metrics.chainSolidNumber, metrics.chainOwnSolidNumber, metrics.chainProcessedNumber],
    ...[metrics.chainLagBlocks, metrics.chainCatchUpRate, metrics.chainCatchUpSeconds, metrics.chainBlind],
  ];
  for (const gauge of plain) gauge.remove({ network });
  const detailed = [
    ...[metrics.alarmsOpen, metrics.balanceDifference, metrics.capacityFreeRatio, metrics.capacityDaysLeft],
  ] as Gauge[];
  for (const gauge of detailed) {
    const { values } = await gauge.get();
    for (const { labels } of values) if (labels['network'] === network) gauge.remove(labels);
  }
}
