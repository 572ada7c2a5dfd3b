import { addEndpoint, readNewEndpoint } from '../../operator/webhooks/add-endpoint.ts';
import { disableEndpoint, readDisableReason } from '../../operator/webhooks/disable-endpoint.ts';
import { enableEndpoint } from '../../operator/webhooks/enable-endpoint.ts';
import { listEndpoints } from '../../operator/webhooks/list-endpoints.ts';
import { readRotation, rotateSecret } from '../../operator/webhooks/rotate-secret.ts';
import { testEndpoint } from '../../operator/webhooks/test-endpoint.ts';
import { readChange, updateEndpoint } from '../../operator/webhooks/update-endpoint.ts';
import type { EndpointView, ListedEndpointView } from '../../operator/webhooks/views.ts';
import { EXIT } from '../terminal/describe-error.ts';
import { answerText, diagnosisText, statusText } from '../terminal/endpoint-text.ts';
import { isoMinute } from '../terminal/iso-text.ts';
import { cliActor } from '../terminal/operator.ts';
import { type Column, tableOf } from '../terminal/table.ts';
import { formatFields, type Result, type Terminal } from '../terminal/terminal.ts';
import { withDatabase } from '../terminal/with-database.ts';
import { writeText } from '../terminal/write-text.ts';
import { readSecret, secretHints } from './read-secret.ts';

type Endpoint = { endpointId: string };

export async function printNewEndpoint(
  terminal: Terminal,
  { projectId, url, ...input }: { projectId: string | undefined; url: string } & Parameters<typeof readNewEndpoint>[0],
): Promise<Result> {
  const endpoint = readNewEndpoint({ ...input, secret: await readSecret(input.secret, terminal) });
  const data = await withDatabase(terminal, (deps) =>
    addEndpoint({ ...deps, note: terminal.note }, cliActor(terminal), { ...endpoint, projectId, url }),
  );
  return {
    data,
    text: formatFields([
      ['endpoint', data.endpointId],
      ['project', data.projectId],
      ['network', data.network],
      ['url', data.url],
      ['description', data.description || null],
      ['events', typesText(data)],
      ['secret', data.secret ?? NOT_SHOWN],
    ]),
    next: [
      ...secretHints(
        input.secret,
        'the secret is shown only now: your receiver verifies the signature of each webhook with it',
      ),
      `see whether it arrives: quittance webhook test ${data.endpointId}`,
    ].join('\n'),
  };
}

const NOT_SHOWN = 'the given one, not shown';

function typesText({ eventTypes }: Pick<EndpointView, 'eventTypes'>): string {
  return eventTypes?.join(',') ?? 'all';
}

export async function printEndpoints(terminal: Terminal, input: { projectId: string | undefined }): Promise<Result> {
  const data = await withDatabase(terminal, (deps) => listEndpoints(deps, cliActor(terminal), input));
  const disabled = data.data.find(({ status }) => status === 'disabled')?.endpointId;
  const next =
    data.data.length === 0
      ? 'no endpoint yet: add one with "quittance webhook add --url …"'
      : `when the receiver of a disabled endpoint works: quittance webhook test ${disabled}, then webhook enable ${disabled}`;
  const hasNext = data.data.length === 0 || disabled !== undefined;
  return { data, text: tableOf(ENDPOINTS, data.data), ...(hasNext ? { next } : {}) };
}

const ENDPOINTS: readonly Column<ListedEndpointView>[] = [
  ['ENDPOINT', ({ endpointId }) => endpointId],
  ['STATUS', statusText],
  ['EVENTS', typesText],
  ['UNDELIVERED', ({ undelivered, isUndeliveredMore }) => `${undelivered}${isUndeliveredMore ? '+' : ''}`],
  ['LAST ATTEMPT (UTC)', ({ lastAttempt }) => lastAttemptText(lastAttempt)],
  ['SECRETS', ({ secrets }) => secretsText(secrets)],
  ['URL', ({ url }) => url],
  ['DESCRIPTION', ({ description }) => description],
];

function lastAttemptText(attempt: ListedEndpointView['lastAttempt']): string {
  if (attempt === null) return 'none';
  const { attemptedAt, status, error } = attempt;
  return `${isoMinute(attemptedAt)}, ${error?.split(':', 1)[0] ?? `delivered, ${status}`}`;
}

function secretsText(secrets: ListedEndpointView['secrets']): string {
  const ending = secrets.flatMap(({ endsAt }) => (endsAt === null ? [] : [`until ${isoMinute(endsAt)}`]));
  return [String(secrets.length), ...ending].join(', ');
}

export async function printUpdatedEndpoint(
  terminal: Terminal,
  { endpointId, ...input }: Endpoint & Parameters<typeof readChange>[0],
): Promise<Result> {
  const change = readChange(input);
  const { view, isMoved } = await withDatabase(terminal, (deps) =>
    updateEndpoint(deps, cliActor(terminal), { ...change, endpointId }),
  );
  const notes = [
    isMoved && `what is undelivered goes to the new URL: quittance webhook test ${endpointId}`,
    view.disabledAt !== null && `it stays disabled, and nothing is sent until "quittance webhook enable ${endpointId}"`,
    input.events !== undefined && 'the types count for events from now on; what is planned is still delivered',
  ].filter((note) => note !== false);
  return {
    data: view,
    text: formatFields([
      ['endpoint', view.endpointId],
      ['url', view.url],
      ['description', view.description],
      ['events', typesText(view)],
    ]),
    ...(notes.length === 0 ? {} : { next: notes.join('\n') }),
  };
}

export async function printRotatedSecret(
  terminal: Terminal,
  { isKeyLost, endpointId, ...input }: Endpoint & { isKeyLost: boolean } & Parameters<typeof readRotation>[0],
): Promise<Result> {
  const rotation = readRotation({ ...input, secret: await readSecret(input.secret, terminal) });
  const data = await withDatabase(terminal, (deps) =>
    rotateSecret({ ...deps, note: terminal.note }, cliActor(terminal), { ...rotation, endpointId, isKeyLost }),
  );
  const hasOverlap = rotation.overlapMs > 0 && !data.isFormerSecretLost;
  return {
    data,
    text: formatFields([
      ['endpoint', endpointId],
      ['secret', data.secret ?? NOT_SHOWN],
      ['former secret', hasOverlap ? `signs too until ${data.formerSecretEndsAt}` : 'signs no more'],
    ]),
    next: [
      ...secretHints(input.secret, 'the secret is shown only now'),
      data.isFormerSecretLost
        ? 'the former secret could not be opened with the master keys that are set here, so it ended at once'
        : hasOverlap
          ? 'until the former secret ends, each webhook carries a signature of both: give the receiver the new one meanwhile'
          : 'receivers that hold the former secret refuse webhooks from now on; what they refuse is tried again',
    ].join('\n'),
  };
}

/** The most characters of an answer in a terminal. */
const MAX_ANSWER = 500;

export async function printTest(terminal: Terminal, { endpointId }: Endpoint): Promise<Result> {
  const { view, url, isDisabled } = await withDatabase(terminal, (deps) =>
    testEndpoint({ ...deps, note: terminal.note }, cliActor(terminal), { endpointId }),
  );
  const { isDelivered, eventId, status, latencyMs, error, dns, tls, answer } = view;
  const fields = formatFields([
    ['endpoint', endpointId],
    ['url', url],
    ['event', `${eventId}, a ping`],
    ['result', isDelivered ? 'delivered' : `failed: ${error}`],
    ['status', status === null ? null : String(status)],
    ['latency', latencyMs === null ? null : `${latencyMs} ms`],
    ['dns', dns],
    ['tls', tls],
    ['answer', answerText(answer, MAX_ANSWER) || null],
  ]);
  return {
    data: view,
    text: [fields, diagnosisText(view.diagnosis)].filter((part) => part !== '').join('\n\n'),
    ...(isDelivered && isDisabled ? { next: `the endpoint is disabled: quittance webhook enable ${endpointId}` } : {}),
    exitCode: isDelivered ? EXIT.ok : EXIT.failed,
  };
}

export async function printEnabledEndpoint(terminal: Terminal, input: Endpoint): Promise<Result> {
  const data = await withDatabase(terminal, (deps) => enableEndpoint(deps, cliActor(terminal), input));
  const { disabledAt, disabledReason, hastened, missed, isMissedMore, replay } = data;
  return {
    data,
    text: formatFields([
      ['endpoint', data.endpointId],
      ['status', disabledAt === null ? 'active, as before; its failures are forgotten' : 'active'],
      ['was disabled', disabledAt && `${disabledAt}: ${disabledReason ?? ''}`],
      ['due now', hastened === 0 ? null : `${hastened} that waited for their next attempt`],
      [
        'not planned',
        replay === null ? null : `${isMissedMore ? 'more than ' : ''}${missed} events that happened meanwhile`,
      ],
    ]),
    ...(replay === null
      ? {}
      : { next: `what happened meanwhile is sent only if you say so (the feed has it, too):\n  ${writeText(replay)}` }),
  };
}

export async function printDisabledEndpoint(
  terminal: Terminal,
  { endpointId, by, ...input }: Endpoint & { by: string | undefined; reason: string | undefined },
): Promise<Result> {
  const actor = cliActor(terminal, by);
  const reason = readDisableReason(input.reason);
  const data = await withDatabase(terminal, (deps) => disableEndpoint(deps, actor, { endpointId, reason }));
  return {
    data,
    text: formatFields([
      ['endpoint', endpointId],
      ['status', 'disabled'],
      ['reason', data.disabledReason],
    ]),
    next: `nothing is sent there until "quittance webhook enable ${endpointId}"; events from now on are not planned for it and stand in the feed`,
  };
}
