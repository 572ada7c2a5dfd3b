import { randomBytes } from 'node:crypto';
import { type Devnet, startDevnet } from '@quittance/devnet';
import { createPayer } from '@quittance/devnet/payer';
import pg from 'pg';
import { type Cluster, startCluster } from '../../deploy/ha/cluster.ts';
import type { Programs } from '../../deploy/ha/requirements.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { createKeyRing, createMasterKey } from '../../src/core/runtime/key-ring.ts';
import { openDatabase } from '../../src/core/store/db/database.ts';
import { migrate } from '../../src/core/store/db/migrate.ts';
import { createWebhookSecret } from '../../src/core/webhooks/sign.ts';
import { addWebhookEndpoint } from '../../src/faces/operator/subjects/webhooks.ts';
import { createTestProject } from '../support/service.ts';
import { type Load, startLoad } from './load.ts';
import { type OurProcess, startOurProcess } from './our-process.ts';
import { type Receiver, startReceiver } from './receiver.ts';

/** A shop on a replicated PostgreSQL: two of our processes with every role, a chain, a receiver, and customers. */
export type World = {
  cluster: Cluster;
  devnet: Devnet;
  processes: readonly OurProcess[];
  receiver: Receiver;
  /** The environment for our commands. */
  env: Record<string, string>;
  startLoad(): Load;
  stop(): Promise<void>;
};

const PROCESS_COUNT = 2;
const BLOCK_MS = 1000;
/** No invoice expires during the test, so that unpaid ones stay as they were acknowledged. */
const LIFETIME_MS = 86_400_000;

export async function startWorld(programs: Programs): Promise<World> {
  const stops: (() => Promise<unknown>)[] = [];
  const stop = async () => {
    for (const each of stops.splice(0).reverse()) await each();
  };
  try {
    const cluster = await startCluster(programs);
    stops.push(() => cluster.stop());
    const devnet = await startDevnet({ dataDir: null, blockMs: BLOCK_MS, producers: 5 });
    stops.push(() => devnet.stop());
    const secret = createWebhookSecret(randomBytes);
    const receiver = await startReceiver(secret);
    stops.push(() => receiver.stop());
    const masterKey = createMasterKey();
    const apiKey = await prepareShop(cluster, { receiver, secret, masterKey });
    const env = {
      DATABASE_URL: cluster.databaseUrl,
      QUITTANCE_PUBLIC_URL: 'https://pay.example.com',
      QUITTANCE_DEVNET_NODES: devnet.url,
      QUITTANCE_DEVNET_USDT: devnet.usdtContract,
      QUITTANCE_MASTER_KEY: masterKey.bytes.toString('base64'),
      QUITTANCE_WEBHOOK_LOCAL_TARGETS: 'allow',
      QUITTANCE_RATE_LIMIT: '100000',
      QUITTANCE_RATE_BURST: '1000000',
    };
    const processes: OurProcess[] = [];
    for (let index = 0; index < PROCESS_COUNT; index += 1) {
      const started = await startOurProcess(env);
      processes.push(started);
      stops.push(() => started.end('SIGTERM'));
    }
    const payer = createPayer({ nodeUrl: devnet.url, privateKey: devnet.payer.privateKey });
    const urls = processes.map(({ url }) => url);
    return {
      ...{ cluster, devnet, processes, receiver, env, stop },
      startLoad: () => startLoad({ urls, apiKey, payer, usdt: devnet.usdtContract }),
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Creates a project with addresses and an endpoint. Returns its API key. */
async function prepareShop(
  cluster: Cluster,
  {
    receiver,
    secret,
    masterKey,
  }: { receiver: Receiver; secret: string; masterKey: ReturnType<typeof createMasterKey> },
): Promise<string> {
  const open = (connection: string) =>
    openDatabase({ connection, poolSize: 2, applicationName: 'test', onError: () => undefined });
  const owner = open(cluster.databaseOwnerUrl);
  await migrate(owner).finally(() => owner.close());
  const db = open(cluster.databaseUrl);
  try {
    const project = await createTestProject(db, { addressCount: 4 });
    await db.script(`update projects set invoice_lifetime_ms = ${LIFETIME_MS}`);
    const keyRing = createKeyRing([masterKey]);
    await addWebhookEndpoint(
      { db, keyRing, now: unixMs(Date.now()), random: randomBytes },
      { id: crypto.randomUUID(), projectId: project.id, url: receiver.url, secret },
    );
    return project.apiKey;
  } finally {
    await db.close();
  }
}

/** Runs one statement on one server of the cluster. */
export async function queryOn(
  connection: pg.ClientConfig,
  text: string,
  values: unknown[] = [],
): Promise<Record<string, string>[]> {
  const client = new pg.Client(connection);
  await client.connect();
  try {
    return (await client.query(text, values)).rows;
  } finally {
    await client.end();
  }
}
