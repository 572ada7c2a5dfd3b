import { randomBytes } from 'node:crypto';
import { unixMs } from '../../src/domain/time.ts';
import { startNotifier } from '../../src/notify/notifier.ts';
import { createKeyRing, parseMasterKey } from '../../src/runtime/key-ring.ts';
import { createLogger } from '../../src/runtime/log.ts';
import { openDatabase } from '../../src/store/db/database.ts';

/** A process that tells operators, to be killed: the database and the master key stand in its environment. */
const connection = JSON.parse(process.env['TEST_DATABASE'] ?? '{}');
const keyRing = createKeyRing([parseMasterKey(process.env['TEST_MASTER_KEY'] ?? '')].flatMap((key) => key ?? []));
const db = openDatabase({ connection, poolSize: 2, applicationName: 'killed', onError: () => undefined });
startNotifier({
  ...{ db, keyRing, random: randomBytes, now: () => unixMs(Date.now()), network: 'devnet', holder: 'killed' },
  ...{ log: createLogger({ level: 'silent' }), pollMs: 20 },
});
process.on('disconnect', () => process.exit());
