import { unixMs } from '../domain/time.ts';
import { systemClock } from '../runtime/clock.ts';
import { logLostConnections } from '../runtime/log-lost-connections.ts';
import { pooledRandom } from '../runtime/random.ts';
import { type Connection, type Database, openDatabase } from '../store/db/database.ts';
import { type MigrationHooks, migrate } from '../store/db/migrate.ts';
import { encryptPlainSecrets } from '../webhooks/encrypt-plain-secrets.ts';
import { patiently } from './patiently.ts';
import type { ServiceOptions } from './service-options.ts';

/** Brings the schema up to this release, as its owner where there is one. */
export async function prepareSchema(options: ServiceOptions, db: Database): Promise<void> {
  const { owner, log } = options;
  const applied = owner === undefined ? await migratePatiently(db, options) : await migrateAsOwner(owner, options);
  if (applied.length > 0) log.info({ migrations: applied }, 'the database schema was brought up to date');
}

async function migrateAsOwner(owner: Connection, options: ServiceOptions): Promise<string[]> {
  const { log } = options;
  const onError = logLostConnections(log);
  const ownDb = openDatabase({ connection: owner, poolSize: 1, applicationName: 'quittance', onError });
  return migratePatiently(ownDb, options).finally(() => ownDb.close());
}

function migratePatiently(db: Database, { log, keyRing, clock }: ServiceOptions): Promise<string[]> {
  const now = () => unixMs((clock ?? systemClock).now());
  const hooks: MigrationHooks = {
    onBegin: (migrations) =>
      log.info({ migrations }, 'bringing the database schema up to date; with a large ledger this takes minutes'),
    onBlocked: (blockers, pauseMs) =>
      log.warn(
        { blockers, pauseMs },
        'other sessions hold locks on tables that the upgrade has to change; it tries again',
      ),
    ...(keyRing === null
      ? {}
      : {
          encryptPlainSecrets: (tx) =>
            encryptPlainSecrets(tx, { keyRing: async () => keyRing, log, now, random: pooledRandom }),
        }),
  };
  return patiently(log, () => migrate(db, hooks));
}
