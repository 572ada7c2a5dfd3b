import { createReceiver, type WebhookHandler, type WebhookOptions } from './receive.ts';
import { answerRequest } from './web.ts';

/** The part of Hono's context that is used. */
export type HonoContext = { readonly req: { readonly raw: Request } };

/**
 * Returns the route handler of a webhook endpoint for Hono: `app.post('/webhooks/quittance', quittanceWebhook({ secret }, handler))`. The
 * secret and the handler get the context, because workers keep values in `context.env`.
 */
export function quittanceWebhook<Context extends HonoContext = HonoContext>(
  options: WebhookOptions<Context>,
  handler: WebhookHandler<Context>,
): (context: Context) => Promise<Response> {
  const receive = createReceiver(options, handler);
  // Don't use `context.req.arrayBuffer()`: if the body was parsed before, it returns a new serialisation of it.
  return (context) => answerRequest(context.req.raw, context, receive);
}
