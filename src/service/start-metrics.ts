import { startMetricsServer } from '../web/metrics-server.ts';
import type { Context } from './context.ts';
import { poolsOf } from './open-databases.ts';

/** Serves Prometheus; `null` where it is off. */
export async function startMetrics(context: Context) {
  const { config, metrics } = context;
  if (config.metrics === null) return null;
  const refresh = () => {
    const stats = poolsOf(context).map((pool) => pool.stats());
    for (const state of ['total', 'idle', 'waiting'] as const) {
      const count = stats.reduce((sum, pool) => sum + pool[state], 0);
      metrics.poolConnections.set({ state }, count);
    }
  };
  return startMetricsServer(config.metrics, { registry: metrics.registry, refresh, readiness: context.readiness });
}
