import {
  addChannelOperation,
  listChannelsOperation,
  removeChannelOperation,
  testChannelOperation,
} from '../../operator/notify/operations.ts';
import type { ChannelView } from '../../operator/notify/views.ts';
import { EXIT } from '../terminal/describe-error.ts';
import { isoMinute } from '../terminal/iso-text.ts';
import { readSecret } from '../terminal/read-secret.ts';
import { runOperation } from '../terminal/run-operation.ts';
import { type Column, tableOf } from '../terminal/table.ts';
import { formatFields, type Result, type Terminal } from '../terminal/terminal.ts';

/** They may be secret, and one of them may come by standard input. */
const SECRETS = ['url', 'token', 'secret'] as const;

export async function printNewChannel(
  terminal: Terminal,
  given: Parameters<typeof addChannelOperation.read>[0],
): Promise<Result> {
  const input = { ...given };
  for (const field of SECRETS) input[field] = await readSecret(given[field], terminal);
  const data = await runOperation(terminal, addChannelOperation, input);
  const isTyped = SECRETS.some((field) => given[field] !== undefined && given[field] !== '-');
  return {
    data,
    text: formatFields([
      ['channel', data.channelId],
      ['kind', data.kind],
      ['name', data.name],
      ['leads to', data.shown],
      ['quiet hours', data.quiet && `${data.quiet}, ${data.timeZone}`],
      ['summary', data.summary && `${data.summary}, ${data.timeZone}`],
      ['secret', data.secret],
    ]),
    next: [
      ...(data.secret === null
        ? []
        : ['the secret is shown only now: your receiver verifies the signature of each message with it']),
      ...(isTyped ? ['what you typed may now stand in your shell history; "-" reads it from standard input'] : []),
      `see whether it arrives: quittance notify test ${data.channelId}`,
    ].join('\n'),
  };
}

const CHANNELS: readonly Column<ChannelView>[] = [
  ['CHANNEL', ({ channelId }) => channelId],
  ['KIND', ({ kind }) => kind],
  ['STATUS', ({ failingSince }) => (failingSince === null ? 'active' : `failing since ${isoMinute(failingSince)}`)],
  ['LAST SENT (UTC)', ({ lastSentAt }) => (lastSentAt === null ? 'never' : isoMinute(lastSentAt))],
  ['QUIET', ({ quiet, timeZone }) => (quiet === null ? 'never' : `${quiet} ${timeZone}`)],
  ['SUMMARY', ({ summary, timeZone }) => (summary === null ? 'none' : `${summary} ${timeZone}`)],
  ['LEADS TO', ({ shown }) => shown],
  ['NAME', ({ name }) => name],
];

export async function printChannels(terminal: Terminal): Promise<Result> {
  const data = await runOperation(terminal, listChannelsOperation, {});
  const failing = data.data.find(({ failingSince }) => failingSince !== null);
  const next =
    data.data.length === 0
      ? 'no channel yet, so nobody is told of alarms: add one with "quittance notify add"'
      : failing &&
        `${failing.channelId} fails: ${failing.lastError}. Try it: quittance notify test ${failing.channelId}`;
  return { data, text: tableOf(CHANNELS, data.data), ...(next === undefined ? {} : { next }) };
}

export async function printTestedChannel(terminal: Terminal, input: { channelId: string }): Promise<Result> {
  const data = await runOperation(terminal, testChannelOperation, input);
  return {
    data,
    text: formatFields([
      ['channel', data.channelId],
      ['message', data.messageId],
      ['result', data.isDelivered ? 'delivered' : `failed: ${data.error}`],
      ['latency', `${data.latencyMs} ms`],
    ]),
    exitCode: data.isDelivered ? EXIT.ok : EXIT.failed,
  };
}

export async function printRemovedChannel(terminal: Terminal, input: { channelId: string }): Promise<Result> {
  const data = await runOperation(terminal, removeChannelOperation, input);
  return { data, text: `removed ${data.channelId}`, next: 'what waited for it is not sent' };
}
