import type { ServerResponse } from 'node:http';
import type { FastifyInstance } from 'fastify';

/** Of all connections together: a fifth of what a process has at rest. Four hundred that read slowly fit in. */
const MAX_UNSENT_BYTES = 64 * 1024 * 1024;
/** What is smaller the kernel takes, or is bounded by the number of connections. */
const LEAST_BYTES = 4 * 1024;

/**
 * Bounds the memory of answers that their readers do not take: above 64 MiB the connections that have kept us longest are cut. A hundred
 * requests for a large answer fit into one packet, and nothing else would stop who never reads what comes. Returns how many bytes wait.
 */
export function boundUnsentAnswers(app: FastifyInstance, maxBytes = MAX_UNSENT_BYTES): () => number {
  const unsent = new Map<ServerResponse, { bytes: number; cut(): void }>();
  let total = 0;
  const forget = (answer: ServerResponse) => {
    total -= unsent.get(answer)?.bytes ?? 0;
    unsent.delete(answer);
  };
  app.addHook('onSend', (request, reply, payload, done) => {
    const bytes = typeof payload === 'string' || payload instanceof Uint8Array ? payload.length : 0;
    // Who has hung up is sent nothing, and is not heard to hang up again.
    if (bytes >= LEAST_BYTES && !request.raw.socket.destroyed) {
      unsent.set(reply.raw, { bytes, cut: () => request.raw.socket.destroy() });
      total += bytes;
      // One that waits behind another of its connection may never say so; it is forgotten when it is the oldest.
      reply.raw.once('close', () => forget(reply.raw));
    }
    for (const [answer, { cut }] of unsent) {
      if (total <= maxBytes) break;
      cut();
      forget(answer);
    }
    done(null, payload);
  });
  return () => total;
}
