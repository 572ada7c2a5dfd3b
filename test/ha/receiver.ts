import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { verifyWebhook } from '../../src/core/webhooks/sign.ts';

/** A shop's receiver: it verifies the bytes, answers 204, and recognises repeats. */
export type Receiver = {
  url: string;
  /** The distinct ids of the received events. */
  ids: ReadonlySet<string>;
  /** Counts deliveries, including repeats. */
  count(): number;
  refused: readonly string[];
  stop(): Promise<void>;
};

export async function startReceiver(secret: string): Promise<Receiver> {
  const ids = new Set<string>();
  const refused: string[] = [];
  let count = 0;
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part);
    const checked = verifyWebhook(Buffer.concat(parts), request.headers, secret, { nowMs: Date.now() });
    count += 1;
    if (checked.kind === 'valid') ids.add(checked.id);
    else refused.push(checked.reason);
    response.writeHead(204).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    ids,
    count: () => count,
    refused,
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
