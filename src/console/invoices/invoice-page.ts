import { encodeId } from '../../domain/ids.ts';
import type { Text } from '../../domain/message.ts';
import { formatAmount, microUsdt } from '../../domain/money.ts';
import { toIso } from '../../domain/time.ts';
import type { TimelineEntry } from '../../domain/timeline.ts';
import { isAllowed } from '../../operator/authorize.ts';
import { describeStep, type Explanation, printableText } from '../../operator/explain/explanation.ts';
import type { Found } from '../../operator/explain/search.ts';
import { printable } from '../../operator/input/problems.ts';
import type { InvoiceView } from '../../operator/subjects/invoices.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import { type Html, html } from '../../web/html.ts';
import type { Page } from '../page/layout.ts';
import { alert, badge, copyButton, facts, live, ltr, money, outside, table, time } from '../page/pieces.ts';
import type { Visit } from '../page/visit.ts';
import { renderText, writeText } from '../page/words.ts';

type Shown = {
  explanation: Explanation;
  invoice: InvoiceView;
  requestId: string;
  /** What came of the form that was sent. */
  said: Html | null;
  isRefused: boolean;
};

/** All about one invoice. There is no way to mark it as paid, and none to delete it. */
export function invoicePage(visit: Visit, project: ListedProjectView, shown: Shown): Page {
  const { explanation, invoice, requestId, said, isRefused } = shown;
  const { externalId, status, checkoutUrl, paid } = invoice;
  const receipt =
    paid === null ? null : html`<a class="button quiet" href="${checkoutUrl}/receipt" rel="noreferrer">Receipt</a>`;
  return {
    title: [...externalId].length > 60 ? `${[...externalId].slice(0, 60).join('')}…` : externalId,
    about: project,
    beside: live('state', badge(status)),
    ...(isRefused ? { status: 409 } : {}),
    main: html`${said === null ? null : isRefused ? alert(said) : html`<p class="good" role="status">${said}</p>`}
${live('verdict', html`${renderVerdict(explanation)}${renderNext(explanation)}`, { isSpoken: true })}
${live('amounts', renderAmounts(invoice))}
<p class="actions"><a class="button quiet" href="${checkoutUrl}" rel="noreferrer">Open as the payer</a>${receipt}${copyButton(checkoutUrl, 'Copy link for the payer')}${renderWithdrawal(visit, shown)}</p>
${live('events', html`${renderTimeline(explanation, (entry) => renderReplay(visit, invoice, entry))}${renderFields(explanation)}`)}
${renderSupport(explanation, requestId)}`,
  };
}

/** Of a paid one there is nothing left to withdraw. */
function renderWithdrawal(visit: Visit, { invoice: { invoiceId, status }, explanation }: Shown): Html | null {
  const isWithdrawn = explanation.timeline.some(({ kind }) => kind === 'withdrawn');
  if (status === 'PAID' || isWithdrawn || !isAllowed(visit.actor, 'withdrawInvoiceByHand')) return null;
  return html`<a class="button quiet" href="/invoices/${invoiceId}/withdraw">Withdraw</a>`;
}

function renderAmounts({ requestedAmount, payableAmount, paid, expiresAt, address }: InvoiceView): Html {
  const tail = formatAmount(microUsdt(microOf(payableAmount) - microOf(requestedAmount)));
  return html`<section aria-label="Amounts"><dl class="tiles">
<div class="tile"><dt>Requested</dt><dd>${ltr(requestedAmount)}</dd><dd class="hint">USDT</dd></div>
<div class="tile"><dt>Payable amount</dt><dd>${ltr(payableAmount)}</dd><dd class="hint">a tail of ${ltr(tail)}, to ${outside(`${address.slice(0, 6)}…${address.slice(-6)}`)}</dd></div>
<div class="tile"><dt>Received</dt><dd>${paid === null ? '–' : ltr(payableAmount)}</dd><dd class="hint">${paid === null ? html`until ${time(expiresAt)} UTC or later` : html`${time(paid.time)} UTC, <a href="/find?q=${paid.txId}">${paid.txId.slice(0, 8)}…</a>`}</dd></div>
</dl></section>`;
}

const microOf = (amount: string) => BigInt(amount.replace('.', ''));

/** Which event an entry of the timeline tells of; `null`: none. */
export function eventOf({ kind, data }: TimelineEntry): string | null {
  const { eventId } = data;
  return kind === 'event' && typeof eventId === 'string' ? eventId : null;
}

/** Sends it again to every endpoint that it was for: receivers take an event that they know once. */
function renderReplay(visit: Visit, { invoiceId }: InvoiceView, entry: TimelineEntry): Html | null {
  const eventId = eventOf(entry);
  if (eventId === null || !isAllowed(visit.actor, 'replayEvents')) return null;
  return html`<form method="post" action="/invoices/${invoiceId}/replay"><input type="hidden" name="token" value="${visit.token(`replay ${eventId}`)}"><input type="hidden" name="event" value="${eventId}"><button class="quiet">Send again</button></form>`;
}

/** All that a text may stand for, in every project that the person may see. */
export function foundPage(
  visit: Visit,
  typed: string,
  { invoices, transfers, addresses }: Found,
  about: ListedProjectView | null,
): Page {
  const project = ({ projectName }: { projectName: string }) => html`<bdi>${projectName}</bdi>`;
  const ofSeveral = <Of extends { projectName: string }>(): [string, (row: Of) => Html][] =>
    visit.projects.length > 1 ? [['Project', project]] : [];
  const made = table(
    'Invoices',
    [
      [
        'Order',
        ({ id, externalId }) => html`<a class="row" href="/invoices/${encodeId('inv', id)}">${outside(externalId)}</a>`,
      ],
      ['Status', ({ status }) => badge(status)],
      ['To pay', ({ payableMicro }) => money(formatAmount(payableMicro)), 'number'],
      ['Created (UTC)', ({ createdAt }) => time(toIso(createdAt))],
      ...ofSeveral<Found['invoices'][number]>(),
    ],
    invoices,
  );
  const came = table(
    'Transfers',
    [
      ['Transaction', ({ txId }) => html`<a class="row" href="/find?q=${txId}">${ltr(`${txId.slice(0, 8)}…`)}</a>`],
      [
        'Paid',
        ({ id, kind }) =>
          kind === 'matched' ? 'an invoice' : html`nothing: <a href="/unmatched/${encodeId('trf', id)}">${kind}</a>`,
      ],
      ['Amount', ({ amountMicro }) => money(formatAmount(amountMicro)), 'number'],
      ['Block (UTC)', ({ blockTime }) => time(toIso(blockTime))],
      ...ofSeveral<Found['transfers'][number]>(),
    ],
    transfers,
  );
  const named = table(
    'Addresses',
    [
      [
        'Address',
        ({ address, project: of }) =>
          html`<a class="row" href="/find?q=${address}${of && `&in=${encodeId('prj', of.id)}`}">${ltr(address)}</a>`,
      ],
      ['Whose', ({ project: of }) => (of === null ? 'not yours' : html`<bdi>${of.name}</bdi>, ${of.network}`)],
    ],
    addresses,
  );
  return {
    ...{ title: 'Found', about },
    main: html`<p>Matches for ${outside(typed)}:</p>
${invoices.length === 0 ? null : html`<h2>Invoices</h2>${made}`}
${transfers.length === 0 ? null : html`<h2>Transfers</h2>${came}`}
${addresses.length === 0 ? null : html`<h2>Addresses</h2>${named}`}
<p class="hint">Shows up to 20 of each, newest first. Partial order ids and metadata are searched only in the newest 10,000 invoices.</p>`,
  };
}

/** What is known of a transaction or an address. */
export function explanationPage(
  title: string,
  explanation: Explanation,
  about: ListedProjectView | null,
  requestId: string,
): Page {
  return {
    title,
    about,
    ...(explanation.isUnknown === true ? { status: 404 } : {}),
    main: html`${renderVerdict(explanation)}
${renderNext(explanation)}
${explanation.timeline.length === 0 ? null : renderTimeline(explanation, () => null)}
${explanation.fields.length === 0 ? null : renderFields(explanation)}
${renderSupport(explanation, requestId)}`,
  };
}

/** The answer in sentences, the most important one first and large. */
function renderVerdict({ verdict }: Explanation): Html {
  const [first = '', ...others] = verdict;
  const more = others.map((text) => html`<li>${renderText(readable(printableText(text)))}</li>`);
  return html`<section class="card verdict" aria-label="Answer"><p class="first" dir="auto">${renderText(readable(printableText(first)))}</p>${others.length === 0 ? null : html`<ul>${more}</ul>`}</section>`;
}

function renderFields({ fields }: Explanation): Html {
  return html`<section class="card" aria-labelledby="facts"><h2 id="facts">Details</h2>${facts(fields.map(([name, value]) => [name, value === null ? null : html`<bdi>${readable(printable(value))}</bdi>`]))}</section>`;
}

function renderNext({ next }: Explanation): Html | null {
  if (next.length === 0) return null;
  const items = next.map((step) => html`<li>${renderText(describeStep(step))}</li>`);
  return html`<section class="card" aria-labelledby="next"><h2 id="next">What to do</h2><ul>${items}</ul></section>`;
}

/** What happened, in order. `act` is what can be done about an entry. */
function renderTimeline({ timeline, omissions }: Explanation, act: (entry: TimelineEntry) => Html | null): Html {
  const items = timeline.map((entry) => {
    const { at, kind, text } = entry;
    const iso = toIso(at);
    return html`<li data-kind="${kind}"><time datetime="${iso}">${iso.slice(0, 10)} <b>${iso.slice(11, 19)}</b></time><div><p><span class="kind">${kind}</span> <bdi>${readable(printable(text))}</bdi></p>${renderDetails(entry)}${act(entry)}</div></li>`;
  });
  const left = omissions.map(
    ({ what, shown, total }) => html`<p class="hint">${total - shown} more of ${total} ${what} are not shown.</p>`,
  );
  return html`<section class="card" aria-labelledby="timeline"><h2 id="timeline">What happened <small>UTC</small></h2><ol class="timeline">${items}</ol>${left}</section>`;
}

/** Evidence that is seldom wanted. */
const FOLDED: ReadonlySet<TimelineEntry['kind']> = new Set([
  'requested',
  'allocated',
  'sighted',
  'transferred',
  'sent',
]);

function renderDetails({ kind, details }: TimelineEntry): Html | null {
  if (details.length === 0) return null;
  const list = html`<ul class="hint">${details.map((detail) => html`<li><bdi>${readable(printable(detail))}</bdi></li>`)}</ul>`;
  return FOLDED.has(kind) ? html`<details><summary>Evidence</summary>${list}</details>` : list;
}

/** For a public tracker: what happened without whom it happened to. */
function renderSupport(explanation: Explanation, requestId: string): Html {
  const text = supportText(explanation, requestId);
  return html`<details class="card"><summary>Copy for support</summary><p class="hint">Addresses, transactions, order ids, links and names are shortened or removed, so that you can share this text. Read it before you send it.</p>${copyButton(text, 'Copy the text for support')}<label class="unseen" for="support">Text for support</label><textarea id="support" readonly rows="12">${text}</textarea></details>`;
}

/** Entries of operators begin with a name, and tell of notes. */
const OF_PEOPLE: ReadonlySet<TimelineEntry['kind']> = new Set(['operator', 'resolved', 'taken-back']);

function supportText({ subject, verdict, timeline }: Explanation, requestId: string): string {
  const lines = timeline.map(({ at, kind, text }) => `${toIso(at)} ${kind}${OF_PEOPLE.has(kind) ? '' : `: ${text}`}`);
  const said = verdict.map((text) => printable(writeText(text)));
  const whole = [...said, '', ...lines.map(printable), '', `request ${requestId}`].join('\n');
  return LENGTHS.reduce((text, length) => text.replaceAll(start(subject['externalId'], length), '(order)'), whole)
    .replace(/https?:\/\/[^\s:]+(:\d+)?[^\s:]*/g, '(link)')
    .replace(/\bT[1-9A-HJ-NP-Za-km-z]{33}\b/g, (address) => `T…${address.slice(-4)}`)
    .replace(/\b[0-9a-f]{64}\b/g, (id) => `${id.slice(0, 6)}…`)
    .replace(/\b(trf|evt|inv|whe|key|prj)_([0-9a-z]{22})([0-9a-z]{4})\b/g, '$1_…$3');
}

/** Texts cut order ids to these lengths. */
const LENGTHS = [200, 80, 60];

function start(externalId: unknown, length: number): string {
  return typeof externalId === 'string' && externalId !== ''
    ? printable([...externalId].slice(0, length).join(''))
    : '(order)';
}

/** Times within sentences, as people write them. */
function readable<Said extends Text>(text: Said): Said | string {
  return typeof text === 'string' ? text.replace(ISO, '$1 $2 UTC') : text;
}

const ISO = /\b(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)\.\d{3}Z\b/g;
