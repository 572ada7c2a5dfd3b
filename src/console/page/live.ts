import type { OutgoingHttpHeaders } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { createTally } from '../../runtime/log-throttle.ts';
import { createLiveStreams, type LiveStream, STREAM_HEADERS } from '../../web/live-streams.ts';
import { hijackForStream } from '../../web/shed-load.ts';
import type { ConsoleDeps } from './console-deps.ts';
import { HEADERS } from './layout.ts';

/** More than people look at one console at once. */
const MAX_STREAMS = 200;
/** So often pages look, whatever is heard: for what makes no noise in the database, such as alarms. */
const TICK_MS = 10_000;
/** What happens in so short a time is one change. */
const GATHER_MS = 500;

/**
 * `GET /live`: says to who is signed in that something may have changed. It says no more: the page then asks for itself again, as its visitor
 * may. 204 where nobody is signed in, by which browsers stop asking.
 */
export function addLive(app: FastifyInstance, deps: ConsoleDeps): void {
  const streams = createLiveStreams(deps);
  const open = new Set<LiveStream>();
  const tally = createTally(deps.now);
  const tell = () => {
    for (const stream of open) stream.send('changed', String(deps.now()), '');
  };
  let gathering: NodeJS.Timeout | undefined;
  const heard = () => {
    gathering ??= setTimeout(() => {
      gathering = undefined;
      tell();
    }, GATHER_MS);
  };
  deps.onChange(heard);
  const ticking = setInterval(tell, TICK_MS);
  app.addHook('preClose', async () => {
    clearInterval(ticking);
    clearTimeout(gathering);
    streams.stop();
  });
  app.get('/live', { schema: { hide: true } }, async (request, reply) => {
    reply.headers({ ...HEADERS, ...STREAM_HEADERS });
    if ((await deps.findActor(request)) === null) return reply.code(204).send();
    // A request that was pipelined behind another has no connection of its own, and so nothing that tells when it ends.
    if (open.size >= MAX_STREAMS || reply.raw.socket === null || request.method === 'HEAD') {
      const requests = open.size < MAX_STREAMS ? null : tally.note('full');
      if (requests !== null)
        deps.log.warn(
          { requestId: request.id, open: open.size, requests },
          'pages of the console are not kept up to date',
        );
      return reply.code(503).header('Retry-After', '60').send();
    }
    hijackForStream(request, reply);
    const stream = streams.open(reply.raw, reply.getHeaders() as OutgoingHttpHeaders);
    open.add(stream);
    reply.raw.once('close', () => open.delete(stream));
    return reply;
  });
}
