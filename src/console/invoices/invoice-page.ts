import { encodeId } from '../../domain/ids.ts';
import { formatAmount, microUsdt } from '../../domain/money.ts';
import { toIso } from '../../domain/time.ts';
import type { TimelineEntry } from '../../domain/timeline.ts';
import { isAllowed } from '../../operator/authorize.ts';
import type { Explanation } from '../../operator/explain/explanation.ts';
import type { Found } from '../../operator/explain/search.ts';
import type { InvoiceView } from '../../operator/invoices/views.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import { type Html, html } from '../../web/html.ts';
import type { Page } from '../page/layout.ts';
import { alert, badge, copyButton, live, ltr, money, outside, table, time } from '../page/pieces.ts';
import type { Visit } from '../page/visit.ts';
import { renderFields, renderNext, renderSupport, renderTimeline, renderVerdict } from './explanation.ts';

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
<div class="tile"><dt>Asked for</dt><dd>${ltr(requestedAmount)}</dd><dd class="hint">USDT</dd></div>
<div class="tile"><dt>To pay, exactly</dt><dd>${ltr(payableAmount)}</dd><dd class="hint">a tail of ${ltr(tail)}, to ${outside(`${address.slice(0, 6)}…${address.slice(-6)}`)}</dd></div>
<div class="tile"><dt>Received</dt><dd>${paid === null ? '–' : ltr(payableAmount)}</dd><dd class="hint">${paid === null ? html`until ${time(expiresAt)} UTC, and later` : html`${time(paid.time)} UTC, <a href="/find?q=${paid.txId}">${paid.txId.slice(0, 8)}…</a>`}</dd></div>
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
      ['Made (UTC)', ({ createdAt }) => time(toIso(createdAt))],
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
    main: html`<p>This may be ${outside(typed)}.</p>
${invoices.length === 0 ? null : html`<h2>Invoices</h2>${made}`}
${transfers.length === 0 ? null : html`<h2>Transfers</h2>${came}`}
${addresses.length === 0 ? null : html`<h2>Addresses</h2>${named}`}
<p class="hint">At most 20 of each, the newest first. The start of an order or of a text in its metadata is looked for in the newest 10,000 invoices.</p>`,
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
