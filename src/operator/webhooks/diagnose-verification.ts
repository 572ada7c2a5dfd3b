import { createHash, createHmac } from 'node:crypto';
import { say, type Text } from '../../domain/message.ts';
import { toIso } from '../../domain/time.ts';
import { asObject, parseObject } from '../../runtime/parse-object.ts';
import type { DiagnosedAttempt, Diagnosis } from '../../webhooks/diagnosis.ts';
import { parseSecret } from '../../webhooks/sign.ts';
import { recogniseRewriting } from './rewritten-json.ts';

/**
 * The answer of the SDK's middleware to a webhook that it could not verify. Real example:
 * `{"error":"webhook_verification_failed","code":"SIGNATURE_MISMATCH","message":"…","diagnosis":{"receivedAt":1790000000,
 * "bodySha256":"9f86…","bodyBytes":512,"secretCheck":"0a1b2c3d"}}`. `null` stands for a value that it did not know.
 */
export type DiagnosticAnswer = {
  code: string;
  receivedAt: number | null;
  bodySha256: string | null;
  bodyBytes: number | null;
  /** The check of each secret that the receiver has. */
  secretChecks: readonly string[] | null;
};

/** Reads the diagnostic answer, which anybody may have written; `null` if the bytes are none. */
export function readDiagnosticAnswer(answer: Uint8Array | null): DiagnosticAnswer | null {
  if (answer === null) return null;
  const root = parseObject(new TextDecoder().decode(answer));
  if (root['error'] !== 'webhook_verification_failed' || typeof root['code'] !== 'string') return null;
  const { receivedAt, bodySha256, bodyBytes, secretCheck } = asObject(root['diagnosis']);
  const matching = (value: unknown, form: RegExp) => (typeof value === 'string' && form.test(value) ? value : null);
  return {
    code: matching(root['code'], /^[A-Z_]{1,40}$/) ?? 'UNKNOWN',
    receivedAt: readCount(receivedAt),
    bodySha256: matching(bodySha256, /^[0-9a-f]{64}$/),
    bodyBytes: readCount(bodyBytes),
    secretChecks: matching(secretCheck, /^[0-9a-f]{8}(,[0-9a-f]{8}){0,15}$/)?.split(',') ?? null,
  };
}

/** Compares what the receiver saw with what was sent. Everything that differs is told, at least one thing. */
export function diagnoseVerification(attempt: DiagnosedAttempt, answer: DiagnosticAnswer): Diagnosis[] {
  const clock = answer.receivedAt === null ? null : clockDiagnosis(answer.receivedAt, attempt);
  const found = [bodyDiagnosis(attempt, answer), secretDiagnosis(attempt, answer), clock].filter(
    (each) => each !== null,
  );
  return found.length > 0 ? found : [otherDiagnosis(attempt, answer)];
}

/** Below this, no receiver with the usual tolerance of 300 s refuses, and a Date header may be a second old. */
const CLOCK_LIMIT_SECONDS = 240;

/** Whether a clock there is wrong, from the time that it showed while the attempt went on. `null` if it fits. */
export function clockDiagnosis(
  shownSeconds: number,
  { attemptedAt, latencyMs }: Pick<DiagnosedAttempt, 'attemptedAt' | 'latencyMs'>,
): Diagnosis | null {
  const begun = attemptedAt / 1000;
  const ended = begun + (latencyMs ?? 0) / 1000;
  // The time was shown at some moment of the attempt, so only this smallest difference is certain.
  const offset = shownSeconds > ended ? shownSeconds - ended : Math.min(0, shownSeconds + 1 - begun);
  const seconds = Math.round(Math.abs(offset));
  if (seconds < CLOCK_LIMIT_SECONDS) return null;
  return proven(
    'clock',
    `the clock of the receiver is ${seconds} s ${offset > 0 ? 'ahead of' : 'behind'} that of this machine, and more than 300 s are refused`,
    'let both machines take their time from NTP ("timedatectl" shows whether they do), and correct the one that is wrong',
  );
}

function bodyDiagnosis({ sent }: DiagnosedAttempt, answer: DiagnosticAnswer): Diagnosis | null {
  const { bodySha256, bodyBytes, code } = answer;
  if (code === 'BODY_NOT_RAW' || (bodySha256 === null && code === 'SIGNATURE_MISMATCH')) {
    return proven(
      'body-not-raw',
      'the application verifies a body that was parsed already; the signature is over the raw bytes',
      'put the verification before the body parser, or let the route get the raw body: express.raw({ type: "application/json" }), and the middleware of @quittance/sdk for Express, Fastify, Hono and Next.js, do so',
    );
  }
  if (bodySha256 === null || bodySha256 === createHash('sha256').update(sent.body).digest('hex')) return null;
  const how = recogniseRewriting(sent.body, bodySha256);
  const sizes = bodyBytes === null ? '' : ` (${sent.body.length} bytes were sent, it saw ${bodyBytes})`;
  if (bodyBytes === 0) {
    return proven(
      'body-empty',
      `the application verifies an empty body${sizes}: something read it before`,
      'verify before anything else reads the body, on its raw bytes',
    );
  }
  if (how !== null) {
    return proven(
      'body-reserialised',
      `the application verifies a body that was parsed and written again, ${how}${sizes}`,
      'verify the raw bytes of the request, before a parser; never JSON that was written from what a parser read',
    );
  }
  return proven(
    'body-changed',
    `the application verifies another body than was sent${sizes}: it was parsed and written again, cut off, or changed on the way`,
    'verify the raw bytes of the request, before a parser. If that is so, look for a proxy that changes or cuts bodies',
  );
}

function secretDiagnosis({ sent, secrets, attemptedAt }: DiagnosedAttempt, answer: DiagnosticAnswer): Diagnosis | null {
  const { secretChecks } = answer;
  if (secretChecks === null || secrets === null || secrets.length === 0) return null;
  const known = secrets.filter(({ secret }) => secretChecks.includes(checkOf(secret, sent.id)));
  if (known.some(({ endsAt }) => endsAt === null || endsAt > attemptedAt)) return null;
  const ended = known[0]?.endsAt;
  if (ended !== undefined && ended !== null) {
    return proven(
      'secret-ended',
      `the receiver still has the former secret of this endpoint, which signed until ${toIso(ended)}`,
      say`give the receiver the secret that the rotation showed; if it is lost, "${{ command: 'webhook rotate' }}" makes a new one`,
    );
  }
  return proven(
    'wrong-secret',
    'the receiver has a secret that is not the one of this endpoint',
    say`each endpoint has its own secret, so look whether it is that of another endpoint or environment, or holds a blank or quote too many; if it is lost, "${{ command: 'webhook rotate' }}" makes a new one`,
  );
}

/** The first 8 hex digits of an HMAC under the secret: enough to compare two secrets, and of no use for anything else. */
function checkOf(secret: string, webhookId: string): string {
  const hmac = createHmac('sha256', parseSecret(secret)).update(`quittance diagnostic v1\n${webhookId}`);
  return hmac.digest('hex').slice(0, 8);
}

/** The receiver refused, and what it saw of body, secret and time is right, or is not known. */
function otherDiagnosis({ secrets }: DiagnosedAttempt, { code, secretChecks }: DiagnosticAnswer): Diagnosis {
  if (code === 'HEADER_MISSING' || code === 'HEADER_MALFORMED') {
    return proven(
      'headers-changed',
      `webhook-id, webhook-timestamp or webhook-signature ${code === 'HEADER_MISSING' ? 'did not reach the receiver' : 'reached the receiver changed'}`,
      'let the proxy before the application pass on all headers as they are',
    );
  }
  if (code === 'BODY_TOO_LARGE') {
    return proven(
      'body-too-large',
      'the receiver saw a body that is many times as long as what was sent',
      'look for a proxy that changes bodies',
    );
  }
  if (code === 'EVENT_MALFORMED') {
    return proven(
      'event-not-understood',
      'the receiver verified the signature, and then did not take the body for the event that webhook-id names',
      'bring @quittance/sdk up to the release of this server, and look for a proxy that changes webhook-id',
    );
  }
  if (code === 'TIMESTAMP_TOO_OLD' || code === 'TIMESTAMP_TOO_NEW') {
    return proven(
      'tolerance',
      'the receiver refuses the time of the webhook, though the clocks agree: its tolerance is too short, or something held the webhook up',
      'use a tolerance of 300 s, and look for a proxy that queues requests',
    );
  }
  if (secretChecks !== null && secrets === null) {
    return {
      ...{ code: 'signature', certainty: 'likely' },
      problem: 'the receiver saw the body that was sent, and another signature: it probably has another secret',
      fix: 'the secrets cannot be opened here to compare them: set QUITTANCE_MASTER_KEY as the service has it, and try again',
    };
  }
  return {
    ...{ code: 'signature', certainty: 'likely' },
    problem: 'the receiver could not verify the signature, though it saw the body that was sent',
    fix: 'look for a proxy that changes webhook-id, webhook-timestamp or webhook-signature, and whether the secret was changed meanwhile',
  };
}

function proven(code: string, problem: string, fix: Text): Diagnosis {
  return { code, certainty: 'proven', problem, fix };
}

function readCount(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null;
}
