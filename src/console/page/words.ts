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
  invoice: 'Invoice',
  note: 'Note',
  resolution: 'What was done',
  refundTx: 'Transaction of the refund',
  q: 'the search',
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
    const link = linkOf(part);
    return link === null ? html`<code>${formatHint(part)}</code>` : html`<a href="${link.url}">${link.label}</a>`;
  });
  return html`${parts}`;
}

function linkOf({ command, args: [subject] = [] }: Hint): { url: string; label: string } | null {
  switch (command) {
    case 'transfers list':
      return { url: '/unmatched', label: 'Unmatched money' };
    case 'address list':
    case 'address capacity':
    case 'address pending':
      return { url: '/addresses', label: 'Addresses' };
    case 'address add':
      return { url: '/addresses/add', label: 'add addresses' };
    case 'address derive':
      return { url: '/addresses/derive', label: 'derive addresses' };
    case 'explain':
      return subject === undefined
        ? null
        : { url: `/find?q=${encodeURIComponent(subject)}`, label: `look at ${subject}` };
    case 'transfers show':
    case 'transfers resolve': {
      if (subject === undefined || !subject.startsWith('trf_')) return null;
      const label = command === 'transfers show' ? `look at ${subject}` : `record it for ${subject}`;
      return { url: `/unmatched/${encodeURIComponent(subject)}`, label };
    }
    default:
      return null;
  }
}
