import { isIP } from 'node:net';
import { conflict, notFound } from '../../../core/domain/errors.ts';
import { encodeId, uuidV7 } from '../../../core/domain/ids.ts';
import { say } from '../../../core/domain/message.ts';
import { toIso, type UnixMs, unixMs } from '../../../core/domain/time.ts';
import { parseUrl } from '../../../core/domain/url.ts';
import { requireKeyRing } from '../../../core/runtime/open-key-ring.ts';
import { type Static, Type } from '../../../core/runtime/type.ts';
import type { Database, Sql } from '../../../core/store/db/database.ts';
import {
  CHANNEL_KINDS,
  type ChannelKind,
  type ChannelSettings,
  findNotifyChannel,
  findSealedTarget,
  listNotifyChannels,
  MAX_CHANNELS,
  type NotifyChannel,
  recordChannelFailed,
  recordChannelSent,
  removeNotifyChannel,
} from '../../../core/store/outbox/notify-channels.ts';
import { createWebhookSender } from '../../../core/webhooks/send.ts';
import { createWebhookSecret } from '../../../core/webhooks/sign.ts';
import { checkAddresses, checkTarget } from '../../../core/webhooks/target.ts';
import { type MailTarget, openTarget, storeChannel, type Target } from '../../notify/channel-target.ts';
import { isTimeZone } from '../../notify/quiet-hours.ts';
import { ATTEMPT_MS, type Attempt, type Message, sendMessage } from '../../notify/send-message.ts';
import { columnsText, fieldsText, isoMinute } from '../command-words.ts';
import { type KeyDeps, openEncryptionKeys } from '../encryption-keys.ts';
import { choice, id, listOf, maybe, of, type Shown, schemaOf, show, text, time, whole, yes } from '../fields.ts';
import { clip, FieldError, nameProblem } from '../input/problems.ts';
import { noSuch, readChoice, readGivenSecret, readId } from '../input/readers.ts';
import { type Given, operation } from '../operation.ts';
import { argument, argumentOf, flag, line, lines, secret } from '../option.ts';
import { recordAction } from '../record-actions.ts';

type Times = Pick<ChannelSettings, 'quietFrom' | 'quietTo' | 'summaryAt'>;
/**
 * `shown` is the displayed part of the target. `quiet` is a range such as `22:00-07:00`, and `summary` a time such as `08:00`, both in the
 * time zone.
 */
const channelFields = {
  channelId: of('id', id('chn')),
  kind: choice(CHANNEL_KINDS),
  name: text,
  shown: text,
  quiet: {
    ...of('*', maybe(text)),
    show: ({ quietFrom, quietTo }: Times) =>
      quietFrom === null || quietTo === null ? null : `${timeOfMinute(quietFrom)}-${timeOfMinute(quietTo)}`,
  },
  summary: {
    ...of('*', maybe(text)),
    show: ({ summaryAt }: Times) => (summaryAt === null ? null : timeOfMinute(summaryAt)),
  },
  timeZone: text,
};
/** A channel without its secret target. `failingSince`: every attempt since then has failed. */
const listed = {
  ...channelFields,
  createdAt: time,
  lastSentAt: maybe(time),
  failingSince: maybe(time),
  lastError: maybe(text),
};
export type ChannelView = Shown<typeof listed>;

export const listChannels = operation({
  action: 'listChannels',
  summary: 'List the notification channels, without their secret targets',
  route: 'GET /notify',
  command: 'notify list',
  does: 'list the notification channels and their health, without their secret targets',
  input: Type.Object({}),
  output: listOf(listed),
  run: async ({ db }: { db: Sql }) => ({
    data: (await listNotifyChannels(db)).map((channel) => show(listed, channel)),
  }),
  print: ({ data }) => {
    const failing = data.find(({ failingSince }) => failingSince !== null);
    return {
      text: columnsText(data, [
        ['CHANNEL', 'channelId'],
        ['KIND', 'kind'],
        [
          'STATUS',
          ({ failingSince }) => (failingSince === null ? 'active' : `failing since ${isoMinute(failingSince)}`),
        ],
        ['LAST SENT (UTC)', ({ lastSentAt }) => (lastSentAt === null ? 'never' : isoMinute(lastSentAt))],
        ['QUIET', ({ quiet, timeZone }) => (quiet === null ? 'never' : `${quiet} ${timeZone}`)],
        ['SUMMARY', ({ summary, timeZone }) => (summary === null ? 'none' : `${summary} ${timeZone}`)],
        ['TARGET', 'shown'],
        ['NAME', 'name'],
      ]),
      next: [
        data.length === 0 &&
          say`no channel yet, so no one is notified of alarms: add a channel with "${{ command: 'notify add' }}"`,
        failing !== undefined &&
          say`${failing.channelId} is failing: ${failing.lastError ?? ''}. To test it: ${{ command: 'notify test', args: [failing.channelId] }}`,
      ],
    };
  },
});

type SendDeps = KeyDeps & { db: Database; random(bytes: number): Uint8Array };

const newChannel = Type.Object({
  kind: argumentOf(CHANNEL_KINDS, '<kind>', 'kind of channel'),
  name: line('<name>', 'name, 1 to 100 characters (default: the kind)'),
  url: secret(
    '<url>',
    'smtps://user:password@host for email, the webhook URL for slack, discord or webhook, https://host/topic for ntfy',
  ),
  from: line('<address>', 'email: sender address'),
  to: lines('<address…>', 'email: recipients, comma-separated'),
  token: secret('<token>', 'telegram: bot token; ntfy: access token, if the topic requires one'),
  chat: line('<chat>', 'telegram: chat id, or @channelname'),
  secret: secret('<whsec_…>', 'webhook: your own secret (default: generated and shown once)'),
  isOwnNetwork: flag(
    'for a server in your own network: allow private addresses, this machine, and connections without TLS',
  ),
  quiet: line('<hours>', 'quiet hours for messages that can wait, such as 22:00-07:00'),
  summary: line('<time>', 'time of a daily summary, such as 08:00'),
  timeZone: line('<zone>', 'time zone for these times, such as Europe/Berlin (default: UTC)'),
});
type NewChannel = Given<Static<typeof newChannel>>;

/** Adds a channel. It receives the open alarms, and every later notification. Throws `CONFLICT` or `CONFIG_INVALID`. */
export const addChannel = operation({
  action: 'addChannel',
  summary: 'Add a notification channel for operators; a generated secret is shown once',
  route: 'POST /notify',
  command: 'notify add',
  does: say`add a notification channel; "-" for ${{ field: 'url' }}, ${{ field: 'token' }} or ${{ field: 'secret' }} reads it from standard input`,
  // `secret` is a generated signing secret, shown only once.
  output: schemaOf({ ...channelFields, secret: maybe(text) }),
  input: newChannel,
  read: readNewChannel,
  run: async (deps: SendDeps, actor, { kind, name, target: given, shown, times }) => {
    const { db, now, random } = deps;
    if ((await listNotifyChannels(db)).length >= MAX_CHANNELS)
      throw conflict`there are already ${MAX_CHANNELS} channels, which is the limit: remove a channel first`;
    const keyRing = await openEncryptionKeys(deps);
    const secret = given.kind === 'webhook' && given.secret === '' ? createWebhookSecret(random) : null;
    const target = given.kind === 'webhook' && secret !== null ? { ...given, secret } : given;
    const createdAt = now();
    const channel = { id: uuidV7(createdAt, random(10)), kind, name, shown, ...times, createdAt, removedAt: null };
    const view = show(channelFields, channel);
    const isAdded = await db.transaction(async (tx) => {
      if (!(await storeChannel(tx, keyRing, { channel, target }))) return false;
      const { channelId, ...detail } = view;
      await recordAction(tx, actor, createdAt, 'channel.added', { subject: encodeId('chn', channel.id), detail });
      return true;
    });
    if (isAdded) return { ...view, secret };
    throw conflict`a channel with this name already exists: use another ${{ field: 'name' }}, or see "${{ command: 'notify list' }}"`;
  },
  print: (channel, { isSecretTyped }) => ({
    text: fieldsText(channel, [
      ['channel', 'channelId'],
      ['kind', 'kind'],
      ['name', 'name'],
      ['target', 'shown'],
      ['quiet hours', ({ quiet, timeZone }) => quiet && `${quiet}, ${timeZone}`],
      ['summary', ({ summary, timeZone }) => summary && `${summary}, ${timeZone}`],
      ['secret', 'secret'],
    ]),
    next: [
      channel.secret !== null &&
        'copy the secret now, because it is not shown again: your receiver needs it to verify the signature of each message',
      isSecretTyped && 'the value you typed may now be in your shell history; use "-" to read it from standard input',
      say`to check that messages arrive: ${{ command: 'notify test', args: [channel.channelId] }}`,
    ],
  }),
});

/** The fields that make up each kind of channel's target. */
export const CHANNEL_FIELDS: Readonly<Record<ChannelKind, { needs: readonly Field[]; takes: readonly Field[] }>> = {
  email: { needs: ['url', 'from', 'to'], takes: [] },
  telegram: { needs: ['token', 'chat'], takes: ['url'] },
  slack: { needs: ['url'], takes: [] },
  discord: { needs: ['url'], takes: [] },
  ntfy: { needs: ['url'], takes: ['token'] },
  webhook: { needs: ['url'], takes: ['secret'] },
};
const ALL_FIELDS = ['url', 'from', 'to', 'token', 'chat', 'secret'] as const;
type Field = (typeof ALL_FIELDS)[number];

/** Reads a new channel's properties. Throws `INVALID_ARGUMENT`, without anything secret. */
function readNewChannel({ name: givenName, isOwnNetwork = false, ...given }: NewChannel) {
  const kind = readChoice('kind', given.kind, CHANNEL_KINDS);
  if (kind === null) throw new FieldError('kind', `is missing: choose ${CHANNEL_KINDS.join(', ')}`);
  const { needs, takes } = CHANNEL_FIELDS[kind];
  for (const field of ALL_FIELDS) {
    const isGiven = given[field] !== undefined && given[field].length > 0;
    if (needs.includes(field) && !isGiven)
      throw new FieldError(field, `is missing: a channel of kind ${kind} requires it`);
    if (isGiven && !needs.includes(field) && !takes.includes(field))
      throw new FieldError(field, `does not apply to a channel of kind ${kind}: leave it out`);
  }
  const name = givenName?.trim() ?? kind;
  const problem = nameProblem(name);
  if (problem !== null) throw new FieldError('name', problem);
  return { kind, name, ...readTarget({ ...given, isOwnNetwork }), times: readTimes(given) };
}

type GivenTarget = Omit<NewChannel, 'isOwnNetwork'> & { isOwnNetwork: boolean };

/** A channel's target, and its displayed part. A webhook may still lack its secret, which is then empty. */
type ReadTarget = { target: Target; shown: string };

/**
 * Reads a channel's target, and refuses a target that could never receive a message. Throws `INVALID_ARGUMENT`, without anything secret.
 */
function readTarget(given: GivenTarget): ReadTarget {
  const { kind, isOwnNetwork, chat = '', secret } = given;
  if (kind === 'email') return readMail(given);
  const url = readHttpUrl(given.url ?? 'https://api.telegram.org', isOwnNetwork);
  const own = { isOwnNetwork };
  const read = (target: Target, shown = url.host): ReadTarget => ({ target, shown });
  switch (kind) {
    case 'telegram':
      return read(
        { kind, ...own, url: url.href, token: readToken(given.token, TELEGRAM), chat: readChat(chat) },
        `chat ${chat} via ${url.host}`,
      );
    case 'slack':
    case 'discord':
      return read({ kind, ...own, url: url.href });
    case 'ntfy':
      return read(readNtfy(url, given));
    case 'webhook': {
      const target = { kind, ...own, url: url.href, secret: secret === undefined ? '' : readGivenSecret(secret) };
      return read(target, url.origin);
    }
  }
}

/** The same limit as for webhooks. */
const MAX_URL_LENGTH = 2048;

function readHttpUrl(text: string, isOwnNetwork: boolean): URL {
  const url = /^https?:\/\/[^/\\\s]/i.test(text) ? parseUrl(text) : null;
  if (url === null)
    throw new FieldError('url', 'is not an http:// or https:// URL (not shown, because it may be secret)');
  if (url.href.length > MAX_URL_LENGTH)
    throw new FieldError('url', `has ${url.href.length} characters: use at most ${MAX_URL_LENGTH}`);
  const check = checkTarget(url, isOwnNetwork ? 'own' : 'public');
  if (check.kind === 'ok') return url;
  const isAllowedThere = !isOwnNetwork && checkTarget(url, 'own').kind === 'ok';
  throw new FieldError('url', isAllowedThere ? say`: ${check.reason}; ${HOW_TO_ALLOW}` : `: ${check.reason}`);
}

const HOW_TO_ALLOW = say`for a server in your own network, use ${{ field: 'isOwnNetwork' }}`;

/** The topic is the path. Anyone who knows the topic can subscribe to it, so it isn't shown. ntfy accepts JSON only at its root. */
function readNtfy(url: URL, { token, isOwnNetwork }: GivenTarget): Target {
  const topic = url.pathname.slice(1);
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(topic) || url.search !== '')
    throw new FieldError('url', 'has no topic: use the server address and the topic, such as https://ntfy.sh/topic');
  return {
    kind: 'ntfy',
    isOwnNetwork,
    url: `${url.origin}/`,
    topic,
    token: token === undefined ? null : readToken(token, TOKEN),
  };
}

const TELEGRAM = /^\d{1,20}:[A-Za-z0-9_-]{20,100}$/;
const TOKEN = /^[!-~]{1,200}$/;

function readToken(token: string | undefined, form: RegExp): string {
  if (token !== undefined && form.test(token)) return token;
  throw new FieldError('token', `(${token?.length ?? 0} characters, not shown) is not a valid token`);
}

function readChat(chat: string): string {
  if (/^(-?\d{1,20}|@[A-Za-z0-9_]{1,64})$/.test(chat)) return chat;
  throw new FieldError('chat', 'is not a Telegram chat: use its id, such as -1001234567890, or @channelname');
}

const MAX_RECIPIENTS = 20;
const PORTS = { 'smtp:': 587, 'smtps:': 465 } as const;

function readMail({ url: text = '', from = '', to = [], isOwnNetwork }: GivenTarget): ReadTarget {
  const url = parseUrl(text);
  if (url === null || !(url.protocol === 'smtp:' || url.protocol === 'smtps:') || url.hostname === '')
    throw new FieldError(
      'url',
      'is not smtps://user:password@host:465 or smtp://user:password@host:587 (it is not shown)',
    );
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1').toLowerCase();
  const family = isIP(host);
  const check =
    family === 0 ? null : checkAddresses(host, [{ address: host, family }], isOwnNetwork ? 'own' : 'public');
  if (check?.kind === 'refused')
    throw new FieldError('url', isOwnNetwork ? `: ${check.reason}` : say`: ${check.reason}; ${HOW_TO_ALLOW}`);
  if (to.length > MAX_RECIPIENTS)
    throw new FieldError('to', `has ${to.length} addresses: use at most ${MAX_RECIPIENTS}`);
  const port = Number(url.port) || PORTS[url.protocol];
  const target: MailTarget = {
    ...{ kind: 'email', isOwnNetwork, host, port, isTls: url.protocol === 'smtps:' },
    login: url.username === '' ? null : { user: decode(url.username), password: decode(url.password) },
    ...{ from: readMailAddress('from', from), to: to.map((each) => readMailAddress('to', each)) },
  };
  const [first] = target.to;
  const more = target.to.length > 1 ? ` and ${target.to.length - 1} more` : '';
  return { target, shown: `${first}${more} via ${host}:${port}`.slice(0, MAX_SHOWN) };
}

/** The limit that the database schema sets. */
const MAX_SHOWN = 300;

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new FieldError('url', 'contains a % that is not an escape: write a % in the user or password as %25');
  }
}

function readMailAddress(field: string, text: string): string {
  const address = text.trim();
  if (/^[^\s@<>(),;:"\\[\]\p{Cc}]{1,64}@[^\s@<>(),;:"\\[\]\p{Cc}]{1,190}$/u.test(address)) return address;
  throw new FieldError(field, 'is not an e-mail address: use an address such as ops@example.com');
}

/** Reads quiet hours (`22:00-07:00`) and the time of the daily summary (`08:00`) in a time zone. Throws `INVALID_ARGUMENT`. */
function readTimes({ quiet, summary, timeZone = 'UTC' }: Pick<NewChannel, 'quiet' | 'summary' | 'timeZone'>) {
  if (!isTimeZone(timeZone)) {
    throw new FieldError(
      'timeZone',
      `is ${clip(timeZone)}, which is not a time zone: use a time zone such as Europe/Berlin, or UTC`,
    );
  }
  const [from, to, ...rest] = quiet?.split('-') ?? [];
  const hours = { quietFrom: minuteOf(from), quietTo: minuteOf(to) };
  const isWhole = hours.quietFrom !== null && hours.quietTo !== null && rest.length === 0;
  if (quiet !== undefined && (!isWhole || hours.quietFrom === hours.quietTo)) {
    throw new FieldError('quiet', `is ${clip(quiet)}: use two different times, such as 22:00-07:00`);
  }
  const summaryAt = minuteOf(summary);
  if (summary !== undefined && summaryAt === null) {
    throw new FieldError('summary', `has ${clip(summary)}: use a time of day, such as 08:00`);
  }
  return { ...hours, summaryAt, timeZone };
}

function minuteOf(text: string | undefined): number | null {
  const [, hour, minute] = /^([01]\d|2[0-3]):([0-5]\d)$/.exec(text?.trim() ?? '') ?? [];
  return hour === undefined ? null : Number(hour) * 60 + Number(minute);
}

/** Writes a time such as `08:00`. */
function timeOfMinute(minute: number): string {
  const two = (value: number) => String(value).padStart(2, '0');
  return `${two(Math.floor(minute / 60))}:${two(minute % 60)}`;
}

/** Throws `NOT_FOUND`, also for a removed channel. */
async function findChannel(db: Sql, { channelId, uuid }: { channelId: string; uuid: string }): Promise<NotifyChannel> {
  const channel = await findNotifyChannel(db, uuid);
  if (channel !== null) return channel;
  throw noSuch('chn', channelId);
}

const channelInput = Type.Object({ channelId: argument('<channel>', 'chn_…', 'chn_…') });
const readChannel = ({ channelId }: { channelId: string }) => ({ channelId, uuid: readId('chn', channelId) });

/** Sends from this process. If the message arrives, a failed channel's alarm is closed. */
export const testChannel = operation({
  action: 'testChannel',
  summary: 'Send a test message to a channel now',
  route: 'POST /notify/:channelId/test',
  command: 'notify test',
  does: 'send a test message to a channel now; exits 1 if it does not arrive',
  input: channelInput,
  output: schemaOf({ channelId: text, messageId: text, isDelivered: yes, latencyMs: whole, error: maybe(text) }),
  read: readChannel,
  run: async ({ db, now, random, config, note }: SendDeps, actor, input) => {
    const { channelId } = input;
    const channel = await findChannel(db, input);
    const keyRing = await requireKeyRing(config, note);
    const row = await findSealedTarget(db, channel.id);
    const opened = row === null ? null : await openTarget(keyRing, row);
    const message = testMessage(uuidV7(now(), random(10)), channel.name, now());
    await db.transaction((tx) => recordAction(tx, actor, now(), 'channel.tested', { subject: channelId, detail: {} }));
    const startedMs = performance.now();
    const attempt = opened?.kind === 'ok' ? await sendOnce(opened.target, message, now) : UNOPENED;
    const latencyMs = Math.round(performance.now() - startedMs);
    if (attempt.kind === 'aborted') throw new Error('the attempt was cancelled');
    const error = attempt.kind === 'failed' ? attempt.error : null;
    if (error === null) await recordChannelSent(db, channel.id, now());
    // Waiting messages stay due at the same time.
    else await recordChannelFailed(db, channel.id, now(), { dueAt: channel.dueAt ?? unixMs(now()), error });
    return { channelId, messageId: encodeId('ntf', message.id), isDelivered: error === null, latencyMs, error };
  },
  print: (tested) => ({
    text: fieldsText(tested, [
      ['channel', 'channelId'],
      ['message', 'messageId'],
      ['result', ({ isDelivered, error }) => (isDelivered ? 'delivered' : `failed: ${error}`)],
      ['latency', ({ latencyMs }) => `${latencyMs} ms`],
    ]),
    hasFailed: !tested.isDelivered,
  }),
});

const NOT_OPENED = 'secret: the configured master keys cannot decrypt the target';
const UNOPENED: Attempt = { kind: 'failed', retryAfterMs: null, error: NOT_OPENED };

async function sendOnce(target: Target, message: Message, now: () => UnixMs): Promise<Attempt> {
  const sender = createWebhookSender({ connections: 1, timeoutMs: ATTEMPT_MS });
  const stopping = new AbortController().signal;
  return sendMessage({ sender, now, stopping }, target, message).finally(() => sender.close());
}

function testMessage(id: string, name: string, at: UnixMs): Message {
  const title = 'Quittance: a test';
  const text = `This is a test of the channel "${name}", sent at ${toIso(at)}. No action is needed.`;
  return { id, title, text, isUrgent: false, items: [{ about: 'test', phase: 'test', title }] };
}

/** Removes a channel permanently: it receives no further messages, and its target is erased. Throws `NOT_FOUND`. */
export const removeChannel = operation({
  action: 'removeChannel',
  summary: 'Remove a channel permanently: it receives no further messages',
  route: 'POST /notify/:channelId/remove',
  command: 'notify remove',
  input: channelInput,
  output: Type.Object({ channelId: Type.String(), status: Type.Literal('removed') }),
  read: readChannel,
  run: async ({ db, now }: { db: Database; now(): UnixMs }, actor, input) => {
    const { channelId } = input;
    const channel = await findChannel(db, input);
    const isRemoved = await db.transaction(async (tx) => {
      if (!(await removeNotifyChannel(tx, channel, now()))) return false;
      const { kind, name, shown } = channel;
      await recordAction(tx, actor, now(), 'channel.removed', { subject: channelId, detail: { kind, name, shown } });
      return true;
    });
    if (isRemoved) return { channelId, status: 'removed' as const };
    throw notFound`${channelId} was removed in the meantime: list the channels with "${{ command: 'notify list' }}"`;
  },
  print: ({ channelId }) => ({
    text: `removed ${channelId}`,
    next: 'Quittance does not send messages that were waiting for this channel',
  }),
});

export const operations = [addChannel, listChannels, testChannel, removeChannel];
