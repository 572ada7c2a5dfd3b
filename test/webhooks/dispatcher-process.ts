import { createKeyRing, parseMasterKey } from '../../src/core/runtime/key-ring.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { createMetrics } from '../../src/core/runtime/metrics.ts';
import { openDatabase } from '../../src/core/store/db/database.ts';
import { startDispatcher } from '../../src/core/webhooks/dispatcher.ts';

/** A dispatcher in a separate process, to be killed. Its environment has the database and the master key. */
const connection = JSON.parse(process.env['TEST_DATABASE'] ?? '{}');
const keyRing = createKeyRing([parseMasterKey(process.env['TEST_MASTER_KEY'] ?? '')].flatMap((key) => key ?? []));
const db = openDatabase({ connection, poolSize: 2, applicationName: 'killed', onError: () => undefined });
startDispatcher({
  ...{ db, keyRing, clock: { now: () => Date.now() }, random: () => 0, localTargets: true },
  ...{ log: createLogger({ level: 'silent' }), metrics: createMetrics() },
});
process.on('disconnect', () => process.exit());
