import { encodeId } from '../domain/ids.ts';
import { toIso, type UnixMs } from '../domain/time.ts';
import { redactAnswer } from '../webhooks/redact.ts';
import type { WebhookSender } from '../webhooks/send.ts';
import { signWebhook } from '../webhooks/sign.ts';
import { refusePage } from '../webhooks/web-page.ts';
import type { Attempt } from './attempt.ts';
import type { HttpTarget } from './channel-target.ts';
import { clipText, type Message } from './message.ts';

/** Sends a message by HTTP, once. Never throws. */
export async function sendHttp(
  sender: WebhookSender,
  target: HttpTarget,
  message: Message,
  now: UnixMs,
): Promise<Attempt> {
  const { url, body, headers = {} } = requestOf(target, message, now);
  const rule = target.isOwnNetwork ? 'own' : 'public';
  const sent = { 'content-type': 'application/json', ...headers };
  const result = await sender.send({
    url,
    rule,
    headers: sent,
    body: Buffer.from(body),
    nowMs: now,
    refuse: refusePage,
  });
  if (result.kind === 'delivered') return { kind: 'sent' };
  if (result.kind === 'aborted') return result;
  // What stands in the operator's own network is not for whoever may only add channels.
  const said = target.isOwnNetwork || result.answer === null ? '' : clipText(redactAnswer(result.answer), MAX_SAID);
  const error = said === '' ? result.error : `${result.error}. It says: ${said}`;
  return { kind: 'failed', error, retryAfterMs: result.retryAfterMs };
}

const MAX_SAID = 200;

type Request = { url: string; body: string; headers?: Readonly<Record<string, string>> };

/** As each service has its messages. None takes more than so many characters. */
function requestOf(target: HttpTarget, message: Message, now: UnixMs): Request {
  switch (target.kind) {
    case 'telegram':
      return {
        url: `${target.url.replace(/\/$/, '')}/bot${target.token}/sendMessage`,
        body: JSON.stringify({
          chat_id: target.chat,
          text: clipText(plainText(message), MAX_TELEGRAM),
          disable_notification: !message.isUrgent,
          link_preview_options: { is_disabled: true },
        }),
      };
    case 'slack':
      return {
        url: target.url,
        body: JSON.stringify({
          text: escapeSlack(clipText(plainText(message), MAX_SLACK)),
          mrkdwn: false,
          unfurl_links: false,
        }),
      };
    case 'discord':
      return {
        url: target.url,
        body: JSON.stringify({
          content: discordText(message),
          allowed_mentions: { parse: [] },
          flags: SUPPRESS_EMBEDS,
        }),
      };
    case 'ntfy':
      return {
        url: target.url,
        headers: target.token === null ? {} : { authorization: `Bearer ${target.token}` },
        body: JSON.stringify({
          ...{ topic: target.topic, title: message.title, message: clipText(message.text, MAX_NTFY) },
          priority: message.isUrgent ? 5 : 3,
        }),
      };
    case 'webhook':
      return signedRequest(target, message, now);
  }
}

function signedRequest(
  { url, secret }: { url: string; secret: string },
  { id: uuid, title, text, isUrgent, items }: Message,
  now: UnixMs,
): Request {
  const id = encodeId('ntf', uuid);
  const body = JSON.stringify({
    id,
    type: 'notification',
    timestamp: toIso(now),
    data: { title, text, isUrgent, items },
  });
  const headers = signWebhook({ id, timestampSeconds: Math.floor(now / 1000), body, secrets: [secret] });
  return { url, body, headers };
}

/** Below the limits that their documents name: 4,096 characters, 40,000, 2,000, 4,096 bytes. */
const MAX_TELEGRAM = 3500;
const MAX_SLACK = 3500;
const MAX_DISCORD = 1900;
const MAX_NTFY = 1300;
const SUPPRESS_EMBEDS = 4;

function plainText({ title, text }: Message): string {
  return `${title}\n\n${text}`;
}

/** Slack takes `<!channel>` for everybody, and a `<` for a link. */
function escapeSlack(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** Discord takes these for links and styles. */
function discordText(message: Message): string {
  return clipText(plainText(message).replace(/[\\`*_~|>[\]()<#]/g, '\\$&'), MAX_DISCORD);
}
