import { randomBytes } from 'node:crypto';
import { isIP } from 'node:net';
import { encodeId } from '../../domain/ids.ts';
import { toIso, unixMs } from '../../domain/time.ts';
import { systemClock } from '../../runtime/clock.ts';
import { requireKeyRing } from '../../runtime/open-key-ring.ts';
import { diagnoseAttempt } from '../../webhooks/diagnose.ts';
import type { DiagnosedAttempt } from '../../webhooks/diagnosis.ts';
import { createWebhookSender } from '../../webhooks/send.ts';
import { sendTestWebhook } from '../../webhooks/send-test.ts';
import { EXIT } from '../cli-error.ts';
import { quoteWhole } from '../clip.ts';
import { formatFields, type Result, type Terminal } from '../terminal.ts';
import { withDatabase } from '../with-database.ts';
import { diagnosisText } from './describe.ts';
import { findEndpoint } from './options.ts';

/** Sends a ping to an endpoint from this machine, also to a disabled one, and says what is wrong with the receiver. */
export async function testWebhook(terminal: Terminal, reference: string): Promise<Result> {
  return withDatabase(terminal, async ({ db, config }) => {
    const endpoint = await findEndpoint(db, reference);
    const keyRing = await requireKeyRing(config, terminal.note);
    const sender = createWebhookSender({ connections: 1 });
    try {
      const { localTargets } = config.webhooks;
      const now = () => unixMs(systemClock.now());
      const deps = { db, keyRing, sender, now, random: randomBytes, localTargets };
      const { eventId, answer, attempt } = await sendTestWebhook(deps, endpoint);
      const diagnosis = diagnoseAttempt(attempt);
      const { status, error, latencyMs, attemptedAt } = attempt;
      const connection = describeConnection(endpoint.url, attempt);
      const event = encodeId('evt', eventId);
      return {
        data: {
          endpointId: reference,
          eventId: event,
          isDelivered: error === null,
          attemptedAt: toIso(attemptedAt),
          status,
          latencyMs,
          error,
          ...connection,
          answer,
          diagnosis,
        },
        text: [
          formatFields([
            ['endpoint', reference],
            ['url', endpoint.url],
            ['event', `${event}, a ping`],
            ['result', error === null ? 'delivered' : `failed: ${error}`],
            ['status', status === null ? null : String(status)],
            ['latency', latencyMs === null ? null : `${latencyMs} ms`],
            ['dns', connection.dns],
            ['tls', connection.tls],
            ['answer', answer === null || answer === '' ? null : shortAnswer(answer)],
          ]),
          diagnosisText(diagnosis),
        ]
          .filter((part) => part !== '')
          .join('\n\n'),
        ...(error === null && endpoint.disabled_at !== null
          ? { next: `the endpoint is disabled: quittance webhook enable ${reference}` }
          : {}),
        exitCode: error === null ? EXIT.ok : EXIT.failed,
      };
    } finally {
      await sender.close();
    }
  });
}

/** In a terminal; --json has all of it. */
const MAX_ANSWER = 500;

/** The beginning of an answer in quotes, for a terminal. */
export function shortAnswer(answer: string, limit = MAX_ANSWER): string {
  return quoteWhole(answer.length > limit ? `${answer.slice(0, limit)}…` : answer);
}

/** How far the attempt came. `unknown`: it failed at a place that does not tell. */
function describeConnection(url: string, { status, error }: DiagnosedAttempt): { dns: string; tls: string } {
  const { hostname, protocol } = new URL(url);
  const kind = error?.split(':', 1)[0] ?? '';
  const isReached = status !== null;
  const isLiteral = isIP(hostname.replace(/^\[(.*)\]$/, '$1')) !== 0;
  const dns = isLiteral ? 'not used' : kind === 'dns' ? 'failed' : NOT_RESOLVED.includes(kind) ? 'unknown' : 'ok';
  const tls = protocol === 'http:' ? 'not used' : kind === 'tls' ? 'failed' : isReached ? 'ok' : 'unknown';
  return { dns, tls };
}

const NOT_RESOLVED = ['target_refused', 'invalid_url', 'unsigned', 'network'];
