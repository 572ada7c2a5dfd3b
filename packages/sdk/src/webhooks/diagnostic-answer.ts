import type { WebhookVerificationError } from './verification-error.ts';

/** An HTTP answer, for whatever sends it. */
export type Answer = { status: number; headers: Record<string, string>; body: string };

/** The answer by which `quittance webhook test` can say what is wrong with a receiver. It reveals nothing that helps to forge. */
export function diagnosticAnswer({ code, message, diagnosis }: WebhookVerificationError): Answer {
  return {
    status: code === 'BODY_TOO_LARGE' ? 413 : 400,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ error: 'webhook_verification_failed', code, message, diagnosis }),
  };
}
