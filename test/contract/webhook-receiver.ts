import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Json } from '../support/service.ts';

/** One request as it arrived. `path` is the endpoint's. */
export type Hit = { path: string; headers: IncomingHttpHeaders; raw: Buffer; body: Json };

/** Answers the nth request (from 1) with this event at this path. */
type Answer = (response: ServerResponse, nth: number, body: Json) => unknown;

export type Receiver = Awaited<ReturnType<typeof startReceiver>>;

/** Starts any number of receivers in one server: each path is an endpoint with its own answer, by default 204. */
export async function startReceiver() {
  const hits: Hit[] = [];
  const answers = new Map<string, Answer>();
  let connections = 0;
  const server = createServer(async (request, response) => {
    const raw = Buffer.concat(await request.toArray());
    const path = request.url ?? '';
    const hit: Hit = { path, headers: request.headers, raw, body: readJson(raw) };
    hits.push(hit);
    const nth = hits.filter((one) => one.path === path && one.body?.id === hit.body?.id).length;
    const answer = answers.get(path);
    if (answer === undefined) response.writeHead(204).end();
    else answer(response, nth, hit.body);
  });
  server.on('connection', () => {
    connections += 1;
  });
  // Listens on IPv4 and IPv6, because a name like localhost may resolve to either.
  server.listen(0, '::');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    /** Returns the requests at a path so far, oldest first. */
    at: (path: string): Hit[] => hits.filter((hit) => hit.path === path),
    hits: (): readonly Hit[] => hits,
    connections: () => connections,
    answer: (path: string, answer: Answer) => void answers.set(path, answer),
    /** Makes every path answer 204 from now on. */
    answerWell: () => answers.clear(),
    stop: async () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

function readJson(raw: Buffer): Json {
  try {
    return JSON.parse(raw.toString('utf8'));
  } catch {
    return null;
  }
}
