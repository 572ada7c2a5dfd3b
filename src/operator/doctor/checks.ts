import * as addresses from './address-checks.ts';
import * as backups from './backup-checks.ts';
import type { Check } from './check.ts';
import * as databases from './database-checks.ts';
import * as environment from './environment-checks.ts';
import * as ledgers from './ledger-checks.ts';
import * as networks from './network-checks.ts';
import * as nodes from './node-checks.ts';
import * as projects from './project-checks.ts';
import * as services from './service-checks.ts';

/** Everything that is looked at, in the order in which it is told. */
export const CHECKS: readonly Check[] = [
  ...[environment.configuration, environment.nodeRelease, environment.clockDatabase, environment.clockChain],
  ...[databases.database, databases.postgresRelease, databases.databaseRights, databases.databaseDisk],
  ...[databases.databaseDurability, databases.databaseConnections],
  ...[ledgers.migrations, ledgers.schema, ledgers.ledger, ledgers.masterKey, ledgers.seals],
  ...[nodes.nodesAnswer, nodes.nodesGenesis, nodes.nodesOperators, nodes.nodesLatency, nodes.nodesFresh],
  ...[nodes.nodesBudget, nodes.nodesAgree],
  ...[networks.networksWatched, networks.chain, networks.alarms],
  ...[services.service, services.publicUrl, services.streams, services.proxy],
  ...[projects.receivers, projects.capacity, projects.supportContact],
  ...[addresses.addressesAttested, addresses.addressesOwn],
  ...[backups.backupAge, backups.backupVerified],
];
