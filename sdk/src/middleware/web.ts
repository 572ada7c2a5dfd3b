import { readBounded } from '../read-bounded.ts';
import { MAX_BODY_BYTES } from '../webhooks/raw-body.ts';
import { checkOptions, type ReceivedBody, receive, type WebhookHandler, type WebhookOptions } from './receive.ts';

/** A webhook endpoint for everything that speaks `Request` and `Response`: workers, Deno, Bun, the App Router of Next.js. */
export function quittanceWebhook<Incoming extends Request = Request>(
  options: WebhookOptions<Incoming>,
  handler: WebhookHandler<Incoming>,
): (request: Incoming) => Promise<Response> {
  checkOptions(options);
  return (request) => answerRequest(request, request, options, handler);
}

/** As a `Response`, with another context than the request for the handler. */
export async function answerRequest<Context>(
  request: Request,
  context: Context,
  options: WebhookOptions<Context>,
  handler: WebhookHandler<Context>,
): Promise<Response> {
  const { status, headers, body } = await receive(await readBody(request), request.headers, context, options, handler);
  return new Response(status === 204 ? null : body, { status, headers });
}

async function readBody(request: Request): Promise<ReceivedBody> {
  // Somebody has read it already; what they made of it is not what was signed.
  if (request.bodyUsed || request.body?.locked === true) return { kind: 'read', body: undefined };
  if (Number(request.headers.get('content-length')) > MAX_BODY_BYTES) return { kind: 'too-large' };
  const body = await readBounded(request.body, MAX_BODY_BYTES);
  return body === null ? { kind: 'too-large' } : { kind: 'read', body };
}
