import { isoSecond } from '../../operator/command-text.ts';
import { listDeliveriesOperation } from '../../operator/deliveries/operations.ts';
import type { DeliveryView } from '../../operator/deliveries/views.ts';
import { runOperation } from '../terminal/run-operation.ts';
import { type Column, tableOf } from '../terminal/table.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';

export async function printDeliveries(
  terminal: Terminal,
  input: Parameters<typeof listDeliveriesOperation.read>[0],
): Promise<Result> {
  const { view, end } = await runOperation(terminal, listDeliveriesOperation, input);
  const { data, nextBefore } = view;
  const why = end?.kind === 'searched' ? `looked through the newest ${end.events} events` : 'there are more';
  const next =
    nextBefore !== null
      ? `${why}: the same command with --before ${nextBefore} goes on`
      : end === null
        ? data.length === 0
          ? 'no such deliveries'
          : 'see one with "quittance deliveries show evt_…"'
        : `${why}: a larger --limit shows them`;
  return { data: view, text: tableOf(DELIVERIES, data), next };
}

const DELIVERIES: readonly Column<DeliveryView>[] = [
  ['EVENT', ({ eventId }) => eventId],
  ['TYPE', ({ type }) => type],
  ['CREATED (UTC)', ({ createdAt }) => isoSecond(createdAt)],
  ['ENDPOINT', ({ endpointId }) => endpointId],
  ['STATUS', ({ status }) => status],
  ['ATTEMPTS', ({ attempts }) => String(attempts)],
  ['LAST RESULT', ({ lastStatus, lastError }) => lastError?.split(':', 1)[0] ?? String(lastStatus ?? '')],
  ['NEXT ATTEMPT', nextAttemptText],
  ['EXTERNAL ID', ({ externalId }) => shorten(externalId ?? '')],
];

function nextAttemptText({ nextAttemptAt, isEndpointDisabled }: DeliveryView): string {
  if (nextAttemptAt === null) return '';
  return isEndpointDisabled ? 'endpoint disabled' : isoSecond(nextAttemptAt);
}

const MAX_TEXT = 24;

function shorten(text: string): string {
  const characters = [...text];
  return characters.length > MAX_TEXT ? `${characters.slice(0, MAX_TEXT - 1).join('')}…` : text;
}
