import type { WebhookEvent } from '../types.ts';
import { type Answer, diagnosticAnswer } from '../webhooks/diagnostic-answer.ts';
import { MAX_BODY_BYTES } from '../webhooks/raw-body.ts';
import { readSecrets, type Secrets } from '../webhooks/secret.ts';
import { WebhookVerificationError } from '../webhooks/verification-error.ts';
import { type VerifyOptions, verify, type WebhookHeaders } from '../webhooks/verify.ts';

export type WebhookOptions<Context> = VerifyOptions & {
  /** The endpoint's secret, or all during a rotation; a function where it is known only when a request comes. */
  secret: Secrets | ((context: Context) => Secrets | Promise<Secrets>);
  /** Told what the handler threw, and a secret that cannot be one; `console.error` by default. Neither is answered. */
  onError?: ((error: unknown) => void) | undefined;
};

/** Called once for each genuine delivery, repeated ones too. What it throws makes Quittance deliver again. */
export type WebhookHandler<Context> = (event: WebhookEvent, context: Context) => unknown;

/** What a framework gave for the body; anything but bytes is refused with advice. */
export type ReceivedBody = { kind: 'read'; body: unknown } | { kind: 'too-large' };

/** Throws a TypeError for a secret that cannot be one, when the program starts and not when money has come. */
export function checkOptions<Context>({ secret }: WebhookOptions<Context>): void {
  if (typeof secret !== 'function') readSecrets(secret);
}

/** Verifies one delivery and has it handled: 204, or 400 or 413 with the diagnosis, or 500 so that it comes again. */
export async function receive<Context>(
  received: ReceivedBody,
  headers: WebhookHeaders,
  context: Context,
  options: WebhookOptions<Context>,
  handler: WebhookHandler<Context>,
): Promise<Answer> {
  if (received.kind === 'too-large') return diagnosticAnswer(tooLarge(options.now ?? Date.now));
  try {
    const secret = typeof options.secret === 'function' ? await options.secret(context) : options.secret;
    const event = await verify(received.body as Uint8Array, headers, secret, options).catch(toAnswer);
    if ('answer' in event) return event.answer;
    await handler(event, context);
    return { status: 204, headers: {}, body: '' };
  } catch (error) {
    (options.onError ?? console.error)(error);
    return { status: 500, headers: { 'content-type': 'application/json' }, body: '{"error":"internal"}' };
  }
}

function toAnswer(error: unknown): { answer: Answer } {
  if (error instanceof WebhookVerificationError) return { answer: diagnosticAnswer(error) };
  throw error;
}

function tooLarge(now: () => number): WebhookVerificationError {
  const message = `The body is larger than ${MAX_BODY_BYTES} bytes.`;
  const receivedAt = Math.floor(now() / 1000);
  const seen = { receivedAt, bodySha256: null, bodyBytes: null, secretCheck: null };
  return new WebhookVerificationError('BODY_TOO_LARGE', message, seen);
}
