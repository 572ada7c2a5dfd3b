import { randomBytes } from 'node:crypto';
import { parseAddress } from '@quittance/tron/address';
import { onTestFinished } from 'vitest';
import { formatAmount, microUsdt } from '../../src/core/domain/money.ts';
import { unlimitedNode } from '../../src/core/domain/node.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { payScenario } from '../../src/developer/scenarios/pay-scenario.ts';
import type { Scenario } from '../../src/developer/scenarios/scenarios.ts';
import { startService } from '../../src/server/service.ts';
import { type Answer, call, createInvoice, eventually, payableOf, type TestService } from './service.ts';

export type Invoice = { id: string; checkoutUrl: string; address: string; amountMicro: bigint; amount: string };

export async function newInvoice(service: TestService, requested = '25.00'): Promise<Invoice> {
  const { body } = await createInvoice(service, { body: { amount: requested } });
  const payable = await payableOf(service, body.invoiceId);
  const amount = formatAmount(microUsdt(payable.amountMicro));
  return { id: body.invoiceId, checkoutUrl: body.checkoutUrl, ...payable, amount };
}

export function contractsOf(service: TestService) {
  const { usdtContract: usdt, fakeUsdtContract: fakeUsdt, multisendContract: multisend } = service.devnet;
  return { usdt, fakeUsdt, multisend };
}

export async function pay(
  service: TestService,
  invoice: Invoice,
  scenario: Scenario,
  second?: Invoice,
): Promise<string> {
  const options = { scenario, contracts: contractsOf(service), invoice, ...(second === undefined ? {} : { second }) };
  return (await payScenario(service.payer, options)).txIds.at(-1) ?? '';
}

/** Asks as a new client that hasn't asked before. */
export function ask(
  invoice: Invoice,
  transaction: unknown,
  options: { at?: string; client?: string } = {},
): Promise<Answer> {
  const { at = new URL(invoice.checkoutUrl).origin, client = `2001:db8:${randomBytes(2).toString('hex')}:1::1` } =
    options;
  return call(`${at}${new URL(invoice.checkoutUrl).pathname}/lookup`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-forwarded-for': client },
    body: JSON.stringify({ transaction }),
  });
}

/** Waits until the watcher has recorded everything that is irreversible now. */
export async function untilRecorded(service: TestService): Promise<void> {
  const { number } = service.devnet.solid();
  await eventually(
    async () => (await call(`${service.metricsUrl}/readyz`)).body.networks.devnet.solidBlock,
    (solid) => solid >= number,
  );
}

type ApiOnly = { url: string; requests(): Promise<number>; advance(ms: number): void };

/** Another process of the service that follows no chain. It counts its requests to nodes from zero, and its clock is frozen. */
export async function withApiOnly(
  service: TestService,
  work: (api: ApiOnly) => Promise<void>,
  { withoutNodes = false }: { withoutNodes?: boolean } = {},
): Promise<void> {
  const usdt = parseAddress(service.devnet.usdtContract);
  if (usdt.kind !== 'ok') throw new Error(usdt.reason);
  const nodes = service.nodes.map(({ url }) => unlimitedNode(url));
  let nowMs = Date.now();
  const api = await startService({
    config: {
      host: '127.0.0.1',
      port: 0,
      publicUrl: null,
      databasePoolSize: 4,
      roles: ['api'],
      networks: withoutNodes ? {} : { devnet: { nodes, usdt: usdt.account, agreement: 2 } },
      metrics: { host: '127.0.0.1', port: 0 },
      trustProxy: ['127.0.0.1'],
      rateLimit: { perSecond: 100_000, burst: 100_000 },
      webhooks: { localTargets: false, retentionDays: 90 },
    },
    keyRing: null,
    connection: service.connectionString,
    log: createLogger({ level: 'silent' }),
    clock: { now: () => nowMs },
  });
  onTestFinished(() => api.stop());
  const requests = async () => {
    const text = await (await fetch(`${api.metricsUrl}/metrics`)).text();
    const lines = text.split('\n').filter((line) => line.startsWith('quittance_node_requests_total{'));
    return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
  };
  await work({
    url: api.url ?? '',
    requests,
    advance: (ms) => {
      nowMs += ms;
    },
  });
}
