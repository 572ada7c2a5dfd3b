import { encodeId } from '../../domain/ids.ts';
import { MAX_REPLAYED_ATTEMPTS } from '../../store/delivery-replay.ts';
import type { WebhookEndpoint } from '../../store/webhook-endpoints.ts';
import { CliError } from '../cli-error.ts';

export type ReplayOptions = {
  endpoint?: string;
  from?: string;
  to?: string;
  status?: string[];
  type?: string[];
  dryRun?: boolean;
  yes?: boolean;
  by?: string;
};

const MANY = 100;

/** Errors: `USAGE`. */
export function refuseMany(total: number, yes: boolean | undefined): void {
  if (total <= MANY || yes === true) return;
  throw new CliError(
    'USAGE',
    `this sends ${total} webhooks again: look with --dry-run, and run the command again with --yes if that is meant`,
  );
}

/** What is told of deliveries that were attempted too often. */
export function exhaustedText(count: number): string {
  return `${count}, after ${MAX_REPLAYED_ATTEMPTS} attempts: read them from the feed (GET /v1/events)`;
}

/** What is replayed to an endpoint that is disabled waits. */
export function disabledNotes(endpoints: readonly WebhookEndpoint[]): string[] {
  return endpoints.flatMap(({ id, disabled_at }) => {
    if (disabled_at === null) return [];
    const endpointId = encodeId('whe', id);
    return [`${endpointId} is disabled: they wait until "quittance webhook enable ${endpointId}"`];
  });
}
