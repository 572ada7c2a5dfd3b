import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { type Devnet, startDevnet } from '@quittance/devnet';
import type { Fault } from '@quittance/devnet/faults/faults';
import { createPayer, type Payer } from '@quittance/devnet/payer';
import { accountToAddress, parseAddress } from '@quittance/tron/address';
import { accountFromPublicKey } from '@quittance/tron/public-key';
import { request } from 'undici';
import { formatApiKey } from '../../src/core/domain/api-key.ts';
import { encodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import { parseAmount } from '../../src/core/domain/money.ts';
import { keyMode, type Network } from '../../src/core/domain/network.ts';
import { unlimitedNode } from '../../src/core/domain/node.ts';
import { type Policy, surchargeOf } from '../../src/core/domain/policy.ts';
import type { UnpaidLimits } from '../../src/core/domain/unpaid.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { findCursor } from '../../src/core/store/chain/cursor.ts';
import { acquireLease, releaseLease, watcherLease } from '../../src/core/store/chain/leases.ts';
import type { Database } from '../../src/core/store/db/database.ts';
import { unlistedStatement } from '../../src/core/store/db/statement.ts';
import { insertAddress } from '../../src/core/store/ledger/addresses.ts';
import { insertProject } from '../../src/core/store/ledger/projects.ts';
import { createWebhookSecret } from '../../src/core/webhooks/sign.ts';
import { startInbox } from '../../src/developer/sandbox/inbox.ts';
import { insertApiKey } from '../../src/faces/operator/subjects/keys.ts';
import type { ServiceOptions } from '../../src/server/context.ts';
import { type Service, startService } from '../../src/server/service.ts';
import { addTestEndpoint, TEST_KEY_RING } from './key-ring.ts';
import { PATIENCE_MS } from './patience.ts';
import { createTestDatabase, type TestDatabase } from './postgres.ts';
import { findSteadyPort } from './steady-port.ts';

/** A clock that a test moves: the system's time plus the time it was advanced. */
type TestClock = {
  now(): number;
  advance(ms: number): void;
  /**
   * Freezes the clock except for `advance`, so that nothing depends on the machine's speed. Call the returned function to continue, because
   * following the chain needs a running clock.
   */
  freeze(): () => void;
};

function createTestClock(): TestClock {
  let offsetMs = 0;
  let frozenMs: number | null = null;
  return {
    now: () => (frozenMs ?? Date.now()) + offsetMs,
    advance: (ms) => {
      offsetMs += ms;
    },
    freeze: () => {
      frozenMs = Date.now();
      return () => {
        frozenMs = null;
      };
    },
  };
}

export type TestProject = { id: string; projectId: string; keyId: string; apiKey: string; addresses: string[] };

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape.
export type Json = any;

export type Answer = { status: number; headers: Record<string, string | string[] | undefined>; body: Json };

export type TestService = {
  url: string;
  db: Database;
  connectionString: string;
  /** For changes that a test makes behind the service's back, which the service's own user may not make. */
  ownerString: string;
  devnet: Devnet;
  /** The nodes of the pool in order of preference, each with its faults. The first is the devnet's own. */
  nodes: readonly { url: string; setFault(...faults: readonly Fault[]): void }[];
  payer: Payer;
  project: TestProject;
  webhookSecret: string;
  inboxUrl: string;
  metricsUrl: string;
  clock: TestClock;
  /** Stops the service and starts it again with the same database and chain. */
  restart(): Promise<void>;
  /** Stops only the service; `restart` starts it again. */
  stopService(): Promise<void>;
  stop(): Promise<void>;
};

export type TestServiceOptions = {
  config?: Partial<ServiceOptions['config']>;
  /** Connects to an existing database instead of a new one. */
  connection?: ServiceOptions['connection'];
  /** Puts something between the service and its new database. */
  through?: (connection: TestDatabase['connection']) => Promise<ServiceOptions['connection']>;
  /** A PostgreSQL other than the run's, with the template. */
  server?: Parameters<typeof createTestDatabase>[0];
  /** The node refuses everything until the test fixes it. */
  isNodeDown?: boolean;
  addressCount?: number;
  /** The number of nodes, each of another operator, on the same chain; 1 by default. */
  nodeCount?: number;
  /** How many operators must agree; 1 by default, or 2 with more than one node. */
  agreement?: number;
  producers?: number;
  /** Whether the test's clock is compared with the database's and the chain's. */
  comparesClocks?: boolean;
  /** Receives the service's log, which is discarded by default. */
  log?: ServiceOptions['log'];
  /** The sandbox's controls. By default, the service isn't a sandbox. */
  sandbox?: ServiceOptions['sandbox'];
  /** Makes blocks at this interval. By default, blocks are only made on demand. */
  blockMs?: number;
};

const SILENT = createLogger({ level: 'silent' });
/** How often the watcher looks for blocks, which the devnet only makes on demand. */
const LOOK_MS = 40;

type Cleanups = (() => Promise<unknown>)[];

async function cleanUp(cleanups: Cleanups): Promise<void> {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
}

/** Starts the real service with a real PostgreSQL and a devnet whose blocks the test makes. A failed start leaves nothing behind. */
export async function startTestService(options: TestServiceOptions = {}): Promise<TestService> {
  const cleanups: Cleanups = [];
  try {
    return await startParts(options, cleanups);
  } catch (error) {
    await cleanUp(cleanups);
    throw error;
  }
}

async function startParts(options: TestServiceOptions, cleanups: Cleanups): Promise<TestService> {
  const database = await createTestDatabase(options.server);
  cleanups.push(() => database.drop());
  const folder = await mkdtemp(join(tmpdir(), 'quittance-test-'));
  cleanups.push(() => rm(folder, { recursive: true, force: true }));
  const clock = createTestClock();
  const connection = options.connection ?? (await options.through?.(database.connection)) ?? database.connection;
  const { blockMs = 0 } = options;
  const devnet = await startDevnet({
    dataDir: null,
    blockMs,
    producers: options.producers ?? 5,
    // Blocks mined at the start must not be ahead of the clock, or the network would wait for it.
    ...(blockMs === 0 ? {} : { genesisTimestampMs: Date.now() - 20 * blockMs }),
  });
  cleanups.push(() => devnet.stop());
  devnet.mineUntilSolid();
  const { nodeCount = 1 } = options;
  const nodes: TestService['nodes'][number][] = [devnet];
  while (nodes.length < nodeCount) nodes.push(await devnet.addNode());
  // The payer's wallet uses a node that never fails.
  const wallet = await devnet.addNode();
  if (options.isNodeDown === true) devnet.setFault({ kind: 'unavailable-503' });
  const usdt = parseAddress(devnet.usdtContract);
  if (usdt.kind !== 'ok') throw new Error(usdt.reason);
  const webhookSecret = createWebhookSecret(randomBytes);
  const inbox = await startInbox({
    host: '127.0.0.1',
    port: 0,
    file: join(folder, 'inbox.jsonl'),
    getSecret: async () => webhookSecret,
    clock: { now: () => Date.now() },
  });
  cleanups.push(() => inbox.stop());
  const start = (port: number) =>
    startService({
      config: {
        host: '127.0.0.1',
        port,
        publicUrl: null,
        databasePoolSize: 10,
        roles: ['api', 'watcher', 'webhooks'],
        networks: {
          devnet: {
            nodes: nodes.map(({ url }) => unlimitedNode(url)),
            usdt: usdt.account,
            agreement: options.agreement ?? Math.min(2, nodeCount),
          },
        },
        metrics: { host: '127.0.0.1', port: 0 },
        trustProxy: [],
        rateLimit: { perSecond: 100_000, burst: 100_000 },
        webhooks: { localTargets: true, retentionDays: 90 },
        ...options.config,
      },
      keyRing: TEST_KEY_RING,
      connection,
      log: options.log ?? SILENT,
      ...(options.sandbox === undefined ? {} : { sandbox: options.sandbox }),
      clock,
      comparesClocks: options.comparesClocks ?? false,
      blockMs: blockMs === 0 ? LOOK_MS : blockMs,
      // The test itself blocks this event loop. Tests of load shedding start a separate process.
      lagMs: () => 0,
    });
  let service: Service | null = await start(await findSteadyPort());
  const stopService = async () => {
    await service?.stop();
    service = null;
  };
  cleanups.push(stopService);
  const { db } = service;
  // The chain's clock doesn't run until a node was queried.
  if (options.isNodeDown !== true && (options.config?.roles ?? ['watcher']).includes('watcher')) {
    await eventually(
      () => findCursor(db, 'devnet'),
      (cursor) => cursor !== null,
    );
  }
  const url = service.url ?? '';
  const project = await createTestProject(service.db, { addressCount: options.addressCount ?? 1 });
  await addTestEndpoint(service.db, { projectId: project.id, url: inbox.url, secret: webhookSecret });
  return {
    url,
    get db() {
      if (service === null) throw new Error('the service is stopped');
      return service.db;
    },
    connectionString: database.connectionString,
    ownerString: database.ownerString,
    devnet,
    nodes,
    payer: createPayer({ nodeUrl: wallet.url, privateKey: devnet.payer.privateKey }),
    project,
    webhookSecret,
    inboxUrl: inbox.url,
    get metricsUrl() {
      return service?.metricsUrl ?? '';
    },
    clock,
    stopService,
    restart: async () => {
      await stopService();
      // Uses the same port, so that the test's links and URLs stay valid.
      service = await start(Number(new URL(url).port));
    },
    stop: () => cleanUp(cleanups),
  };
}

export async function createTestProject(
  db: Database,
  options: {
    addressCount?: number;
    network?: Network;
    policy?: Policy;
    maxSurchargeMicro?: bigint;
    invoiceLifetimeMs?: number;
    wasWatched?: boolean;
  } & Partial<UnpaidLimits> = {},
): Promise<TestProject> {
  const { network = 'devnet', addressCount = 1, policy = 'tail' } = options;
  const { maxSurchargeMicro = surchargeOf(policy).usualMicro } = options;
  const { invoiceLifetimeMs = 30 * 60_000, maxUnpaid = null, maxUnpaidPerMinute = null } = options;
  const uuid = () => uuidV7(Date.now(), randomBytes(10));
  const [id, keyId] = [uuid(), uuid()];
  const limits = { maxUnpaid, maxUnpaidPerMinute };
  // Pretends that another process's watcher followed it before; otherwise no invoice could be created.
  if (options.wasWatched !== false) await watchOnce(db, network);
  await insertProject(db, { id, name: 'Test shop', network, policy, maxSurchargeMicro, invoiceLifetimeMs, ...limits });
  const apiKey = formatApiKey(network, keyId, randomBytes(32));
  const secretSha256 = createHash('sha256').update(apiKey).digest();
  await insertApiKey(db, { id: keyId, projectId: id, name: 'test', secretSha256, allowedCidrs: null, expiresAt: null });
  const addresses: string[] = [];
  for (let i = 0; i < addressCount; i++) {
    const account = accountFromPublicKey(secp256k1.getPublicKey(secp256k1.utils.randomSecretKey(), false));
    const address = accountToAddress(account);
    await insertAddress(db, { id: uuid(), projectId: id, account, address });
    addresses.push(address);
  }
  return { id, projectId: encodeId('prj', id), keyId, apiKey, addresses };
}

/** Leaves the same rows as a watcher that ended, without taking the lease from a current holder. With real money, a block was seen too. */
async function watchOnce(db: Database, network: Network): Promise<void> {
  const lease = await acquireLease(db, watcherLease(network), 'a former watcher', 600_000);
  if (lease !== null) await releaseLease(db, lease);
  if (keyMode(network) === 'live') await db.run(seeOnce, [network]);
}

const seeOnce = unlistedStatement(
  '',
  {},
  `insert into chain_cursors (network, solid_number, solid_id, solid_time, genesis_id)
   values ($1, 1, decode(repeat('01', 32), 'hex'), '2026-01-01', decode(repeat('02', 32), 'hex')) on conflict do nothing`,
);

/** Makes an HTTP call and parses its JSON answer. */
export async function call(
  url: string,
  options: { method?: string; headers?: Record<string, string | string[]>; body?: string | Buffer } = {},
): Promise<Answer> {
  const response = await request(url, {
    method: (options.method ?? 'GET') as 'GET',
    headers: options.headers ?? {},
    body: options.body ?? null,
  });
  const text = await response.body.text();
  return { status: response.statusCode, headers: response.headers, body: text === '' ? null : JSON.parse(text) };
}

export type CreateOverrides = { idempotencyKey?: string; apiKey?: string; body?: Record<string, unknown> };

/** Calls `POST /v1/invoices`, by default with a new idempotency key and external id. */
export function createInvoice(service: TestService, overrides: CreateOverrides = {}): Promise<Answer> {
  return call(`${service.url}/v1/invoices`, {
    method: 'POST',
    headers: {
      'x-api-key': overrides.apiKey ?? service.project.apiKey,
      'idempotency-key': overrides.idempotencyKey ?? randomUUID(),
      'content-type': 'application/json',
    },
    body: JSON.stringify({
      amount: '25.00',
      asset: 'USDT',
      network: 'TRON',
      externalId: `order-${randomUUID()}`,
      ...overrides.body,
    }),
  });
}

/** Calls `GET /v1/invoices/:id?expand=payment`. */
export function readInvoice(service: TestService, invoiceId: string): Promise<Answer> {
  return call(`${service.url}/v1/invoices/${invoiceId}?expand=payment`, {
    headers: { 'x-api-key': service.project.apiKey },
  });
}

/** Returns the address and amount of an invoice. */
export async function payableOf(
  service: TestService,
  invoiceId: string,
): Promise<{ address: string; amountMicro: bigint }> {
  const { body } = await readInvoice(service, invoiceId);
  const amount = parseAmount(body.payment.payableAmount);
  if (amount.kind !== 'ok') throw new Error(amount.reason);
  return { address: body.payment.address, amountMicro: amount.amountMicro };
}

/** Sends exactly an invoice's amount; the transfer waits for a block. */
export async function payExactly(service: TestService, invoiceId: string): Promise<void> {
  const { address, amountMicro } = await payableOf(service, invoiceId);
  await service.payer.transfer({ contract: service.devnet.usdtContract, to: address, amountMicro });
}

/** Returns the inbox's webhooks, oldest first. */
export async function inboxOf(service: TestService, invoiceId?: string): Promise<Json[]> {
  const query = invoiceId === undefined ? '' : `?invoiceId=${invoiceId}`;
  return (await call(`${service.inboxUrl}${query}`)).body.data;
}

/** The interval between two checks. It grows, because checks use the processor that the awaited work needs. */
const POLL_MS = { first: 10, longest: 60 };

const UNTOLD = unlistedStatement('', { id: 'uuid' }, 'select transfer_id as id from untold_transfers limit 1');

/** Waits until each unmatched transfer has its event. */
export async function untilTold({ db }: { db: Database }): Promise<void> {
  await eventually(
    () => db.run(UNTOLD, []),
    ({ length }) => length === 0,
  );
}

/** Polls until `look` returns something that `isDone` accepts. On timeout, fails with what it saw last. */
export async function eventually<Seen>(
  look: () => Promise<Seen> | Seen,
  isDone: (seen: Seen) => boolean,
  limitMs = PATIENCE_MS,
): Promise<Seen> {
  const deadline = performance.now() + limitMs;
  for (let pauseMs = POLL_MS.first; ; pauseMs = Math.min(POLL_MS.longest, pauseMs * 1.2)) {
    const seen = await look();
    if (isDone(seen)) return seen;
    if (performance.now() > deadline) {
      throw new Error(
        `not within ${limitMs} ms; last seen: ${JSON.stringify(seen, (_key, value) => (typeof value === 'bigint' ? `${value}` : value))}`,
      );
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

/** Repeats a request while it gets 503, as integrators are advised to: under load, a busy machine refuses some. */
export async function untilServed<Reply extends Pick<Answer, 'status'> & { headers: Record<string, unknown> }>(
  ask: () => Promise<Reply>,
): Promise<Reply> {
  for (;;) {
    const reply = await ask();
    if (reply.status !== 503) return reply;
    await delay(Number(reply.headers['retry-after']) * 1000);
  }
}

/** Creates an invoice with one request, repeated unchanged while it gets 503. */
export function createPatiently(service: TestService, overrides: CreateOverrides = {}): Promise<Answer> {
  const same = {
    idempotencyKey: randomUUID(),
    ...overrides,
    body: { externalId: `order-${randomUUID()}`, ...overrides.body },
  };
  return untilServed(() => createInvoice(service, same));
}

/** Waits for an invoice to reach a status. */
export async function untilStatus(service: TestService, invoiceId: string, status: string): Promise<Json> {
  const answer = await eventually(
    () => readInvoice(service, invoiceId),
    ({ body }) => body.status === status,
  );
  return answer.body;
}
