import { type Hint, Message, type Text } from '../../domain/message.ts';
import { formatHint } from '../../operator/command-words.ts';
import { type Html, html } from '../../web/html.ts';

/** Fields by the labels of their forms. */
export type Labels = Readonly<Record<string, string>>;

const LABELS: Labels = {
  projectId: 'Project',
  project: 'Project',
  status: 'State',
  policy: 'Policy',
  amount: 'Amount',
  from: 'From',
  to: 'To',
  externalId: 'Order id',
  key: 'Key',
  role: 'Role',
  scopes: 'What it may do',
  passkey: 'Passkey',
  invoice: 'Invoice',
  note: 'Note',
  resolution: 'What was done',
  refundTx: 'Transaction of the refund',
  q: 'the search',
  events: 'Hears of',
  url: 'URL',
  network: 'Network',
  isFresh: 'After a restore',
  xpub: 'Public key of the account',
};

const fieldBy = (labels: Labels) => (name: string) => `“${labels[name] ?? LABELS[name] ?? name}”`;
const secret = (kind: string) =>
  `this looks like ${kind}. Quittance never needs one; never paste it anywhere. It was not kept; if it is real, move the funds or replace it.`;

/** A text with the labels of the console. A next step is shown as its command. */
export function writeText(text: Text): string {
  return text instanceof Message ? text.write({ field: fieldBy({}), step: formatHint, secret }) : text;
}

/** The same for a page: next steps that have a screen are links to it. */
export function renderText(text: Text, labels: Labels = {}): Html {
  if (!(text instanceof Message)) return html`${text}`;
  const parts = text.parts.map((part) => {
    if (typeof part === 'string') return html`${part}`;
    if (!('command' in part))
      return html`${new Message([part]).write({ field: fieldBy(labels), step: formatHint, secret })}`;
    return renderStep(part);
  });
  return html`${parts}`;
}

/** A link: people of the console have no shell. The command is shown where no page does the step. */
function renderStep(step: Hint): Html {
  const link = linkOf(step);
  return link === null ? html`<code>${formatHint(step)}</code>` : html`<a href="${link.url}">${link.label}</a>`;
}

type Link = { url: string; label: string };

/** Next steps that are a screen as they stand. */
const SCREENS: Readonly<Record<string, readonly [url: string, label: string]>> = {
  'transfers list': ['/unmatched', 'Unmatched money'],
  'project create': ['/settings/projects/new', 'New project'],
  'key create': ['/settings/keys/new', 'New API key'],
  'key list': ['/settings/keys', 'API keys'],
  'admin-key list': ['/settings/admin-keys', 'Admin keys'],
  'master-key status': ['/settings/keys', 'Keys'],
  'receipt rotate': ['/settings/receipt-key', 'New signing key of receipts'],
  'address add': ['/addresses/add', 'Add addresses'],
  'address list': ['/addresses', 'Addresses'],
  'address capacity': ['/addresses', 'Addresses'],
  'address pending': ['/addresses', 'Addresses'],
  'address derive': ['/addresses/derive', 'Derive addresses'],
  'webhook add': ['/webhooks/add', 'Add a webhook'],
  'webhook list': ['/webhooks', 'Webhooks'],
  'deliveries list': ['/webhooks', 'Webhooks'],
  'deliveries replay': ['/webhooks', 'Webhooks'],
  'chain status': ['/chain', 'Chain'],
  'chain resume': ['/chain', 'Chain'],
  'user list': ['/settings/people', 'People'],
  'user reset': ['/settings/people', 'People'],
  'user invite': ['/settings/people/new', 'Invite somebody'],
  'session list': ['/settings/sessions', 'Sessions'],
  'request list': ['/requests', 'Requests'],
  'chain acknowledge': ['/chain', 'Chain'],
  'webhook test': ['/webhooks', 'Webhooks'],
  'webhook update': ['/webhooks', 'Webhooks'],
  'webhook enable': ['/webhooks', 'Webhooks'],
  'webhook rotate': ['/webhooks', 'Webhooks'],
  'notify list': ['/settings/notifications', 'Notifications'],
  'notify test': ['/settings/notifications', 'Notifications'],
  'notify remove': ['/settings/notifications', 'Notifications'],
  'project list': ['/settings/project', 'Project'],
  reconcile: ['/addresses', 'Addresses, “Compare”'],
};

const ENDPOINT_LABELS = {
  'webhook test': 'Send a test',
  'webhook enable': 'Enable the endpoint',
  'deliveries list': 'Its events',
} as const;

function linkOf(step: Hint): Link | null {
  const [url, label] = SCREENS[step.command] ?? [];
  const exact = exactLinkOf(step);
  return exact ?? (url === undefined || label === undefined ? null : { url, label });
}

/** The page about what the step names. */
function exactLinkOf({ command, args: [given] = [], input = {} }: Hint): Link | null {
  const subject = given ?? [input['endpoint'], input['projectId']].find((each) => typeof each === 'string');
  if (typeof subject !== 'string' || subject.endsWith('…')) return null;
  const id = encodeURIComponent(subject);
  const project = `?project=${id}`;
  switch (command) {
    case 'webhook test':
    case 'webhook enable':
    case 'deliveries list':
      return subject.startsWith('whe_') ? { url: `/webhooks/${id}`, label: ENDPOINT_LABELS[command] } : null;
    case 'webhook update':
      return { url: `/webhooks/${id}/change`, label: 'Change the endpoint' };
    case 'webhook rotate':
      return { url: `/webhooks/${id}/rotate`, label: 'New secret' };
    case 'deliveries replay':
      return subject.startsWith('whe_') ? { url: `/webhooks/${id}/replay`, label: 'Send events again' } : null;
    case 'deliveries show':
      return { url: `/events/${id}`, label: `look at ${subject}` };
    case 'project update': {
      const [page, label] = 'support' in input ? ['look', 'Change what payers see'] : ['rules', 'Change the rules'];
      return { url: `/settings/project/${page}${project}`, label };
    }
    case 'address add':
    case 'address derive':
      return {
        url: `/addresses/${command.slice(8)}${project}`,
        label: command === 'address add' ? 'Add addresses' : 'Derive addresses',
      };
    case 'address activate':
    case 'address retire':
      return {
        url: `/addresses/${id}/${command.slice(8)}`,
        label: command === 'address retire' ? 'Retire it' : 'Use it again',
      };
    case 'explain':
      return { url: `/find?q=${id}`, label: `look at ${subject}` };
    case 'key revoke':
      return { url: `/settings/keys/${id}/revoke`, label: `revoke ${subject}` };
    case 'transfers show':
    case 'transfers resolve': {
      if (!subject.startsWith('trf_')) return null;
      const label = command === 'transfers show' ? `look at ${subject}` : `record it for ${subject}`;
      return { url: `/unmatched/${id}`, label };
    }
    default:
      return null;
  }
}
