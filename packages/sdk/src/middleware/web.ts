import { readBounded } from '../read-bounded.ts';
import { MAX_BODY_BYTES } from '../webhooks/raw-body.ts';
import {
  createReceiver,
  type Receive,
  type ReceivedBody,
  type WebhookHandler,
  type WebhookOptions,
} from './receive.ts';

/** Returns a webhook endpoint for everything that uses `Request` and `Response`: workers, Deno, Bun, and the App Router of Next.js. */
export function quittanceWebhook<Incoming extends Request = Request>(
  options: WebhookOptions<Incoming>,
  handler: WebhookHandler<Incoming>,
): (request: Incoming) => Promise<Response> {
  const receive = createReceiver(options, handler);
  return (request) => answerRequest(request, request, receive);
}

/** Returns a `Response`. The handler gets `context` instead of the request. */
export async function answerRequest<Context>(
  request: Request,
  context: Context,
  receive: Receive<Context>,
): Promise<Response> {
  const { status, headers, body } = await receive(await readBody(request), request.headers, context);
  return new Response(status === 204 ? null : body, { status, headers });
}

async function readBody(request: Request): Promise<ReceivedBody> {
  // Something else has already read the body. A parsed body can't be verified, because the signature covers the raw bytes.
  if (request.bodyUsed || request.body?.locked === true) return { kind: 'read', body: undefined };
  if (Number(request.headers.get('content-length')) > MAX_BODY_BYTES) return { kind: 'too-large' };
  const body = await readBounded(request.body, MAX_BODY_BYTES);
  return body === null ? { kind: 'too-large' } : { kind: 'read', body };
}
