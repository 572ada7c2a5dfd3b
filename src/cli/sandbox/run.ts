import { randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../../config.ts';
import { startDevnet } from '../../devnet/devnet.ts';
import { encodeId } from '../../domain/ids.ts';
import { unixMs } from '../../domain/time.ts';
import { systemClock } from '../../runtime/clock.ts';
import type { KeyRing } from '../../runtime/key-ring.ts';
import { lockForService } from '../../runtime/lock-for-service.ts';
import type { Logger } from '../../runtime/log.ts';
import { startService } from '../../service.ts';
import { type Connection, type Database, openDatabase } from '../../store/database.ts';
import { startEmbeddedPostgres } from '../../store/embedded.ts';
import { endedByItself } from '../../store/embedded-failure.ts';
import { migrate } from '../../store/migrate.ts';
import { parseAddress } from '../../tron/address.ts';
import { openNewestSecrets } from '../../webhooks/endpoint-secrets.ts';
import { sealPlainSecrets } from '../../webhooks/seal-plain-secrets.ts';
import { startInbox } from './inbox.ts';
import { openSandboxKeys } from './keys.ts';
import { quickStart } from './quick-start.ts';
import { removeSandboxFile, type SandboxFile, writeSandboxFile } from './sandbox-file.ts';
import { sandboxNode } from './sandbox-node.ts';
import { loadSandboxSecrets, seedSandbox } from './secrets.ts';

/**
 * Runs everything that a first try needs in one process: embedded PostgreSQL, a local TRON network, all roles, a demo
 * project and a receiver for its webhooks. Its state is in the data directory and survives restarts.
 */
export async function runSandbox(
  config: Config,
  log: Logger,
  fail: (error: unknown) => void,
): Promise<{ stop(): Promise<void> }> {
  const { dataDir } = config;
  const parts: (() => Promise<unknown>)[] = [];
  const stop = async () => {
    const failures: unknown[] = [];
    // A part that cannot stop, as on a full disk, must not keep the others running.
    for (const stopPart of parts.splice(0).reverse()) {
      await stopPart().catch((error: unknown) => failures.push(error));
    }
    if (failures.length > 0) throw failures[0];
  };
  try {
    const lock = await lockForService(dataDir);
    parts.push(() => lock.release());
    await removeSandboxFile(dataDir, null);
    const postgres = await startEmbeddedPostgres({
      dataDir,
      log,
      onExit: (exit) => fail(endedByItself(dataDir, exit)),
    });
    parts.push(() => postgres.stop());
    await mkdir(join(dataDir, 'devnet'), { recursive: true, mode: 0o700 });
    const devnet = await startDevnet({
      ...config.devnet,
      dataDir: join(dataDir, 'devnet'),
      onError: (error) => log.error({ err: error }, 'the local network could not write a block and tries again'),
    });
    parts.push(() => devnet.stop());
    const secrets = await loadSandboxSecrets(dataDir, systemClock.now());
    let currentSecret = async () => secrets.webhookSecret;
    const inbox = await startInbox({
      host: '127.0.0.1',
      port: 0,
      file: join(dataDir, 'inbox.jsonl'),
      getSecret: () => currentSecret(),
      clock: systemClock,
    });
    parts.push(() => inbox.stop());
    const usdt = parseAddress(devnet.usdtContract);
    if (usdt.kind !== 'ok') throw new Error(`the devnet's USDT contract is not an address: ${usdt.reason}`);
    if (config.databaseUrl !== null) {
      log.warn(
        'DATABASE_URL is not used: without a network configured this is the sandbox, which has a database of its own. Commands use DATABASE_URL; unset it to try the sandbox',
      );
    }
    const keyRing = await openSandboxKeys(config, (message) => log.warn(message));
    await prepareTables(postgres.owner, keyRing, log);
    const db = openSandboxDatabase(postgres.connection, log);
    parts.push(() => db.close());
    // Before the service starts, so that it sends nothing to where the inbox was the last time.
    await seedSandbox(db, keyRing, secrets, inbox.url);
    // It may have been rotated by hand, as every endpoint's.
    currentSecret = async () =>
      (await openNewestSecrets({ db, keyRing }, secrets.endpointId)).find(({ endsAt }) => endsAt === null)?.secret ??
      secrets.webhookSecret;
    const service = await startService({
      config: {
        ...config,
        networks: { devnet: { nodes: [sandboxNode(devnet)], usdt: usdt.account, agreement: 1 } },
      },
      connection: postgres.connection,
      keyRing,
      log,
      blockMs: config.devnet.blockMs,
    });
    parts.push(() => service.stop());
    const file: SandboxFile = {
      baseUrl: service.url ?? '',
      apiKey: secrets.apiKey,
      projectId: encodeId('prj', secrets.projectId),
      webhookSecret: await currentSecret(),
      inboxUrl: inbox.url,
      nodeUrl: devnet.url,
      grpcUrl: devnet.grpcUrl,
      grpcSolidityUrl: devnet.grpcSolidityUrl,
      usdtContract: devnet.usdtContract,
      addresses: secrets.addresses.map(({ address }) => address),
      retiredAddress: secrets.retired.address,
      payer: devnet.payer,
      pid: process.pid,
    };
    parts.push(() => removeSandboxFile(dataDir, process.pid));
    await writeSandboxFile(dataDir, file);
    log.info({ url: service.url, metricsUrl: service.metricsUrl }, 'sandbox ready');
    process.stdout.write(quickStart(file, `order-${Math.floor(systemClock.now() / 1000)}`));
    return { stop };
  } catch (error) {
    await stop().catch(() => undefined);
    throw error;
  }
}

/** One connection, beside those of the service. */
function openSandboxDatabase(connection: Connection, log: Logger): Database {
  const onError = (error: Error) => log.warn({ err: error }, 'a database connection was lost');
  return openDatabase({ connection, poolSize: 1, applicationName: 'quittance', onError });
}

async function prepareTables(owner: Connection, keyRing: KeyRing, log: Logger): Promise<void> {
  const db = openSandboxDatabase(owner, log);
  const now = () => unixMs(systemClock.now());
  const deps = { keyRing: async () => keyRing, log, now, random: randomBytes };
  try {
    const applied = await migrate(db, { sealPlainSecrets: (tx) => sealPlainSecrets(tx, deps) });
    if (applied.length > 0) log.info({ migrations: applied }, 'the database schema was brought up to date');
  } finally {
    await db.close();
  }
}
