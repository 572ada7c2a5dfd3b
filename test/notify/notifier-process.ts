import { randomBytes } from 'node:crypto';
import { unixMs } from '../../src/core/domain/time.ts';
import { createKeyRing, parseMasterKey } from '../../src/core/runtime/key-ring.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { openDatabase } from '../../src/core/store/db/database.ts';
import { startNotifier } from '../../src/faces/notify/notifier.ts';

/** A process that notifies operators, to be killed. Its environment has the database and the master key. */
const connection = JSON.parse(process.env['TEST_DATABASE'] ?? '{}');
const keyRing = createKeyRing([parseMasterKey(process.env['TEST_MASTER_KEY'] ?? '')].flatMap((key) => key ?? []));
const db = openDatabase({ connection, poolSize: 2, applicationName: 'killed', onError: () => undefined });
startNotifier({
  ...{ db, keyRing, random: randomBytes, now: () => unixMs(Date.now()), network: 'devnet', holder: 'killed' },
  ...{ log: createLogger({ level: 'silent' }), pollMs: 20 },
});
process.on('disconnect', () => process.exit());
