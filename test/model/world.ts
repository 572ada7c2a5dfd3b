import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { accountToAddress } from '@quittance/tron/address';
import { accountFromPublicKey } from '@quittance/tron/public-key';
import pg from 'pg';
import type { Scope } from '../../src/core/domain/api-key.ts';
import { encodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import { insertAddress } from '../../src/core/store/ledger/addresses.ts';
import { addTestAdapter, type ShopAdapter } from '../adapters/fixture.ts';
import { addKey } from '../contract/keys.ts';
import {
  createTestProject,
  eventually,
  startTestService,
  type TestService,
  type TestServiceOptions,
} from '../support/service.ts';
import { endpointLimit, type Model, type ModelAdapter, type Policy } from './model.ts';
import { uuidOf } from './outcome.ts';
import { createRunner } from './runner.ts';

/** Small enough for a run to use up, and so slow that the duration of a run doesn't matter. */
const LIMIT = { perSecond: 0.001, burst: 8 };
/** Nine code words for an amount. */
const SURCHARGE_UNITS = 100n;
/** The projects. Addresses of policy `exact` accept each amount once. */
const PROJECTS: readonly { policy: Policy; addressCount: number; dialect: ModelAdapter['dialect'] }[] = [
  { policy: 'tail', addressCount: 2, dialect: 'epusdt' },
  { policy: 'exact', addressCount: 3, dialect: 'epay' },
  { policy: 'tail-3', addressCount: 1, dialect: 'gmpay' },
];
/** The scopes of each project's keys: the first key has none. All others can create, and most lack some right to read. */
const SCOPES_OF_KEYS: readonly (readonly Scope[] | null)[][] = [
  [null, ['create', 'read', 'webhooks']],
  [null, ['create']],
  [null, ['create', 'events', 'webhooks'], ['webhooks']],
];
const SLOT_MS = 3000;

/** The real service and its dependencies, shared by many runs in separate projects. */
export type ModelService = {
  service: TestService;
  database: pg.Pool;
  limit: Model['limit'];
  sinkUrl: string;
  stop(): Promise<void>;
};

export async function startModelService(
  config: NonNullable<TestServiceOptions['config']> = { rateLimit: LIMIT },
): Promise<ModelService> {
  const service = await startTestService({ config: { ...config, trustProxy: ['127.0.0.1'] } });
  const database = new pg.Pool({ connectionString: service.connectionString, max: 4 });
  const sink = createServer((_, response) => response.writeHead(204).end()).listen(0, '127.0.0.1');
  await once(sink, 'listening');
  const stop = async () => {
    await database.end();
    await service.stop();
    sink.closeAllConnections();
    sink.close();
  };
  const sinkUrl = `http://127.0.0.1:${(sink.address() as AddressInfo).port}`;
  return { service, database, limit: config.rateLimit ?? LIMIT, sinkUrl, stop };
}

export type World = Awaited<ReturnType<typeof createWorld>>;

/** Creates new projects on the service, a client with its own address, and a model of their current state. */
export async function createWorld({ service, database, limit, sinkUrl }: ModelService) {
  const { devnet, payer, clock } = service;
  const client = `10.${[...randomBytes(3)].join('.')}`;
  const { model, projects, keys, adapters } = await makeProjects(service, limit, sinkUrl);
  const statusOf = async (invoiceId: string): Promise<string> => {
    const { rows } = await database.query('select status from invoices where id = $1', [uuidOf(invoiceId)]);
    return rows[0]?.status;
  };
  const countTransfers = async (project: number): Promise<number> => {
    // The event of an unmatched transfer follows a moment later.
    const { rows } = await database.query(
      `select count(*)::int as count from transfers t where project_id = $1
       and (kind = 'matched' or exists (select from events e where e.transfer_id = t.id and e.type like 'transfer.%'))`,
      [projects[project]?.id],
    );
    return rows[0].count;
  };
  /**
   * Keeps the chain's clock from running ahead of the service's, so that new invoices live as long as they should. Returns how much time
   * passed.
   */
  const catchUp = (): number => {
    const passedMs = Math.max(0, devnet.head().timestampMs - clock.now());
    clock.advance(passedMs);
    return passedMs;
  };
  const settle = (): number => {
    devnet.mineUntilSolid();
    return catchUp();
  };
  return {
    model,
    run: createRunner({ service, database, client, model, projects, keys, adapters }),
    /** Sends a transfer and waits until it's recorded. Returns its transaction, and how much time passed. */
    async pay(project: number, to: string, amountMicro: bigint): Promise<{ txId: string; passedMs: number }> {
      const known = await countTransfers(project);
      const txId = await payer.transfer({ contract: devnet.usdtContract, to, amountMicro });
      const passedMs = settle();
      await eventually(
        () => countTransfers(project),
        (count) => count > known,
      );
      return { txId, passedMs };
    },
    /** Lets time pass on the chain, and returns how much. */
    async jump(ms: number): Promise<number> {
      const jumpMs = ms + SLOT_MS;
      clock.advance(jumpMs);
      devnet.mine(1, { timestampMs: Math.floor(clock.now() / SLOT_MS) * SLOT_MS });
      return jumpMs + settle();
    },
    /** Waits until invoices that are overdue by the chain's clock have expired, in the model too. */
    async expireDue({ invoices }: Model): Promise<void> {
      const headMs = devnet.head().timestampMs;
      for (const [invoiceId, invoice] of invoices) {
        if (invoice.status !== 'PENDING' || invoice.expiresMs > headMs) continue;
        await eventually(
          () => statusOf(invoiceId),
          (seen) => seen === 'EXPIRED',
        );
        invoices.set(invoiceId, { ...invoice, status: 'EXPIRED' });
      }
    },
    wait: (ms: number) => clock.advance(ms),
    /** Counts the invoices of the run's projects. */
    async countInvoices(): Promise<number> {
      const ids = projects.map(({ id }) => id);
      const { rows } = await database.query('select count(*)::int as count from invoices where project_id = any($1)', [
        ids,
      ]);
      return rows[0].count;
    },
  };
}

async function makeProjects(service: TestService, limit: Model['limit'], sinkUrl: string) {
  const { db } = service;
  const projects: { id: string; projectId: string }[] = [];
  const keys: { apiKey: string; keyId: string }[] = [];
  const adapters: (ShopAdapter & Pick<ModelAdapter, 'dialect'>)[] = [];
  const model: Model = {
    ...{ policies: PROJECTS.map(({ policy }) => policy), surchargeUnits: SURCHARGE_UNITS, limit, sinkUrl },
    ...{
      keys: [],
      adapters: [],
      endpoints: new Map(),
      addresses: new Map(),
      invoices: new Map(),
      failures: 0,
      feeds: [],
      transfers: [],
    },
  };
  for (const [index, { policy, addressCount, dialect }] of PROJECTS.entries()) {
    const maxSurchargeMicro = SURCHARGE_UNITS * (policy === 'tail-3' ? 1000n : 1n);
    const made = await createTestProject(db, { addressCount: 0, policy, maxSurchargeMicro });
    for (let i = 0; i < addressCount; i++) {
      const account = accountFromPublicKey(secp256k1.getPublicKey(secp256k1.utils.randomSecretKey(), false));
      const address = accountToAddress(account);
      await insertAddress(db, { id: uuidV7(Date.now(), randomBytes(10)), projectId: made.id, account, address });
      model.addresses.set(address, { project: index, isRetired: false });
    }
    for (const scopes of SCOPES_OF_KEYS[index] ?? []) {
      keys.push(await addKey(db, made.id, { scopes }));
      model.keys.push({
        ...{ project: index, isRevoked: false, scopes },
        ...{ tokens: limit.burst, endpointTokens: endpointLimit(limit).burst },
      });
    }
    const kind = dialect === 'epay' ? 'epay' : 'epusdt';
    const adapter = await addTestAdapter(service, kind, made);
    const endpointId = encodeId('whe', adapter.id);
    adapters.push({ ...adapter, dialect });
    const door = { project: index, dialect, isRevoked: false, isRateOld: false, endpointId };
    model.adapters.push({ ...door, tokens: limit.burst });
    const told = { url: `adapter:${kind}`, description: `adapter ${kind}`, isDisabled: false, isOwn: false };
    model.endpoints.set(endpointId, { project: index, ...told });
    const { id } = await addTestAdapter(service, 'price', made);
    const rate = { url: 'adapter:price', description: 'prices in CNY', isDisabled: false, isOwn: false };
    model.endpoints.set(encodeId('whe', id), { project: index, ...rate });
    projects.push(made);
    model.feeds.push([]);
    model.transfers.push([]);
  }
  return { model, projects, keys, adapters };
}
