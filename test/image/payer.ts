// Runs in the containers' network: a local TRON network at the given address, and a customer who orders, pays and waits. Each line of
// standard input is a task in JSON, each line of standard output its answer.

import { readFileSync } from 'node:fs';
import type { LookupFunction } from 'node:net';
import { createInterface } from 'node:readline';
import { startDevnet } from '@quittance/devnet';
import { createPayer } from '@quittance/devnet/payer';
import { Agent, request } from 'undici';

const host = process.argv[2] ?? '';
const devnet = await startDevnet({ dataDir: null, blockMs: 200, producers: 3, host });
const say = (value: object) => process.stdout.write(`${JSON.stringify(value)}\n`);
say({ nodes: devnet.url, usdt: devnet.usdtContract });

/** `ca` is the file of the site's certificate authority, `at` the site's address. */
type Task = { order: string; url: string; apiKey: string; ca: string; at: string };

async function sell({ order, url, apiKey, ca, at }: Task) {
  const lookup: LookupFunction = (_, __, found) => found(null, [{ address: at, family: 4 }]);
  const dispatcher = new Agent({ connect: { ca: readFileSync(ca), lookup } });
  const ask = async (path: string, method: 'GET' | 'POST' = 'GET', body: object | null = null) => {
    const headers = { 'x-api-key': apiKey, 'idempotency-key': order, 'content-type': 'application/json' };
    const answer = await request(`${url}${path}`, { dispatcher, method, headers, body: body && JSON.stringify(body) });
    const json = (await answer.body.json()) as Record<string, unknown>;
    if (answer.statusCode >= 400) throw new Error(JSON.stringify(json));
    return json;
  };
  // The proxy gets its certificate before it listens.
  await eventually(
    () => ask('/healthz').then(() => true, String),
    (answer) => answer === true,
  );
  const invoice = await ask('/v1/invoices', 'POST', {
    ...{ amount: '25.00', asset: 'USDT', network: 'TRON', externalId: order },
  });
  const path = `/v1/invoices/${invoice['invoiceId']}`;
  const { payment } = (await ask(`${path}?expand=payment`)) as { payment: { address: string; payableAmount: string } };
  const { checkoutUrl } = invoice as { checkoutUrl: string };
  const page = await (await request(checkoutUrl, { dispatcher })).body.text();
  const payer = createPayer({ nodeUrl: devnet.url, privateKey: devnet.payer.privateKey });
  const amountMicro = BigInt(payment.payableAmount.replace('.', ''));
  await payer.transfer({ contract: devnet.usdtContract, to: payment.address, amountMicro });
  const { status } = await eventually(
    () => ask(path),
    (found) => found['status'] === 'PAID',
  );
  return { status, checkoutUrl, isAddressShown: page.includes(payment.address) };
}

async function eventually<Found>(look: () => Promise<Found>, isWanted: (found: Found) => boolean): Promise<Found> {
  const deadlineMs = performance.now() + 60_000;
  for (;;) {
    const found = await look();
    if (isWanted(found)) return found;
    if (performance.now() > deadlineMs) throw new Error(`still ${JSON.stringify(found)} after a minute`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  say(await sell(JSON.parse(line) as Task).catch((error: unknown) => ({ failed: String(error) })));
}
await devnet.stop();
