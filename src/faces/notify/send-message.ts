import { lookup as systemLookup } from 'node:dns';
import { once } from 'node:events';
import { connect, isIP, type Socket } from 'node:net';
import { encodeId } from '../../core/domain/ids.ts';
import { toIso, type UnixMs } from '../../core/domain/time.ts';
import type { Notification } from '../../core/store/outbox/notifications.ts';
import { redactAnswer, refusePage } from '../../core/webhooks/redact.ts';
import { explainError, type WebhookSender } from '../../core/webhooks/send.ts';
import { signWebhook } from '../../core/webhooks/sign.ts';
import { checkAddresses, createCheckedLookup, type LookupAll } from '../../core/webhooks/target.ts';
import type { HttpTarget, MailTarget, Target } from './channel-target.ts';

/**
 * A message is a notification, or a digest of several. A retry has the same `id`, and a message with different content has a different one.
 */
export type Message = {
  id: string;
  title: string;
  text: string;
  isUrgent: boolean;
  items: readonly { about: string; phase: Notification['phase'] | 'test'; title: string }[];
};

/** Shortens a text to a number of characters, without splitting a character. */
export function clipText(text: string, max: number): string {
  const characters = [...text];
  return characters.length <= max ? text : `${characters.slice(0, max - 1).join('')}…`;
}

/** The result of one attempt. `error` consists of a class, a colon, and a description of the failure in plain words, without secrets. */
export type Attempt =
  | { kind: 'sent' }
  | { kind: 'failed'; error: string; retryAfterMs: number | null }
  /** Quittance stopped the attempt, so the result says nothing about the channel. */
  | { kind: 'aborted' };

/** Most servers respond within a second. Three attempts fit into the minute within which a message should arrive. */
export const ATTEMPT_MS = 10_000;

export type SendDeps = {
  /** An attempt must not take longer than `ATTEMPT_MS`. */
  sender: WebhookSender;
  now(): UnixMs;
  /** Aborts all attempts. */
  stopping: AbortSignal;
  attemptMs?: number;
};

/** Makes one attempt to send a message, within the time allowed for an attempt. Never throws. */
export async function sendMessage(
  { sender, now, stopping, attemptMs = ATTEMPT_MS }: SendDeps,
  target: Target,
  message: Message,
): Promise<Attempt> {
  if (target.kind !== 'email') return sendHttp(sender, target, message, now());
  const signal = AbortSignal.any([stopping, AbortSignal.timeout(attemptMs)]);
  const attempt = await sendMail(target, message, { signal });
  return stopping.aborted && attempt.kind === 'failed' ? { kind: 'aborted' } : attempt;
}

type MailOptions = {
  /** Aborts the attempt, whatever it waits for. */
  signal: AbortSignal;
  /** For tests. */
  lookup?: LookupAll;
  ca?: string;
};

/** Makes one attempt to hand a message to the mail server. Never throws. A retry has the same Message-ID. */
async function sendMail(target: MailTarget, message: Message, options: MailOptions): Promise<Attempt> {
  const { signal } = options;
  let socket: Socket | null = null;
  const end = () => socket?.destroy();
  signal.addEventListener('abort', end);
  try {
    signal.throwIfAborted();
    socket = await open(target, options);
    // The package is large, and most processes never send mail.
    const { createTransport } = await import('nodemailer');
    const transport = createTransport(transportOptions(target, socket, options));
    await transport.sendMail(mailOf(target, message));
    return { kind: 'sent' };
  } catch (error) {
    if (signal.aborted) return { kind: 'failed', error: TOO_SLOW, retryAfterMs: null };
    return { kind: 'failed', error: explainMailError(error), retryAfterMs: null };
  } finally {
    signal.removeEventListener('abort', end);
    end();
  }
}

const TOO_SLOW = 'timeout: the mail server did not accept the message in time';

/** Connects only to allowed addresses. nodemailer would resolve the name again. */
async function open({ host, port, isOwnNetwork }: MailTarget, { signal, lookup = systemLookup }: MailOptions) {
  const rule = isOwnNetwork ? 'own' : 'public';
  const family = isIP(host);
  if (family !== 0) {
    const check = checkAddresses(host, [{ address: host, family }], rule);
    if (check.kind === 'refused') throw Object.assign(new Error(check.reason), { code: 'TARGET_REFUSED' });
  }
  const socket = connect({ host, port, lookup: createCheckedLookup({ rule, lookup }), signal });
  try {
    await once(socket, 'connect', { signal });
    return socket;
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

/**
 * TLS with a verified certificate is required. In the operator's own network, plaintext and self-signed certificates are accepted, because
 * an attacker who can listen there is already inside that network.
 */
function transportOptions({ host, port, isTls, login, isOwnNetwork }: MailTarget, socket: Socket, { ca }: MailOptions) {
  const verified = isOwnNetwork ? { rejectUnauthorized: false } : {};
  return {
    ...{ host, port, secure: isTls, requireTLS: !isTls && !isOwnNetwork, connection: socket },
    tls: { ...verified, ...(ca === undefined ? {} : { ca }), ...(isIP(host) === 0 ? { servername: host } : {}) },
    ...(login === null ? {} : { auth: { user: login.user, pass: login.password } }),
    ...{ disableFileAccess: true, disableUrlAccess: true },
  };
}

function mailOf({ from, to }: MailTarget, { id, title, text, isUrgent }: Message) {
  return {
    ...{ from, to: [...to], subject: title, text },
    messageId: `<${encodeId('ntf', id)}@quittance.invalid>`,
    headers: { 'Auto-Submitted': 'auto-generated', ...(isUrgent ? { Importance: 'high' } : {}) },
  };
}

/** Reports only the server's status code, because the rest of its answer may contain anything. */
function explainMailError(error: unknown): string {
  const { code, responseCode } = (error ?? {}) as { code?: unknown; responseCode?: unknown };
  if (typeof responseCode === 'number') {
    const why = code === 'EAUTH' ? ' (wrong user or password)' : '';
    return `smtp_${responseCode}: the mail server returned ${responseCode}${why}`;
  }
  if (code === 'ETLS') return 'tls: Quittance could not establish a secure connection to the mail server';
  if (code === 'EAUTH') return 'smtp_login: the mail server does not support this sign-in method';
  return explainError(error);
}

/** Makes one attempt to send a message by HTTP. Never throws. */
async function sendHttp(sender: WebhookSender, target: HttpTarget, message: Message, now: UnixMs): Promise<Attempt> {
  const { url, body, headers } = requestOf(target, message, now);
  const result = await sender.send({
    ...{ url, body: Buffer.from(body), nowMs: now, refuse: refusePage },
    rule: target.isOwnNetwork ? 'own' : 'public',
    headers: { 'content-type': 'application/json', ...headers },
  });
  if (result.kind === 'delivered') return { kind: 'sent' };
  if (result.kind === 'aborted') return result;
  // Don't reveal answers from the operator's own network to people who may only add channels.
  const said = target.isOwnNetwork || result.answer === null ? '' : clipText(redactAnswer(result.answer), MAX_SAID);
  const error = said === '' ? result.error : `${result.error}. The response was: ${said}`;
  return { kind: 'failed', error, retryAfterMs: result.retryAfterMs };
}

const MAX_SAID = 200;

type Request = { url: string; body: string; headers?: Readonly<Record<string, string>> };

/** Builds the request in each service's format. No service accepts more than a fixed number of characters. */
function requestOf(target: HttpTarget, message: Message, now: UnixMs): Request {
  const post = (body: object, headers = {}, url = target.url) => ({ url, body: JSON.stringify(body), headers });
  switch (target.kind) {
    case 'telegram': {
      const body = {
        ...{ chat_id: target.chat, text: clipText(plainText(message), MAX_TELEGRAM) },
        ...{ disable_notification: !message.isUrgent, link_preview_options: { is_disabled: true } },
      };
      return post(body, {}, `${target.url.replace(/\/$/, '')}/bot${target.token}/sendMessage`);
    }
    case 'slack': {
      const text = escapeSlack(clipText(plainText(message), MAX_SLACK));
      return post({ text, mrkdwn: false, unfurl_links: false });
    }
    case 'discord':
      return post({ content: discordText(message), allowed_mentions: { parse: [] }, flags: SUPPRESS_EMBEDS });
    case 'ntfy': {
      const text = clipText(message.text, MAX_NTFY);
      const body = { topic: target.topic, title: message.title, message: text, priority: message.isUrgent ? 5 : 3 };
      return post(body, target.token === null ? {} : { authorization: `Bearer ${target.token}` });
    }
    case 'webhook': {
      const { title, text, isUrgent, items } = message;
      const id = encodeId('ntf', message.id);
      const data = { title, text, isUrgent, items };
      const body = JSON.stringify({ id, type: 'notification', timestamp: toIso(now), data });
      const signed = { id, timestampSeconds: Math.floor(now / 1000), body, secrets: [target.secret] };
      return { url: target.url, body, headers: signWebhook(signed) };
    }
  }
}

/** These are below the documented limits: 4,096 characters, 40,000, 2,000, 4,096 bytes. */
const MAX_TELEGRAM = 3500;
const MAX_SLACK = 3500;
const MAX_DISCORD = 1900;
const MAX_NTFY = 1300;
const SUPPRESS_EMBEDS = 4;

function plainText({ title, text }: Message): string {
  return `${title}\n\n${text}`;
}

/** Slack interprets `<!channel>` as a mention of everyone, and `<` as the start of a link. */
function escapeSlack(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** Discord interprets these characters as links and styles. */
function discordText(message: Message): string {
  return clipText(plainText(message).replace(/[\\`*_~|>[\]()<#]/g, '\\$&'), MAX_DISCORD);
}
