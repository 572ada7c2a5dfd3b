import { AppError } from '../../domain/errors.ts';
import { encodeId } from '../../domain/ids.ts';
import { say } from '../../domain/message.ts';
import type { Network } from '../../domain/network.ts';
import { parseUrl } from '../../domain/url.ts';
import type { Sql } from '../../store/db/database.ts';
import { commandOf } from '../../store/db/rows-of.ts';
import { listWebhookEndpoints, type WebhookEndpoint } from '../../store/outbox/webhook-endpoints.ts';
import { checkTarget, targetRule } from '../../webhooks/target.ts';
import { FieldError, refuseSecret } from '../input/field-error.ts';

/**
 * A receiver would get each event twice, with two signatures. `exceptId`: the endpoint that is changed. Nobody else adds or moves one until
 * the transaction ends. Returns those of the project. Errors: `CONFLICT`.
 */
export async function refuseSameUrl(tx: Sql, projectId: string, url: string, exceptId: string | null) {
  await lockProject(tx, projectId);
  const endpoints = await listWebhookEndpoints(tx, projectId);
  const same = endpoints.find((endpoint) => endpoint.url === url && endpoint.id !== exceptId);
  if (same === undefined) return endpoints;
  const endpointId = encodeId('whe', same.id);
  throw new AppError(
    'CONFLICT',
    say`the project has an endpoint with this URL already (${endpointId}): events would arrive there twice. Change what it is told with "${{ command: 'webhook update', args: [endpointId], input: { events: '…' } }}", or give another URL`,
  );
}

const lockProject = commandOf(
  'endpoint-desk-lock-project',
  'select from projects where id = $1 for no key update',
  (id: string) => [id],
);

/** Each event is sent to all that are enabled, and lists show no more than so many. */
const MOST = { enabled: 100, all: 1000 };

/** Refuses one more among the endpoints of a project. Errors: `CONFLICT`. */
export function refuseTooMany(endpoints: readonly Pick<WebhookEndpoint, 'disabledAt'>[], isNew: boolean): void {
  const enabled = endpoints.filter(({ disabledAt }) => disabledAt === null).length;
  if (enabled < MOST.enabled && !(isNew && endpoints.length >= MOST.all)) return;
  const [count, words] = enabled < MOST.enabled ? [MOST.all, 'in all'] : [MOST.enabled, 'that are enabled'];
  throw new AppError(
    'CONFLICT',
    say`the project has ${count} endpoints ${words}, as many as it may: give one of them another URL with "${{ command: 'webhook update', args: ['whe_…'], input: { url: '…' } }}"`,
  );
}

/** Whether this machine lets test networks use http and loopback. */
export type UrlRules = { webhooks: { localTargets: boolean } };

/**
 * The URL as it will be called; what would never be delivered to is refused at once. The query may hold a token of the receiver, so no message repeats it. Errors:
 * `INVALID_ARGUMENT`.
 */
export function readWebhookUrl(
  text: string,
  network: Network,
  { webhooks: { localTargets } }: UrlRules,
  { field, example } = { field: 'url', example: 'https://shop.example.com/webhooks' },
): string {
  refuseSecret(field, OUR_SECRET.test(text) ? 'a secret of Quittance' : null);
  const refuse = (reason: string) => new FieldError(field, `${reason}; nothing was changed`);
  const url = /^https?:\/\/[^/\\\s]/i.test(text) ? parseUrl(text) : null;
  if (url === null) throw refuse(`is not an http:// or https:// URL: write for example ${example}`);
  if (url.href.length > MAX_URL_LENGTH) throw refuse(`has ${url.href.length} characters: at most ${MAX_URL_LENGTH}`);
  if (url.hash !== '') {
    const shown = JSON.stringify(url.origin);
    throw refuse(`(${shown}) has a fragment, which is never sent: remove everything from the "#" on`);
  }
  const check = checkTarget(url, targetRule(network, localTargets));
  if (check.kind === 'ok') return url.href;
  const wouldHelp = checkTarget(url, targetRule(network, true)).kind === 'ok';
  throw refuse(wouldHelp ? `${check.reason}; ${HOW_TO_ALLOW}` : check.reason);
}

/** A token of the receiver may stand in the URL, which is shown in lists; ours has no business there. */
const OUR_SECRET = /whsec_|qt_(?:live|test)_|qa_[0-9a-z]{26}/;
/** The bound of the schema. */
const MAX_URL_LENGTH = 2048;
const HOW_TO_ALLOW =
  'QUITTANCE_WEBHOOK_LOCAL_TARGETS=allow lets projects on a test network use http and this machine as well';
