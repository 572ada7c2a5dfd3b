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
  const names = [...Object.keys(SCREEN_OF), ...ON_THE_MACHINE, ...OF_A_SUBJECT].sort((a, b) => b.length - a.length);
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

/** The screens that are the next step in the console, with the commands that they stand for. */
const SCREENS: readonly (readonly [url: string, label: string, ...commands: string[]])[] = [
  ['/unmatched', 'Unmatched transfers', 'transfers list', 'transfers show', 'transfers resolve'],
  ['/invoices', 'Invoices', 'invoice list', 'invoice show'],
  ['/settings/projects/new', 'New project', 'project create'],
  ['/settings/keys/new', 'New API key', 'key create'],
  ['/settings/keys', 'API keys', 'key list', 'key revoke'],
  ['/settings/admin-keys', 'Admin keys', 'admin-key list'],
  ['/settings/admin-keys/new', 'New admin key', 'admin-key create'],
  ['/settings/keys', 'Keys', 'master-key status'],
  ['/settings/receipt-key', 'New receipt signing key', 'receipt rotate'],
  ['/addresses/add', 'Add addresses', 'address add'],
  ['/addresses', 'Addresses', 'address list', 'address capacity', 'address pending', 'address activate'],
  ['/addresses', 'Addresses', 'address retire', 'address confirm', 'address withdraw'],
  ['/addresses/derive', 'Derive addresses', 'address derive'],
  ['/webhooks/add', 'Add a webhook', 'webhook add'],
  ['/webhooks', 'Webhooks', 'webhook list', 'deliveries list', 'deliveries replay', 'webhook test'],
  ['/webhooks', 'Webhooks', 'webhook update', 'webhook enable', 'webhook rotate'],
  ['/chain', 'Chain', 'chain status', 'chain resume', 'chain acknowledge'],
  ['/settings/people', 'People', 'user list', 'user reset'],
  ['/settings/people/new', 'Invite a user', 'user invite'],
  ['/settings/sessions', 'Sessions', 'session list'],
  ['/requests', 'Requests', 'request list'],
  ['/chain/producers', 'Block producers', 'chain producers'],
  ['/chain/rescan', 'Chain: Rescan', 'chain rescan'],
  ['/chain/verify', 'Chain: Compare', 'chain verify'],
  ['/settings/audit', 'Audit log', 'audit verify'],
  ['/settings/system', 'System: Backups', 'backup'],
  ['/settings/notifications', 'Notifications', 'notify list', 'notify add', 'notify test', 'notify remove'],
  ['/settings/project', 'Project', 'project list', 'project update'],
  ['/settings/projects', 'Archived projects', 'project unarchive'],
  ['/settings/doctor', 'Doctor', 'doctor'],
  ['/addresses', 'Addresses: Compare', 'reconcile'],
];

const SCREEN_OF = Object.fromEntries(
  SCREENS.flatMap(([url, label, ...commands]) => commands.map((command) => [command, { url, label }])),
) as Readonly<Record<string, Link>>;

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
  return exactLinkOf(step) ?? SCREEN_OF[step.command] ?? null;
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
