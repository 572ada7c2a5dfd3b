import { formatFields, isoMinute } from '../../operator/command-text.ts';
import { writeText } from '../../operator/command-words.ts';
import {
  addEndpointOperation,
  disableEndpointOperation,
  enableEndpointOperation,
  listEndpointsOperation,
  rotateSecretOperation,
  showEndpointOperation,
  testEndpointOperation,
  updateEndpointOperation,
} from '../../operator/webhooks/operations.ts';
import type { EndpointView, ListedEndpointView } from '../../operator/webhooks/views.ts';
import { EXIT } from '../terminal/describe-error.ts';
import { answerText, diagnosisText, statusText } from '../terminal/endpoint-text.ts';
import { readSecret, secretHints } from '../terminal/read-secret.ts';
import { runOperation } from '../terminal/run-operation.ts';
import { type Column, tableOf } from '../terminal/table.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';
import { now } from '../terminal/with-database.ts';

type Endpoint = { endpointId: string };

export async function printNewEndpoint(
  terminal: Terminal,
  input: Parameters<typeof addEndpointOperation.read>[0],
): Promise<Result> {
  const secret = await readSecret(input.secret, terminal);
  const data = await runOperation(terminal, addEndpointOperation, { ...input, secret });
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
  const data = await runOperation(terminal, listEndpointsOperation, input);
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

export async function printEndpoint(terminal: Terminal, input: Endpoint): Promise<Result> {
  const data = await runOperation(terminal, showEndpointOperation, input);
  const { looked, delivered, waiting, dead, isSample } = data.day;
  const secrets = data.secrets.map(({ fingerprint, endsAt }) => {
    return `${fingerprint ?? 'cannot be opened'}${endsAt === null ? '' : `, until ${isoMinute(endsAt)}`}`;
  });
  return {
    data,
    text: formatFields([
      ['endpoint', data.endpointId],
      ['url', data.url],
      ['description', data.description || null],
      ['status', statusText(data)],
      ['events', typesText(data)],
      [
        '24 hours',
        `${delivered} of ${isSample ? 'the newest ' : ''}${looked} delivered, ${waiting} wait, ${dead} given up`,
      ],
      ['oldest undelivered', data.oldestUndelivered],
      ['last attempt', lastAttemptText(data.lastAttempt)],
      ['secrets', secrets.join('; ')],
    ]),
    next: 'the fingerprint of the secret that a receiver has: printf %s "$SECRET" | sha256sum | cut -c1-12',
  };
}

export async function printUpdatedEndpoint(
  terminal: Terminal,
  input: Parameters<typeof updateEndpointOperation.read>[0],
): Promise<Result> {
  const { endpointId } = input;
  const { view, isMoved } = await runOperation(terminal, updateEndpointOperation, input);
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
  input: Parameters<typeof rotateSecretOperation.read>[0],
): Promise<Result> {
  const { endpointId } = input;
  const given = { ...input, secret: await readSecret(input.secret, terminal) };
  const data = await runOperation(terminal, rotateSecretOperation, given);
  const hasOverlap = rotateSecretOperation.read(given, now()).overlapMs > 0 && !data.isFormerSecretLost;
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
  const { view, url, isDisabled } = await runOperation(terminal, testEndpointOperation, { endpointId });
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
  const data = await runOperation(terminal, enableEndpointOperation, input);
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
  const data = await runOperation(terminal, disableEndpointOperation, { ...input, endpointId }, { by });
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
