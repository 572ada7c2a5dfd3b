import { randomBytes, randomUUID } from 'node:crypto';
import { SCOPES } from '../../src/core/domain/api-key.ts';
import { encodeId } from '../../src/core/domain/ids.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { createWebhookSecret } from '../../src/core/webhooks/sign.ts';
import { createSandboxControls } from '../../src/developer/sandbox/run-sandbox.ts';
import { type Sandbox, sandboxNotRunning } from '../../src/developer/sandbox/sandbox-file.ts';
import { revokeApiKey } from '../../src/faces/operator/subjects/keys.ts';
import { addTestAdapter } from '../adapters/fixture.ts';
import { addKey } from '../contract/keys.ts';
import { expandReferences } from '../support/expand-references.ts';
import { addTestEndpoint, TEST_KEY_RING } from '../support/key-ring.ts';
import {
  type Answer,
  call,
  createInvoice,
  createTestProject,
  eventually,
  startTestService,
  type TestService,
  untilStatus,
} from '../support/service.ts';
import type { FuzzTarget } from './fuzz.ts';
import type { OpenApi } from './openapi.ts';
import { type Names, OPEN_INVOICE, PAID_TX } from './shot.ts';

export type FuzzedService = { service: TestService; target: FuzzTarget; metricsPort: number };

/** These scenarios need blocks, which only the test makes. */
const WAITING = new Set<string>(['late', 'orphaned']);

/** Starts a service with something of everything that requests can name, and another project, about which no answer may reveal anything. */
export async function startFuzzedService(): Promise<FuzzedService> {
  let sandbox: Sandbox | null = null;
  const controls = createSandboxControls(() => sandbox ?? sandboxNotRunning('of the test'), {
    ...{ keyRing: TEST_KEY_RING, localTargets: true },
  });
  const service = await startTestService({
    addressCount: 3,
    // Each client has its own address, so that not every answer is a client limit.
    config: { trustProxy: ['127.0.0.1'] },
    sandbox: { ...controls, scenarios: controls.scenarios.filter((name) => !WAITING.has(name)) },
  });
  try {
    sandbox = sandboxOf(service);
    const canary = `canary-${randomUUID()}`;
    const names = await fillService(service, canary);
    const document = expandReferences((await call(`${service.url}/openapi.json`)).body as OpenApi);
    const port = Number(new URL(service.url).port);
    return {
      service,
      target: { port, document, names, canary },
      metricsPort: Number(new URL(service.metricsUrl).port),
    };
  } catch (error) {
    await service.stop();
    throw error;
  }
}

function sandboxOf({ url, inboxUrl, webhookSecret, project, devnet, db }: TestService): Sandbox {
  const { apiKey, projectId, addresses, id } = project;
  return {
    ...{ baseUrl: url, apiKey, projectId, webhookSecret, inboxUrl, addresses, retiredAddress: addresses[2] ?? '' },
    ...{ nodeUrl: devnet.url, grpcUrl: devnet.grpcUrl, grpcSolidityUrl: devnet.grpcSolidityUrl },
    ...{ usdtContract: devnet.usdtContract, payer: devnet.payer, pid: process.pid, db, projectUuid: id },
  };
}

/** Creates invoices, payments and transfers in both projects. Returns the names by which requests refer to them. */
async function fillService(service: TestService, canary: string): Promise<Names> {
  const { project, db } = service;
  const foreign = await createTestProject(db);
  const revoked = await addKey(db, project.id);
  await revokeApiKey(db, revoked.keyId, unixMs(Date.now()));
  const [all, reading] = [
    await addKey(db, project.id, { scopes: SCOPES }),
    await addKey(db, project.id, { scopes: ['read'] }),
  ];
  const secret = createWebhookSecret(randomBytes);
  await addTestAdapter(service, 'price');
  const [endpoint, foreignEndpoint] = [randomUUID(), randomUUID()];
  await addTestEndpoint(db, { id: endpoint, projectId: project.id, url: 'http://127.0.0.1:9/', secret });
  await addTestEndpoint(db, {
    id: foreignEndpoint,
    projectId: foreign.id,
    url: `http://127.0.0.1:9/${canary}`,
    secret,
  });
  const [expired, paid] = [await create(service), await create(service)];
  service.clock.advance(31 * 60_000);
  service.devnet.mine(1, { timestampMs: service.clock.now() });
  const paidTx = await payTwice(service, paid.invoiceId, project.apiKey);
  await untilStatus(service, expired.invoiceId, 'EXPIRED');
  const [pending, open] = [await create(service), await create(service)];
  const theirs = await create(service, { apiKey: foreign.apiKey, body: { externalId: canary } });
  await payTwice(service, theirs.invoiceId, foreign.apiKey);
  const { latest: event } = (await ask(service, project.apiKey, '/v1/events?limit=1')).body;
  return {
    ...{ endpoint: encodeId('whe', endpoint), foreignEndpoint: encodeId('whe', foreignEndpoint) },
    ...{
      key: all.apiKey,
      readingKey: reading.apiKey,
      revokedKey: revoked.apiKey,
      event,
      foreignEvent: `evt_${theirs.invoiceId.slice(4)}`,
    },
    ...{ pending: pending.invoiceId, paid: paid.invoiceId, expired: expired.invoiceId, foreign: theirs.invoiceId },
    ...{ pendingToken: pending.token, paidToken: paid.token, expiredToken: expired.token, foreignToken: theirs.token },
    ...{ epusdt: await adapterOf(service, 'epusdt'), epay: await adapterOf(service, 'epay') },
    transfer: await duplicateOf(service, project.apiKey),
    foreignTransfer: await duplicateOf(service, foreign.apiKey),
    [PAID_TX]: paidTx,
    [OPEN_INVOICE]: open.invoiceId,
  };
}

async function adapterOf(service: TestService, kind: 'epusdt' | 'epay'): Promise<string> {
  return encodeId('whe', (await addTestAdapter(service, kind)).id);
}

/** Pays an invoice, and again with a duplicate. Returns the transaction that paid it. */
async function payTwice(service: TestService, invoiceId: string, apiKey: string): Promise<string> {
  const { payment } = (await ask(service, apiKey, `/v1/invoices/${invoiceId}?expand=payment`)).body;
  const { devnet, payer } = service;
  const amountMicro = BigInt(payment.payableAmount.replace('.', ''));
  const transfer = { contract: devnet.usdtContract, to: payment.address, amountMicro };
  const txId = await payer.transfer(transfer);
  await payer.transfer(transfer);
  devnet.mineUntilSolid();
  await eventually(
    () => ask(service, apiKey, '/v1/transfers'),
    ({ body }) => body.data.length > 0,
  );
  return txId;
}

async function duplicateOf(service: TestService, apiKey: string): Promise<string> {
  return (await ask(service, apiKey, '/v1/transfers')).body.data[0].transferId;
}

async function create(service: TestService, overrides: Parameters<typeof createInvoice>[1] = {}) {
  const { status, body } = await createInvoice(service, overrides);
  if (status !== 201) throw new Error(`no invoice: ${JSON.stringify(body)}`);
  return { invoiceId: body.invoiceId as string, token: (body.checkoutUrl as string).split('/').at(-1) ?? '' };
}

function ask(service: TestService, apiKey: string, path: string): Promise<Answer> {
  return call(service.url + path, { headers: { 'x-api-key': apiKey } });
}
