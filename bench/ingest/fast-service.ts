import { pathToFileURL } from 'node:url';
import { readConfig } from '../../src/config.ts';
import { createLogger } from '../../src/runtime/log.ts';
import { openKeyRing } from '../../src/runtime/open-key-ring.ts';

/** What this process is told in BENCH_SERVICE: where the release's service.js is, the database, and the rhythm of the network. */
export type FastServicePlan = { module: string; connection: object; blockMs: number };

/** The release's watcher and dispatcher on a network that is faster than the command allows. Settings come as always. */
const plan = JSON.parse(process.env['BENCH_SERVICE'] ?? '{}') as FastServicePlan;
const { startService } = (await import(pathToFileURL(plan.module).href)) as typeof import('../../src/service.ts');
const read = readConfig(process.env);
if (read.kind !== 'ok') throw new Error(JSON.stringify(read.errors));
const { config } = read;
const log = createLogger({ level: 'warn' });
const connection = plan.connection as Parameters<typeof startService>[0]['connection'];
const keyRing = await openKeyRing(config);
const service = await startService({ config, connection, keyRing, log, blockMs: plan.blockMs });
process.on('disconnect', () => process.exit());
process.once('SIGTERM', () => {
  service.stop().finally(() => process.exit());
});
process.send?.({ ready: true });
