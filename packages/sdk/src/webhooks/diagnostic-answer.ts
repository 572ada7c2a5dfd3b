import type { WebhookVerificationError } from './verification-error.ts';

/** An HTTP response that doesn't depend on a framework. */
export type Answer = { status: number; headers: Record<string, string>; body: string };

/**
 * Returns the response by which `quittance webhook test` can diagnose a receiver. It reveals nothing that would help to
 * forge a webhook.
 */
export function diagnosticAnswer({ code, message, diagnosis }: WebhookVerificationError): Answer {
  return {
    status: code === 'BODY_TOO_LARGE' ? 413 : 400,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ error: 'webhook_verification_failed', code, message, diagnosis }),
  };
}
