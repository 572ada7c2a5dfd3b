import { createReceiver, type WebhookHandler, type WebhookOptions } from './receive.ts';
import { answerRequest } from './web.ts';

/** What is used of Hono's context. */
export type HonoContext = { readonly req: { readonly raw: Request } };

/**
 * The route of a webhook endpoint for Hono: `app.post('/webhooks/quittance', quittanceWebhook({ secret }, handler))`. Secret and
 * handler get the context, for what a worker keeps in `context.env`.
 */
export function quittanceWebhook<Context extends HonoContext = HonoContext>(
  options: WebhookOptions<Context>,
  handler: WebhookHandler<Context>,
): (context: Context) => Promise<Response> {
  const receive = createReceiver(options, handler);
  // Not `context.req.arrayBuffer()`, which answers a body that was parsed before by writing it anew.
  return (context) => answerRequest(context.req.raw, context, receive);
}
