import type { Network } from '../domain/network.ts';
import { unixMs } from '../domain/time.ts';
import { type AddressGuard, createAddressGuard } from '../payments/manifest/address-guard.ts';
import { createSealNotifier } from '../payments/row-alarm.ts';
import { systemClock } from '../runtime/clock.ts';
import { logLostConnections } from '../runtime/log-lost-connections.ts';
import { createTeller } from '../store/chain/tell-alarms.ts';
import { type DamagedAddress, describeDamaged } from '../store/db/address-column.ts';
import { createAdmission } from '../store/db/admit-server.ts';
import { CONNECT_TIMEOUT_MS, type Database, openDatabase, type Seals } from '../store/db/database.ts';
import { createSeals } from '../store/db/seals.ts';
import { accountToAddress } from '../tron/address.ts';
import type { ServiceOptions } from './service-options.ts';

/**
 * Pools of connections: `requestDb` for the requests of callers, `db` for everything else. Both may be the same one. What they read of
 * addresses, `addressGuard` has looked at.
 */
export type Databases = { db: Database; requestDb: Database; addressGuard: AddressGuard; seals: Seals | undefined };

/** Three of ten connections: as a rule the watcher and the webhooks have that many statements under way at a time. */
const RESERVED_SHARE = 0.3;
const LEAST_DIVIDED = 4;

/**
 * Where requests share the process with the watcher or the webhooks, those have connections of their own, so that they never stand in a
 * line behind requests. Pools that are too small for that are shared.
 */
export function openDatabases(options: ServiceOptions, onShortage: (what: string) => void): Databases {
  const { config, connection, keyRing, log, clock = systemClock } = options;
  const admission = createAdmission(CONNECT_TIMEOUT_MS);
  let db: Database;
  const toldBy = { db: () => db, log, now: () => unixMs(clock.now()) };
  const tell = createTeller(toldBy);
  const addressGuard = createAddressGuard(config.addressManifest ?? null, ({ network, subject }, why) =>
    tell('address-not-vouched', [network as Network], subject, why),
  );
  const { refuse, refuseRule, passesOver } = addressGuard;
  const onDamaged = (damaged: DamagedAddress) =>
    tell('address-damaged', [damaged.network as Network], accountToAddress(damaged.account), describeDamaged(damaged));
  const addressChecks = { onDamaged, refuse, refuseRule, passesOver };
  const { rowMacs = 'off', networks } = config;
  const onProblem = createSealNotifier({ ...toldBy, networks: Object.keys(networks) as Network[] });
  const seals = rowMacs === 'off' ? undefined : createSeals({ mode: rowMacs, onProblem }, async () => keyRing);
  const onError = logLostConnections(log);
  const open = (poolSize: number) =>
    openDatabase({
      connection,
      admission,
      poolSize,
      applicationName: 'quittance',
      onError,
      addressChecks,
      onShortage,
      ...(seals === undefined ? {} : { seals }),
    });
  const { roles, databasePoolSize } = config;
  if (!roles.includes('api') || roles.length === 1 || databasePoolSize < LEAST_DIVIDED) {
    db = open(databasePoolSize);
    return { db, requestDb: db, addressGuard, seals };
  }
  const reserved = Math.max(2, Math.floor(databasePoolSize * RESERVED_SHARE));
  db = open(reserved);
  return { db, requestDb: open(databasePoolSize - reserved), addressGuard, seals };
}

/** Each pool once. */
export function poolsOf({ db, requestDb }: Pick<Databases, 'db' | 'requestDb'>): Database[] {
  return [...new Set([db, requestDb])];
}
