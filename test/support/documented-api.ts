import Fastify, { type FastifyInstance } from 'fastify';
import { unixMs } from '../../src/core/domain/time.ts';
import { SCENARIO_NAMES } from '../../src/developer/scenarios/scenarios.ts';
import type { ApiDeps } from '../../src/faces/api/api-deps.ts';
import { registerEvents } from '../../src/faces/api/events.ts';
import { registerInvoices } from '../../src/faces/api/invoices.ts';
import { registerOpenApi } from '../../src/faces/api/openapi.ts';
import { registerSandbox, type SandboxControls } from '../../src/faces/api/sandbox.ts';
import { registerTransfers } from '../../src/faces/api/transfers.ts';
import { registerWebhookEndpoints } from '../../src/faces/api/webhook-endpoints.ts';
import { readClients } from '../../src/faces/web/client-address.ts';

/** Creates the API's document and reference without a database. Its routes exist only to be described, and must not be called. */
export async function createDocumentedApi({ isSandbox }: { isSandbox: boolean }): Promise<FastifyInstance> {
  const app = Fastify({ forceCloseConnections: true });
  readClients(app, () => false);
  await registerOpenApi(app, { publicUrl: () => 'https://pay.example.com', now: () => unixMs(0), isSandbox });
  const unused = {} as ApiDeps;
  registerInvoices(app, unused);
  registerEvents(app, unused);
  registerTransfers(app, unused);
  registerWebhookEndpoints(app, { rateLimit: { perSecond: 100, burst: 200 }, now: () => unixMs(0) } as Parameters<
    typeof registerWebhookEndpoints
  >[1]);
  if (isSandbox) registerSandbox(app, unused, { scenarios: SCENARIO_NAMES } as unknown as SandboxControls);
  return app;
}
