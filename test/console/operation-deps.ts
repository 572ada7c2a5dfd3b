import { randomBytes } from 'node:crypto';
import type { UnixMs } from '../../src/core/domain/time.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import type { ConsoleDeps } from '../../src/faces/console/page/routes.ts';
import { doctorSettings } from '../../src/faces/operator/doctor/check.ts';
import { runDoctor } from '../../src/faces/operator/doctor/run-doctor.ts';
import { NO_MANIFEST, type OperationDeps } from '../../src/faces/operator/operation.ts';
import { readConfig } from '../../src/server/config/config.ts';
import { TEST_KEY_RING } from '../support/key-ring.ts';

/** The dependencies of operations, besides the database, for a test's console that queries no nodes. */
export function operationDeps(own: Pick<OperationDeps, 'db' | 'now' | 'random'>): OperationDeps {
  return {
    ...own,
    config: {
      ...{
        masterKeys: [TEST_KEY_RING.current().bytes.toString('base64')],
        databaseUrl: 'postgres://',
        dataDir: '/nonexistent',
      },
      ...{ sandbox: false, webhooks: { localTargets: true, retentionDays: 90 }, networks: {} },
    },
    consoleUrl: null,
    note: () => undefined,
    log: createLogger({ level: 'silent' }),
    addressGuard: NO_MANIFEST,
    networks: ['devnet'],
    nodes: () => Promise.reject(new Error('no node is asked here')),
    ...{ publicUrl: () => '', randomBelow: () => 0 },
  };
}

/** The process of a test's console, with an environment. */
export function ownProcess(startedAt: UnixMs): Pick<ConsoleDeps, 'process' | 'settings' | 'examine'> {
  const read = readConfig({ QUITTANCE_NILE_NODES: 'https://nile.trongrid.io,https://a-node.of-somebody-else.example' });
  if (read.kind === 'invalid') throw new Error(JSON.stringify(read.errors));
  const { config } = read;
  const settings = doctorSettings(
    { ...config, port: 0 },
    { networks: [], problem: 'no network is looked at here', sandboxUrl: null },
  );
  const around = { settings, database: { problem: 'no database is looked at here' }, now: () => startedAt };
  return {
    process: { release: '0.0.0-test', roles: ['api', 'console'], startedAt },
    settings: config.settings,
    examine: (actor) =>
      runDoctor({ ...around, random: randomBytes, nodeVersion: process.versions.node, describeError: String }, actor),
  };
}
