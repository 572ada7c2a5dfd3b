import { type Hint, Message, type Text } from '../../../core/domain/message.ts';
import { formatHint } from '../../operator/command-words.ts';
import { shorten } from '../../operator/input/problems.ts';
import { type Html, html } from '../../web/html.ts';

/** The labels of fields in their forms. */
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
  scopes: 'Permissions',
  passkey: 'Passkey',
  invoice: 'Invoice',
  note: 'Note',
  resolution: 'Resolution',
  refundTx: 'Refund transaction',
  q: 'the search',
  events: 'Event types',
  url: 'URL',
  network: 'Network',
  isFresh: 'After a restore',
  xpub: 'Account public key',
};

const fieldBy = (labels: Labels) => (name: string) => `“${labels[name] ?? LABELS[name] ?? name}”`;
const secret = (kind: string) =>
  `this looks like ${kind}. Quittance never asks for this kind of secret, and you should never paste it anywhere. Quittance did not store it. If it is real, move the funds or replace it.`;

/** Formats a message, using the console's labels. A next step is shown as its command. */
export function consoleText(text: Text): string {
  return text instanceof Message ? text.write({ field: fieldBy({}), step: formatHint, secret }) : text;
}

/** Renders a message on a page. Next steps that have a screen become links. */
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

/**
 * A link is better than a command, because people in the console don't have a shell. Steps without a page are for someone with access to
 * the machine.
 */
function renderStep(step: Hint): Html {
  const link = linkOf(step);
  if (link !== null) return html`<a href="${link.url}">${link.label}</a>`;
  return html`<code>${formatHint(step)}</code> <small>(on the machine that runs Quittance)</small>`;
}

/** These commands work with files, need a terminal, or are needed once in years, so no page offers them. */
export const ON_THE_MACHINE: ReadonlySet<string> = new Set([
  ...['adapter disable', 'adapter enable', 'adapter list', 'backup keygen', 'restore', 'restore accept', 'migrate'],
  ...['chain checkpoint', 'chain pass', 'chain repair', 'ledger seal', 'master-key rotate', 'sandbox pay'],
  ...['manifest draft', 'manifest install', 'manifest key', 'manifest sign', 'manifest show'],
]);

/** Commands whose page depends on their subject, which `exactLinkOf` finds. */
const OF_A_SUBJECT = ['explain', 'deliveries show'];

/** The arguments that our texts write after a command: a flag, an option with its value, an id or an address. */
const ARGUMENTS =
  '(?: (?:--(?:yes|accept|key-is-lost|final)\\b|--[a-z-]+ [^\\s".,;:)]+|[a-z]{3}_[0-9a-z]+…?|T[1-9A-Za-z]{33}|T…))*';

/**
 * Renders a stored text that contains commands, such as an alarm, which is also written for logs and mails. Commands that have a page
 * become links.
 */
export function renderKept(text: string, length: number): Html {
  const names = [...Object.keys(SCREENS), ...ON_THE_MACHINE, ...OF_A_SUBJECT].sort((a, b) => b.length - a.length);
  const told = new RegExp(`"?\\bquittance (${names.join('|')})\\b(${ARGUMENTS})"?`, 'g');
  const shown = shorten(text, length);
  const parts: Html[] = [];
  let end = 0;
  for (const { 0: whole, 1: command = '', 2: given = '', index } of shown.matchAll(told)) {
    const step = { command, ...subjectOf(given) };
    const link = linkOf(step);
    const kept = html`<code>${formatHint({ command })}${given}</code> <small>(on the machine that runs Quittance)</small>`;
    parts.push(html`${shown.slice(end, index)}${link === null ? kept : html`<a href="${link.url}">${link.label}</a>`}`);
    end = index + whole.length;
  }
  return html`<bdi>${parts}${shown.slice(end)}</bdi>`;
}

function subjectOf(given: string): Omit<Hint, 'command'> {
  const [, projectId] = / --project (\S+)/.exec(given) ?? [];
  const [, endpoint] = / --endpoint (\S+)/.exec(given) ?? [];
  const [arg] = /(?<= )(?:[a-z]{3}_[0-9a-z]+|T[1-9A-Za-z]{33})(?= |$)/.exec(given.replace(/ --[a-z-]+ \S+/g, '')) ?? [];
  return {
    ...(arg === undefined ? {} : { args: [arg] }),
    input: { ...(projectId && { projectId }), ...(endpoint && { endpoint }) },
  };
}

type Link = { url: string; label: string };

/** Next steps that are simply a screen. */
const SCREENS: Readonly<Record<string, readonly [url: string, label: string]>> = {
  'transfers list': ['/unmatched', 'Unmatched transfers'],
  'transfers show': ['/unmatched', 'Unmatched transfers'],
  'transfers resolve': ['/unmatched', 'Unmatched transfers'],
  'invoice list': ['/invoices', 'Invoices'],
  'invoice show': ['/invoices', 'Invoices'],
  'project create': ['/settings/projects/new', 'New project'],
  'key create': ['/settings/keys/new', 'New API key'],
  'key list': ['/settings/keys', 'API keys'],
  'key revoke': ['/settings/keys', 'API keys'],
  'admin-key list': ['/settings/admin-keys', 'Admin keys'],
  'admin-key create': ['/settings/admin-keys/new', 'New admin key'],
  'master-key status': ['/settings/keys', 'Keys'],
  'receipt rotate': ['/settings/receipt-key', 'New receipt signing key'],
  'address add': ['/addresses/add', 'Add addresses'],
  'address list': ['/addresses', 'Addresses'],
  'address capacity': ['/addresses', 'Addresses'],
  'address pending': ['/addresses', 'Addresses'],
  'address derive': ['/addresses/derive', 'Derive addresses'],
  'address activate': ['/addresses', 'Addresses'],
  'address retire': ['/addresses', 'Addresses'],
  'address confirm': ['/addresses', 'Addresses'],
  'address withdraw': ['/addresses', 'Addresses'],
  'webhook add': ['/webhooks/add', 'Add a webhook'],
  'webhook list': ['/webhooks', 'Webhooks'],
  'deliveries list': ['/webhooks', 'Webhooks'],
  'deliveries replay': ['/webhooks', 'Webhooks'],
  'chain status': ['/chain', 'Chain'],
  'chain resume': ['/chain', 'Chain'],
  'user list': ['/settings/people', 'People'],
  'user reset': ['/settings/people', 'People'],
  'user invite': ['/settings/people/new', 'Invite a user'],
  'session list': ['/settings/sessions', 'Sessions'],
  'request list': ['/requests', 'Requests'],
  'chain acknowledge': ['/chain', 'Chain'],
  'chain producers': ['/chain/producers', 'Block producers'],
  'chain rescan': ['/chain/rescan', 'Chain: Rescan'],
  'chain verify': ['/chain/verify', 'Chain: Compare'],
  'audit verify': ['/settings/audit', 'Audit log'],
  backup: ['/settings/system', 'System: Backups'],
  'webhook test': ['/webhooks', 'Webhooks'],
  'webhook update': ['/webhooks', 'Webhooks'],
  'webhook enable': ['/webhooks', 'Webhooks'],
  'webhook rotate': ['/webhooks', 'Webhooks'],
  'notify list': ['/settings/notifications', 'Notifications'],
  'notify add': ['/settings/notifications', 'Notifications'],
  'notify test': ['/settings/notifications', 'Notifications'],
  'notify remove': ['/settings/notifications', 'Notifications'],
  'project list': ['/settings/project', 'Project'],
  'project update': ['/settings/project', 'Project'],
  'project unarchive': ['/settings/projects', 'Archived projects'],
  doctor: ['/settings/doctor', 'Doctor'],
  reconcile: ['/addresses', 'Addresses: Compare'],
};

/** The page about a step's subject, by its command. `ID` stands for the subject. Some links are only for ids of one kind. */
const EXACT: Readonly<Record<string, readonly [url: string, label: string, kind?: string]>> = {
  'webhook test': ['/webhooks/ID', 'Send a test', 'whe_'],
  'webhook enable': ['/webhooks/ID', 'Enable the endpoint', 'whe_'],
  'webhook update': ['/webhooks/ID/change', 'Change the endpoint'],
  'webhook rotate': ['/webhooks/ID/rotate', 'New secret'],
  'deliveries list': ['/webhooks/ID', 'Its events', 'whe_'],
  'deliveries replay': ['/webhooks/ID/replay', 'Send events again', 'whe_'],
  'deliveries show': ['/events/ID', 'show ID'],
  'project update': ['/settings/project/rules?project=ID', 'Change invoice settings'],
  'project update --support': ['/settings/project/look?project=ID', 'Change what payers see'],
  'address add': ['/addresses/add?project=ID', 'Add addresses'],
  'address derive': ['/addresses/derive?project=ID', 'Derive addresses'],
  'address activate': ['/addresses/ID/activate', 'Use again'],
  'address retire': ['/addresses/ID/retire', 'Retire address'],
  explain: ['/find?q=ID', 'show ID'],
  'key revoke': ['/settings/keys/ID/revoke', 'revoke ID'],
  'transfers show': ['/unmatched/ID', 'show ID', 'trf_'],
  'transfers resolve': ['/unmatched/ID', 'resolve ID', 'trf_'],
};

function linkOf(step: Hint): Link | null {
  const [url, label] = SCREENS[step.command] ?? [];
  return exactLinkOf(step) ?? (url === undefined || label === undefined ? null : { url, label });
}

function exactLinkOf({ command, args: [given] = [], input = {} }: Hint): Link | null {
  const { from, to } = input;
  if ((command === 'chain rescan' || command === 'chain verify') && /^\d+$/.test(`${from}`))
    return { url: `/${command.replace(' ', '/')}`, label: `${command.slice(6)} blocks ${from} to ${to}` };
  const subject = given ?? [input['endpoint'], input['projectId']].find((each) => typeof each === 'string');
  const exact = EXACT[command === 'project update' && 'support' in input ? `${command} --support` : command];
  if (exact === undefined || typeof subject !== 'string' || subject.endsWith('…')) return null;
  const [url, label, kind = ''] = exact;
  if (!subject.startsWith(kind)) return null;
  return { url: url.replace('ID', () => encodeURIComponent(subject)), label: label.replace('ID', () => subject) };
}
