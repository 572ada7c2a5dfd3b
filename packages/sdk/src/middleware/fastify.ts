import { MAX_BODY_BYTES } from '../webhooks/raw-body.ts';
import { createReceiver, type ReceivedBody, type WebhookHandler, type WebhookOptions } from './receive.ts';

/** The parts of a Fastify request, reply and instance that are used. */
export type FastifyRequest = {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: unknown;
};
type FastifyReply = {
  code(status: number): unknown;
  headers(values: Record<string, string>): unknown;
  send(body: string): unknown;
};
type FastifyInstance = {
  removeAllContentTypeParsers(): unknown;
  addContentTypeParser(
    type: string,
    options: { parseAs: 'buffer'; bodyLimit: number },
    parser: (request: unknown, body: Uint8Array, done: (error: Error | null, body?: unknown) => void) => void,
  ): unknown;
  post(
    path: string,
    options: { errorHandler(error: unknown, request: FastifyRequest, reply: FastifyReply): unknown },
    handler: (request: FastifyRequest, reply: FastifyReply) => unknown,
  ): unknown;
};

/**
 * Returns a Fastify plugin with a single route, whose body isn't parsed: `app.register(quittanceWebhook({ path: '/webhooks/quittance',
 * secret }, handler))`. Other routes keep their parsers.
 */
export function quittanceWebhook(
  options: WebhookOptions<FastifyRequest> & { path: string },
  handler: WebhookHandler<FastifyRequest>,
): (app: FastifyInstance) => Promise<void> {
  const receive = createReceiver(options, handler);
  const answer = async (received: ReceivedBody, request: FastifyRequest, reply: FastifyReply) => {
    const { status, headers, body } = await receive(received, request.headers, request);
    reply.code(status);
    reply.headers(headers);
    return reply.send(body);
  };
  // This affects only the plugin, because Fastify gives each plugin its own copy of the parsers.
  return async (app) => {
    app.removeAllContentTypeParsers();
    const parser = { parseAs: 'buffer', bodyLimit: MAX_BODY_BYTES } as const;
    app.addContentTypeParser('*', parser, (_request, body, done) => done(null, body));
    app.post(
      options.path,
      {
        errorHandler: (error, request, reply) => {
          if ((error as { statusCode?: unknown }).statusCode !== 413) throw error;
          return answer({ kind: 'too-large' }, request, reply);
        },
      },
      // If there's no body, no parser is called.
      (request, reply) => answer({ kind: 'read', body: request.body ?? new Uint8Array() }, request, reply),
    );
  };
}
