import { type Hint, Message, type Text } from '../domain/message.ts';
import { formatHint } from '../operator/command-words.ts';
import { type Html, html } from '../web/html.ts';

/** Fields by the labels of their forms. */
const LABELS: Readonly<Record<string, string>> = {
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
};

const field = (name: string) => `“${LABELS[name] ?? name}”`;
const secret = (kind: string) =>
  `this looks like ${kind}. Quittance never needs one; never paste it anywhere. It was not kept; if it is real, move the funds or replace it.`;

/** A text with the labels of the console. A next step is shown as its command. */
export function writeText(text: Text): string {
  return text instanceof Message ? text.write({ field, step: formatHint, secret }) : text;
}

/** The same for a page: next steps that have a screen are links to it. */
export function renderText(text: Text): Html {
  if (!(text instanceof Message)) return html`${text}`;
  const parts = text.parts.map((part) => {
    if (typeof part === 'string') return html`${part}`;
    if (!('command' in part)) return html`${new Message([part]).write({ field, step: formatHint, secret })}`;
    const url = urlOf(part);
    return url === null ? html`<code>${formatHint(part)}</code>` : html`<a href="${url}">${formatHint(part)}</a>`;
  });
  return html`${parts}`;
}

function urlOf({ command, args: [subject] = [] }: Hint): string | null {
  switch (command) {
    case 'explain':
      return subject === undefined ? null : `/find?q=${encodeURIComponent(subject)}`;
    case 'transfers list':
      return '/unmatched';
    case 'transfers show':
    case 'transfers resolve':
      return subject === undefined || !subject.startsWith('trf_') ? null : `/unmatched/${encodeURIComponent(subject)}`;
    default:
      return null;
  }
}
