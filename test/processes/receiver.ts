import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { verifyWebhook } from '../../src/core/webhooks/sign.ts';

/** A shop's receiver: it verifies webhooks, processes each id once, and ships the invoices in `invoice.paid`. It outlives the service. */
export type Receiver = {
  url: string;
  /** The body of each webhook by its id, as first received. */
  bodies: ReadonlyMap<string, string>;
  /** How often each invoice was shipped. */
  shipped: ReadonlyMap<string, number>;
  /** Counts repeated webhooks. */
  repeats(): number;
  /** Violations by the sender: another body with the same id, or an invalid signature. */
  complaints: readonly string[];
  /** Delays every answer until the time is over, for a sender that dies meanwhile. */
  delayBy(ms: number): void;
  stop(): Promise<void>;
};

export async function startReceiver(secret: string): Promise<Receiver> {
  const bodies = new Map<string, string>();
  const shipped = new Map<string, number>();
  const complaints: string[] = [];
  let repeats = 0;
  let delayMs = 0;
  const take = (id: string, body: string) => {
    const known = bodies.get(id);
    if (known !== undefined) {
      repeats += 1;
      if (known !== body) complaints.push(`webhook ${id} came with another body`);
      return;
    }
    bodies.set(id, body);
    const { type, data } = JSON.parse(body) as { type: string; data: { invoiceId: string } };
    if (type === 'invoice.paid') shipped.set(data.invoiceId, (shipped.get(data.invoiceId) ?? 0) + 1);
  };
  const server = createServer(async (request, response) => {
    // A sender that dies while sending isn't a violation, because nothing complete arrived.
    const body = await buffer(request).catch(() => null);
    if (body === null) return;
    const headers = request.headers as Record<string, string | string[] | undefined>;
    const checked = verifyWebhook(body, headers, secret, { nowMs: Date.now() });
    if (checked.kind === 'valid') take(checked.id, body.toString('utf8'));
    else complaints.push(`a webhook does not verify: ${checked.reason}`);
    setTimeout(() => response.writeHead(checked.kind === 'valid' ? 204 : 400).end(), delayMs);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    bodies,
    shipped,
    repeats: () => repeats,
    complaints,
    delayBy: (ms) => {
      delayMs = ms;
    },
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
