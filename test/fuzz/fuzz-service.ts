import { randomUUID } from 'node:crypto';
import { unixMs } from '../../src/domain/time.ts';
import { revokeApiKey } from '../../src/store/access/api-keys.ts';
import { addKey } from '../contract/keys.ts';
import { expandReferences } from '../support/expand-references.ts';
import {
  call,
  createInvoice,
  createTestProject,
  eventually,
  payableOf,
  startTestService,
  type TestService,
  untilStatus,
} from '../support/service.ts';
import type { FuzzTarget } from './fuzz.ts';
import type { OpenApi } from './openapi.ts';
import { PAID_TX } from './shot.ts';

export type FuzzedService = { service: TestService; target: FuzzTarget; metricsPort: number };

/** A service with something of everything that requests can name, and another project, of which nothing may ever be told. */
export async function startFuzzedService(): Promise<FuzzedService> {
  // Each client has an address of its own, so that limits for clients are not all that is ever answered.
  const service = await startTestService({ addressCount: 3, config: { trustProxy: ['127.0.0.1'] } });
  try {
    const { project, db } = service;
    const canary = `canary-${randomUUID()}`;
    const foreign = await createTestProject(db);
    const revoked = await addKey(db, project.id);
    await revokeApiKey(db, revoked.keyId, unixMs(Date.now()));
    const [expired, paid] = [await create(service), await create(service)];
    service.clock.advance(31 * 60_000);
    const { address, amountMicro } = await payableOf(service, paid.invoiceId);
    const paidTx = await service.payer.transfer({ contract: service.devnet.usdtContract, to: address, amountMicro });
    service.devnet.mine(1, { timestampMs: service.clock.now() });
    service.devnet.mineUntilSolid();
    await untilStatus(service, paid.invoiceId, 'PAID');
    await untilStatus(service, expired.invoiceId, 'EXPIRED');
    const pending = await create(service);
    const theirs = await create(service, { apiKey: foreign.apiKey, body: { externalId: canary } });
    const { latest } = await eventually(
      () => feed(service),
      ({ latest }) => latest !== null,
    );
    const document = expandReferences((await call(`${service.url}/openapi.json`)).body as OpenApi);
    const names = {
      ...{
        key: project.apiKey,
        revokedKey: revoked.apiKey,
        event: latest ?? '',
        foreignEvent: `evt_${theirs.invoiceId.slice(4)}`,
      },
      ...{ pending: pending.invoiceId, paid: paid.invoiceId, expired: expired.invoiceId, foreign: theirs.invoiceId },
      ...{
        pendingToken: pending.token,
        paidToken: paid.token,
        expiredToken: expired.token,
        foreignToken: theirs.token,
      },
      [PAID_TX]: paidTx,
    };
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

async function create(service: TestService, overrides: Parameters<typeof createInvoice>[1] = {}) {
  const { status, body } = await createInvoice(service, overrides);
  if (status !== 201) throw new Error(`no invoice: ${JSON.stringify(body)}`);
  return { invoiceId: body.invoiceId as string, token: (body.checkoutUrl as string).split('/').at(-1) ?? '' };
}

async function feed(service: TestService): Promise<{ latest: string | null }> {
  return (await call(`${service.url}/v1/events?limit=1`, { headers: { 'x-api-key': service.project.apiKey } })).body;
}
