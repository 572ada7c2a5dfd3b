import { isIP } from 'node:net';
import { say } from '../../domain/message.ts';
import { parseUrl } from '../../domain/url.ts';
import type { MailTarget, Target } from '../../notify/channel-target.ts';
import type { ChannelKind } from '../../store/outbox/notify-channels.ts';
import { checkAddresses, checkTarget } from '../../webhooks/target.ts';
import { FieldError } from '../input/field-error.ts';
import { readGivenSecret } from '../webhooks/read-endpoint.ts';

export type GivenTarget = {
  url: string | undefined;
  from: string | undefined;
  to: readonly string[] | undefined;
  token: string | undefined;
  chat: string | undefined;
  secret: string | undefined;
  isOwnNetwork: boolean;
};

/** Where a channel leads, and what is shown of it. A webhook without a secret still needs one. */
export type ReadTarget = { target: Target; shown: string; needsSecret: boolean };

/** Reads where a channel leads; what would never be sent to is refused at once. Errors: `INVALID_ARGUMENT`, without anything secret. */
export function readTarget(kind: ChannelKind, given: GivenTarget): ReadTarget {
  const { isOwnNetwork, chat = '', secret } = given;
  if (kind === 'email') return readMail(given);
  const url = readHttpUrl(given.url ?? 'https://api.telegram.org', isOwnNetwork);
  const own = { isOwnNetwork };
  const read = (target: Target, shown = url.host): ReadTarget => ({ target, shown, needsSecret: false });
  switch (kind) {
    case 'telegram':
      return read(
        { kind, ...own, url: url.href, token: readToken(given.token, TELEGRAM), chat: readChat(chat) },
        `chat ${chat} by ${url.host}`,
      );
    case 'slack':
    case 'discord':
      return read({ kind, ...own, url: url.href });
    case 'ntfy':
      return read(readNtfy(url, given));
    case 'webhook': {
      const target = { kind, ...own, url: url.href, secret: secret === undefined ? '' : readGivenSecret(secret) };
      return { ...read(target, url.origin), needsSecret: secret === undefined };
    }
  }
}

/** The bound of webhooks. */
const MAX_URL_LENGTH = 2048;

function readHttpUrl(text: string, isOwnNetwork: boolean): URL {
  const url = /^https?:\/\/[^/\\\s]/i.test(text) ? parseUrl(text) : null;
  if (url === null)
    throw new FieldError('url', 'is not an http:// or https:// URL (it is not shown, for it may be secret)');
  if (url.href.length > MAX_URL_LENGTH)
    throw new FieldError('url', `has ${url.href.length} characters: at most ${MAX_URL_LENGTH}`);
  const check = checkTarget(url, isOwnNetwork ? 'own' : 'public');
  if (check.kind === 'ok') return url;
  const isAllowedThere = !isOwnNetwork && checkTarget(url, 'own').kind === 'ok';
  throw new FieldError('url', isAllowedThere ? say`: ${check.reason}; ${HOW_TO_ALLOW}` : `: ${check.reason}`);
}

const HOW_TO_ALLOW = say`for a server in your own network give ${{ field: 'isOwnNetwork' }}`;

/** The topic is the path; who knows it may listen, so it is not shown. ntfy takes JSON at its root only. */
function readNtfy(url: URL, { token, isOwnNetwork }: GivenTarget): Target {
  const topic = url.pathname.slice(1);
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(topic) || url.search !== '')
    throw new FieldError(
      'url',
      'has no topic: write the address of the server and the topic, such as https://ntfy.sh/topic',
    );
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
  throw new FieldError('token', `(${token?.length ?? 0} characters, not shown) has not the form of such a token`);
}

function readChat(chat: string): string {
  if (/^(-?\d{1,20}|@[A-Za-z0-9_]{1,64})$/.test(chat)) return chat;
  throw new FieldError('chat', 'is no chat of Telegram: write its number, such as -1001234567890, or @channelname');
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
  if (to.length > MAX_RECIPIENTS) throw new FieldError('to', `has ${to.length} addresses: at most ${MAX_RECIPIENTS}`);
  const target: MailTarget = {
    ...{
      kind: 'email',
      isOwnNetwork,
      host,
      port: Number(url.port) || PORTS[url.protocol],
      isTls: url.protocol === 'smtps:',
    },
    login: url.username === '' ? null : { user: decode(url.username), password: decode(url.password) },
    ...{ from: readMailAddress('from', from), to: to.map((each) => readMailAddress('to', each)) },
  };
  const [first] = target.to;
  const more = target.to.length > 1 ? ` and ${target.to.length - 1} more` : '';
  return { target, shown: `${first}${more} by ${host}:${target.port}`.slice(0, MAX_SHOWN), needsSecret: false };
}

/** The bound of the schema. */
const MAX_SHOWN = 300;

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new FieldError('url', 'holds a % that is no escape: write a % in the user or password as %25');
  }
}

function readMailAddress(field: string, text: string): string {
  const address = text.trim();
  if (/^[^\s@<>(),;:"\\[\]\p{Cc}]{1,64}@[^\s@<>(),;:"\\[\]\p{Cc}]{1,190}$/u.test(address)) return address;
  throw new FieldError(field, 'is no e-mail address: write one such as ops@example.com');
}
