import type { WebhookEvent } from '../types.ts';
import { type Answer, diagnosticAnswer } from '../webhooks/diagnostic-answer.ts';
import { MAX_BODY_BYTES } from '../webhooks/raw-body.ts';
import { readSecrets, type Secrets } from '../webhooks/secret.ts';
import { WebhookVerificationError } from '../webhooks/verification-error.ts';
import { type VerifyOptions, verify, type WebhookHeaders } from '../webhooks/verify.ts';

export type WebhookOptions<Context> = Omit<VerifyOptions, 'isBase64Encoded'> & {
  /** The endpoint's secret, or all of its secrets during a rotation. Pass a function if the secret is known only when a request arrives. */
  secret: Secrets | ((context: Context) => Secrets | Promise<Secrets>);
  /**
   * Called with errors that the handler throws, and if a secret is invalid. Default: `console.error`. The sender never sees these errors.
   */
  onError?: ((error: unknown) => void) | undefined;
  /**
   * The maximum time for a delivery in milliseconds. After that time, the response is 503, so that Quittance sends the webhook again.
   * Default: 12,000. Maximum: 14,000, because Quittance waits 15 s.
   */
  deadlineMs?: number | undefined;
};

/**
 * `signal` is aborted when the delivery has taken too long. Pass it on to your calls: `invoices.get(id, { signal })`. If you stop because of
 * it, throw an error, because a handler that returns has handled the event.
 */
type Delivery = { readonly signal: AbortSignal };

/**
 * Called once for each genuine delivery, including repeated ones. A repeated delivery first waits for a handler that is still handling the
 * same event. If that handler hasn't finished by the repeated delivery's deadline, the next delivery calls the handler again. If the handler
 * throws, Quittance delivers the webhook again.
 */
export type WebhookHandler<Context> = (event: WebhookEvent, context: Context, delivery: Delivery) => unknown;

/** The body that a framework passed. Anything except bytes and the exact string is rejected with advice. */
export type ReceivedBody = { kind: 'read'; body: unknown } | { kind: 'too-large' };

const DEADLINE_MS = 12_000;
/** Quittance waits 15 s, including the time on the network. */
const MAX_DEADLINE_MS = 14_000;
const RETRY_AFTER_S = 5;
/** How many events to remember that were handled after their response. */
const MAX_LATE = 1_000;
/**
 * How long to remember them. Between the first five attempts, Quittance waits at most about 10 minutes. A later delivery may be a replay.
 */
const LATE_MS = 900_000;

/** Returns the response to a delivery to one endpoint. */
export type Receive<Context> = (received: ReceivedBody, headers: WebhookHeaders, context: Context) => Promise<Answer>;

/**
 * Verifies deliveries and passes them to the handler. The response is 204 on success. It's 400 or 413, with the diagnosis, if the webhook
 * is rejected. It's 500 or 503 if Quittance has to send the webhook again. Throws a TypeError for invalid options, so that mistakes show
 * when the program starts, and not when money has arrived.
 */
export function createReceiver<Context>(
  options: WebhookOptions<Context>,
  handler: WebhookHandler<Context>,
): Receive<Context> {
  const { secret, deadlineMs = DEADLINE_MS } = options;
  if (typeof secret !== 'function') readSecrets(secret);
  if (!(deadlineMs >= 1 && deadlineMs <= MAX_DEADLINE_MS)) {
    throw new TypeError(`deadlineMs must be from 1 to ${MAX_DEADLINE_MS}: Quittance waits 15 s for the response`);
  }
  const running = new Map<string, { handling: Promise<unknown>; waiting: number; isGivenUp: boolean }>();
  const now = options.now ?? Date.now;
  const late = new Map<string, number>();
  /**
   * A repeated delivery waits for the running handler. If that handler hasn't finished by the delivery's deadline, the next delivery calls
   * the handler again, because the first call may never finish: workers stop a request's work after the response. If the handler finishes
   * after the 503 was sent, the next delivery is acknowledged without handling the event again, if it arrives soon. Any later delivery,
   * such as a replay, is handled.
   */
  const handleOnce = (event: WebhookEvent, context: Context, delivery: Delivery): Promise<unknown> => {
    const { id } = event;
    const { signal } = delivery;
    const handledAt = late.get(id);
    late.delete(id);
    if (handledAt !== undefined && now() - handledAt < LATE_MS) return Promise.resolve();
    const begun = running.get(id);
    // Each request counts itself, because a worker must not touch the objects of another request.
    if (begun?.isGivenUp === false) {
      begun.waiting += 1;
      signal.addEventListener('abort', () => {
        begun.waiting -= 1;
        begun.isGivenUp = true;
      });
      return begun.handling;
    }
    const run = { handling: Promise.resolve<unknown>(undefined), waiting: 1, isGivenUp: false };
    signal.addEventListener('abort', () => {
      run.waiting -= 1;
    });
    running.set(id, run);
    run.handling = (async () => {
      try {
        await handler(event, context, delivery);
        if (run.waiting === 0 && running.get(id) === run) late.set(id, now());
        for (const [oldest] of late) if (late.size > MAX_LATE) late.delete(oldest);
      } finally {
        if (running.get(id) === run) running.delete(id);
      }
    })();
    return run.handling;
  };
  return async (received, headers, context) => {
    const controller = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const tooLate = new Promise<Answer>((resolve) => {
      timer = setTimeout(() => {
        controller.abort(new Error(`the webhook was not handled within ${deadlineMs} ms`));
        resolve(TOO_SLOW);
      }, deadlineMs);
    });
    // After the deadline, the event is left to the next delivery. A handler that starts now would wait for an abort that has already
    // happened.
    const handle = async (event: WebhookEvent) => {
      if (!controller.signal.aborted) await handleOnce(event, context, controller);
    };
    const answer = await Promise.race([answerOne(received, headers, context, options, handle), tooLate]);
    clearTimeout(timer);
    return answer;
  };
}

const TOO_SLOW: Answer = {
  status: 503,
  headers: { 'content-type': 'application/json', 'retry-after': String(RETRY_AFTER_S) },
  body: '{"error":"busy"}',
};

async function answerOne<Context>(
  received: ReceivedBody,
  headers: WebhookHeaders,
  context: Context,
  options: WebhookOptions<Context>,
  handle: (event: WebhookEvent) => Promise<unknown>,
): Promise<Answer> {
  if (received.kind === 'too-large') return diagnosticAnswer(tooLarge(options.now ?? Date.now));
  try {
    const secret = typeof options.secret === 'function' ? await options.secret(context) : options.secret;
    const event = await verify(received.body as Uint8Array, headers, secret, options).catch(toAnswer);
    if ('answer' in event) return event.answer;
    await handle(event);
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
