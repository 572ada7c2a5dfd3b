import { CHANNEL_FIELDS } from '../../operator/subjects/notify.ts';
import { html } from '../../web/html.ts';
import type { FormField } from '../forms/form.ts';
import type { ChannelKind } from './channels-page.ts';

/** Of the URL each kind says something else. */
const URL_HINTS: Readonly<Record<ChannelKind, string>> = {
  email: 'smtps://user:password@host:465, or smtp://…:587. A %, @ or : in a user or password is written %25, %40, %3A.',
  telegram: 'Only for a server of your own that speaks Telegram’s language.',
  slack: 'https://hooks.slack.com/services/…, as Slack shows it.',
  discord: 'https://discord.com/api/webhooks/…, as Discord shows it.',
  ntfy: 'The address of the server and the topic: https://ntfy.sh/topic',
  webhook: 'https://ops.example.com/quittance',
};

const WIDE = html` dir="ltr" maxlength="2048" autocapitalize="off" spellcheck="false"`;
const TARGET: Readonly<Record<(typeof CHANNEL_FIELDS)[ChannelKind]['needs'][number], FormField>> = {
  url: { kind: 'line', name: 'url', label: 'URL', more: WIDE },
  from: { kind: 'line', name: 'from', label: 'From', more: WIDE, hint: 'The address that it is sent from.' },
  to: {
    kind: 'lines',
    name: 'to',
    label: 'To',
    more: html` dir="ltr"`,
    hint: 'E-mail addresses, one a line; at most 20.',
  },
  token: { kind: 'line', name: 'accessToken', label: 'Token', more: WIDE },
  chat: {
    kind: 'line',
    name: 'chat',
    label: 'Chat',
    more: WIDE,
    hint: 'Its number, such as -1001234567890, or @channelname.',
  },
  secret: { kind: 'line', name: 'secret', label: 'Secret', more: WIDE, hint: 'Empty: one is made, and shown once.' },
};

const TIMES: readonly FormField[] = [
  {
    ...{ kind: 'line', name: 'quiet', label: 'Quiet hours (optional)', more: html` placeholder="22:00-07:00"` },
    hint: 'Then what can wait is held back. What is urgent passes.',
  },
  {
    ...{ kind: 'line', name: 'summary', label: 'Daily summary (optional)', more: html` placeholder="08:00"` },
    hint: 'What was paid in 24 hours, and what is open.',
  },
  {
    ...{ kind: 'line', name: 'timeZone', label: 'Time zone of these (optional)' },
    hint: 'Such as Europe/Berlin. Empty: UTC.',
  },
];

/** What a channel of a kind is asked for. */
export function channelFields(kind: ChannelKind): FormField[] {
  const { needs, takes } = CHANNEL_FIELDS[kind];
  const target = [...needs, ...takes].map((name): FormField => {
    const field = TARGET[name];
    return {
      ...field,
      label: needs.includes(name) ? field.label : `${field.label} (optional)`,
      ...(name === 'url' ? { hint: URL_HINTS[kind] } : {}),
    };
  });
  return [
    { ...{ kind: 'line', name: 'name', label: 'Name (optional)' }, hint: 'What you call it. Empty: its kind.' },
    ...target,
    {
      ...{ kind: 'check', name: 'isOwnNetwork', label: 'It is in my own network' },
      hint: 'Takes private addresses, http:// and servers without TLS, or with a certificate of their own.',
    },
    ...TIMES,
  ];
}
