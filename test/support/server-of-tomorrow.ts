import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { request } from 'undici';
import type { Json } from './service.ts';

/** Possible answers of a later release that today's clients don't know. */
export const TOMORROW = {
  status: 'ON_HOLD',
  code: 'CODE_OF_TOMORROW',
  reason: 'REASON_OF_TOMORROW',
  type: 'invoice.of_tomorrow',
} as const;

/**
 * Simulates a later release of the service: a proxy that adds a member to every object, adds an event of an unknown type to each page of
 * the feed, and replaces the status of each invoice read, each error code and each reason of a transfer by an unknown one. A created
 * invoice keeps its status, and so do others than those that `isOnHold` chooses.
 */
export async function startServerOfTomorrow(
  target: string,
  isOnHold: (invoice: Json) => boolean = () => true,
): Promise<{ url: string; stop(): Promise<void> }> {
  const server = createServer(async (incoming, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const { host: _host, connection: _connection, 'transfer-encoding': _coding, ...others } = incoming.headers;
    // Java's client offers HTTP/2 in each request.
    const { upgrade: _upgrade, 'http2-settings': _settings, ...headers } = others;
    const answer = await request(target + incoming.url, {
      method: incoming.method as 'GET',
      headers: headers as Record<string, string>,
      body: chunks.length === 0 ? null : Buffer.concat(chunks),
    });
    const text = await answer.body.text();
    const type = String(answer.headers['content-type'] ?? '');
    const isChanged = /json/.test(type) && incoming.url?.startsWith('/v1/');
    const isHeld = (item: Json) => incoming.method === 'GET' && item.invoiceId !== undefined && isOnHold(item);
    const body = isChanged ? JSON.stringify(ofTomorrow(JSON.parse(text), isHeld)) : text;
    const { 'content-length': _length, 'transfer-encoding': _transfer, connection: _closed, ...more } = answer.headers;
    response.writeHead(answer.statusCode, { ...more, 'x-of-tomorrow': '1' } as Record<string, string>).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function ofTomorrow(body: Json, isHeld: (item: Json) => boolean): Json {
  if (body.code !== undefined && body.requestId !== undefined) return extended({ ...body, code: TOMORROW.code });
  const renew = (item: Json): Json => ({
    ...item,
    ...(item.status !== undefined && isHeld(item) ? { status: TOMORROW.status } : {}),
    ...(item.reason?.code === undefined ? {} : { reason: { ...item.reason, code: TOMORROW.reason } }),
  });
  if (!Array.isArray(body.data)) return extended(renew(body));
  const data = body.data.map(renew);
  const event = data.find(({ type }: Json) => typeof type === 'string');
  if (event !== undefined) data.unshift({ ...event, type: TOMORROW.type, data: { colour: 'blue' } });
  return extended({ ...body, data });
}

/** Adds a member to each object, except to data that the client itself sent. */
function extended(value: Json): Json {
  if (Array.isArray(value)) return value.map(extended);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([key, each]) => [key, key === 'metadata' ? each : extended(each)]);
  return { ...Object.fromEntries(members), ofTomorrow: { colour: 'blue' } };
}
