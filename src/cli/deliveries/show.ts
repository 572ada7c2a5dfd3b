import { formatFields } from '../../operator/command-text.ts';
import { showDeliveryOperation } from '../../operator/deliveries/operations.ts';
import type { ShownDelivery } from '../../operator/deliveries/show-delivery.ts';
import type { AttemptView, ShownEventView } from '../../operator/deliveries/views.ts';
import { answerText, diagnosisText } from '../../operator/subjects/webhook-sending.ts';
import { statusText } from '../../operator/subjects/webhooks.ts';
import { runOperation } from '../terminal/run-operation.ts';
import { type Column, tableOf } from '../terminal/table.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';
import { now } from '../terminal/with-database.ts';

/** The most characters of an answer in a table. */
const MAX_ANSWER = 80;

export async function printDelivery(
  terminal: Terminal,
  input: { eventId: string; endpoint?: string | undefined },
): Promise<Result> {
  const { view, shown } = await runOperation(terminal, showDeliveryOperation, input);
  return {
    data: view,
    text: [eventText(view), ...shown.map(deliveryText)].join('\n\n'),
    ...nextOf(view, input.endpoint),
  };
}

function eventText({ eventId, projectId, type, createdAt, position, deliveries: [first] }: ShownEventView): string {
  return formatFields([
    ['event', eventId],
    ['project', projectId],
    ['type', type],
    ['created', createdAt],
    ['position', String(position)],
    ['invoice', first?.invoiceId ? `${first.invoiceId} (${first.externalId ?? ''})` : null],
  ]);
}

function deliveryText({ delivery, endpoint, attemptCount }: ShownDelivery): string {
  const fields = formatFields([
    ['endpoint', `${delivery.endpointId}, ${statusText(endpoint)}`],
    ['url', delivery.url],
    ['delivery', delivery.status],
    ['finished', delivery.finishedAt],
    ['plan', planText({ delivery, endpoint, attemptCount })],
  ]);
  const parts = [fields, tableOf(ATTEMPTS, delivery.attempts), diagnosisText(delivery.diagnosis)];
  return parts.filter((part) => part !== '').join('\n\n');
}

const ATTEMPTS: readonly Column<AttemptView>[] = [
  ['ATTEMPT', ({ attempt }) => String(attempt)],
  ['AT', ({ attemptedAt }) => attemptedAt],
  ['LATENCY', ({ latencyMs }) => (latencyMs === null ? '' : `${latencyMs} ms`)],
  ['STATUS', ({ status }) => String(status ?? '')],
  ['RESULT', ({ error }) => error ?? 'delivered'],
  ['ANSWER', ({ answer }) => answerText(answer, MAX_ANSWER)],
];

function planText({ delivery: { nextAttemptAt, attemptsLeft, status }, endpoint, attemptCount }: ShownDelivery) {
  if (status === 'dead') return `none: dead after ${attemptsText(attemptCount)}`;
  if (nextAttemptAt === null) return null;
  if (endpoint.status === 'disabled') return 'none until the endpoint is enabled';
  const { pausedUntil } = endpoint;
  const opens = pausedUntil !== null && pausedUntil > nextAttemptAt ? pausedUntil : nextAttemptAt;
  return `next attempt ${Date.parse(opens) <= now() ? 'now' : opens}, ${attemptsText(attemptsLeft)} left`;
}

function attemptsText(count: number): string {
  return count === 1 ? '1 attempt' : `${count} attempts`;
}

function nextOf({ eventId, type, deliveries }: ShownEventView, endpoint: string | undefined): { next?: string } {
  if (deliveries.length === 0) {
    return {
      next: `it was not planned for ${endpoint ?? 'any endpoint'}: quittance deliveries replay ${eventId} --endpoint ${endpoint ?? 'whe_…'} sends it`,
    };
  }
  const dead = deliveries.find(({ status }) => status === 'dead')?.endpointId;
  if (dead === undefined) return {};
  if (type === 'ping') return { next: `test again: quittance webhook test ${dead}` };
  return { next: `when the receiver works: quittance deliveries replay ${eventId} --endpoint ${dead}` };
}
