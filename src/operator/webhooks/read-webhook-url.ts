import { AppError } from '../../domain/errors.ts';
import { encodeId } from '../../domain/ids.ts';
import { say } from '../../domain/message.ts';
import { keyMode, type Network } from '../../domain/network.ts';
import type { Sql } from '../../store/db/database.ts';
import { listWebhookEndpoints } from '../../store/outbox/webhook-endpoints.ts';
import { checkTarget } from '../../webhooks/target.ts';
import { FieldError, refuseSecret } from '../input/field-error.ts';

/** A receiver would get each event twice, with two signatures. `exceptId`: the endpoint that is changed. Errors: `CONFLICT`. */
export async function refuseSameUrl(db: Sql, projectId: string, url: string, exceptId: string | null): Promise<void> {
  const endpoints = await listWebhookEndpoints(db, projectId);
  const same = endpoints.find((endpoint) => endpoint.url === url && endpoint.id !== exceptId);
  if (same === undefined) return;
  const endpointId = encodeId('whe', same.id);
  throw new AppError(
    'CONFLICT',
    say`the project has an endpoint with this URL already (${endpointId}): events would arrive there twice. Change what it is told with "${{ command: 'webhook update', args: [endpointId], input: { events: '…' } }}", or give another URL`,
  );
}

/** Whether this machine lets test networks use http and loopback. */
export type UrlRules = { webhooks: { localTargets: boolean } };

/**
 * The URL as it will be called; what would never be delivered to is refused at once. The query may hold a token of the receiver, so no message repeats it. Errors:
 * `INVALID_ARGUMENT`.
 */
export function readWebhookUrl(text: string, network: Network, { webhooks: { localTargets } }: UrlRules): string {
  refuseSecret('url', OUR_SECRET.test(text) ? 'a secret of Quittance' : null);
  const refuse = (reason: string) => new FieldError('url', `${reason}; nothing was changed`);
  const url = URL.canParse(text) && /^https?:\/\/[^/\\\s]/i.test(text) ? new URL(text) : null;
  if (url === null)
    throw refuse('is not an http:// or https:// URL: write for example https://shop.example.com/webhooks');
  if (url.href.length > MAX_URL_LENGTH) throw refuse(`has ${url.href.length} characters: at most ${MAX_URL_LENGTH}`);
  if (url.hash !== '') {
    const shown = JSON.stringify(url.origin);
    throw refuse(`(${shown}) has a fragment, which is never sent: remove everything from the "#" on`);
  }
  const isTest = keyMode(network) === 'test';
  const check = checkTarget(url, isTest && localTargets ? 'local' : 'public');
  if (check.kind === 'ok') return url.href;
  const wouldHelp = isTest && checkTarget(url, 'local').kind === 'ok';
  throw refuse(wouldHelp ? `${check.reason}; ${HOW_TO_ALLOW}` : check.reason);
}

/** A token of the receiver may stand in the URL, which is shown in lists; ours has no business there. */
const OUR_SECRET = /whsec_|qt_(?:live|test)_|qa_[0-9a-z]{26}/;
/** The bound of the schema. */
const MAX_URL_LENGTH = 2048;
const HOW_TO_ALLOW =
  'QUITTANCE_WEBHOOK_LOCAL_TARGETS=allow lets projects on a test network use http and this machine as well';
