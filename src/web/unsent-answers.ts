import type { ServerResponse } from 'node:http';
import type { FastifyInstance } from 'fastify';

/** The bound for all connections together: a fifth of what a process has at rest. Four hundred slow readers fit in. */
const MAX_UNSENT_BYTES = 64 * 1024 * 1024;
/** The kernel takes smaller answers, or the number of connections bounds them. */
const LEAST_BYTES = 4 * 1024;

/**
 * Bounds the memory of answers that their readers do not take: above 64 MiB the connections that have kept us longest are cut. A hundred
 * requests for a large answer fit into one packet, and nothing else would stop a client that never reads. Returns how many bytes wait.
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
    // A client that has hung up is sent nothing, and no second hang-up is reported.
    if (bytes >= LEAST_BYTES && !request.raw.socket.destroyed) {
      unsent.set(reply.raw, { bytes, cut: () => request.raw.socket.destroy() });
      total += bytes;
      // An answer that waits behind another on its connection may never emit `close`; it is forgotten when it is the oldest.
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
