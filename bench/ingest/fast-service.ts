import { pathToFileURL } from 'node:url';
import { setFlagsFromString, writeHeapSnapshot } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createLogger } from '../../src/core/runtime/log.ts';
import { openKeyRing } from '../../src/core/runtime/open-key-ring.ts';
import { readConfig } from '../../src/server/config/config.ts';

/** The content of BENCH_SERVICE: the path of the release's service.js, the database, and the network's block interval. */
export type FastServicePlan = { module: string; connection: object; blockMs: number };

/** The response to `{ kind: 'memory' }` after a full collection: bytes on V8's heap, and bytes of buffers outside it. */
export type ServiceMemory = { heapUsed: number; external: number };

/**
 * Runs the release's watcher and dispatcher on a network that is faster than the command allows. The settings come from the environment, as
 * usual.
 */
const plan = JSON.parse(process.env['BENCH_SERVICE'] ?? '{}') as FastServicePlan;
const { startService } = (await import(
  pathToFileURL(plan.module).href
)) as typeof import('../../src/server/service.ts');
const read = readConfig(process.env);
if (read.kind !== 'ok') throw new Error(JSON.stringify(read.errors));
const { config } = read;
const log = createLogger({ level: 'warn' });
const connection = plan.connection as Parameters<typeof startService>[0]['connection'];
const keyRing = await openKeyRing(config);
const service = await startService({ config, connection, keyRing, log, blockMs: plan.blockMs });
setFlagsFromString('--expose_gc');
const collectAll = runInNewContext('gc') as () => void;
process.on('message', ({ kind, path }: { kind: 'memory' | 'snapshot'; path: string }) => {
  collectAll();
  if (kind === 'snapshot') writeHeapSnapshot(path);
  const { heapUsed, external } = process.memoryUsage();
  process.send?.({ heapUsed, external } satisfies ServiceMemory);
});
process.on('disconnect', () => process.exit());
process.once('SIGTERM', () => {
  service.stop().finally(() => process.exit());
});
process.send?.({ ready: true, url: service.url });
