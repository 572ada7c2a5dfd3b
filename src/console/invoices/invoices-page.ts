import { INVOICE_STATUSES } from '../../domain/invoice.ts';
import { POLICIES } from '../../domain/policy.ts';
import { isAllowed } from '../../operator/authorize.ts';
import { listInvoices, readInvoiceFilter } from '../../operator/invoices/list-invoices.ts';
import type { InvoiceView, NewInvoiceView } from '../../operator/invoices/views.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import { type Html, html } from '../../web/html.ts';
import { renderQr } from '../../web/render-qr.ts';
import { by, type List } from '../page/add-list.ts';
import type { ConsoleDeps } from '../page/console-deps.ts';
import type { Page } from '../page/layout.ts';
import { alert, badge, copyButton, facts, field, ltr, outside, time } from '../page/pieces.ts';
import type { Fields } from '../page/read-fields.ts';
import { urlTo, type Visit } from '../page/visit.ts';

/** The invoices of a project. */
export const invoicesList = (deps: ConsoleDeps): List<InvoiceView> => ({
  ...{ path: '/invoices', action: 'listInvoices', title: 'Invoices', noun: 'invoices', pageSize: PAGE_SIZE },
  columns: COLUMNS,
  filters: () => FILTERS,
  find: async ({ actor }, { projectId }, filters, before) => {
    const filter = readInvoiceFilter({ ...filters, before });
    const found = await listInvoices(deps, actor, { ...filter, projectId, limit: PAGE_SIZE });
    return { ...found, next: found.nextBefore };
  },
  none: renderNone,
  beside: (visit, project) =>
    isAllowed(visit.actor, 'createInvoiceByHand')
      ? html`<a class="button" href="${urlTo(visit, '/invoices/new', project)}">New invoice</a>`
      : null,
  below: (visit, project, filters) =>
    html`<a href="${urlTo(visit, '/invoices.csv', project, filters)}" download>Download these as CSV</a>`,
});

export const FILTERS = [
  by.choice('status', 'State', INVOICE_STATUSES, (status) => status.toLowerCase()),
  by.line('amount', 'Amount', html` inputmode="decimal" dir="ltr"`),
  ...by.days,
  by.choice('policy', 'Policy', POLICIES),
];

/** Rows of a page: with more, it would pass 30 kB where order ids are long. */
const PAGE_SIZE = 50;

const COLUMNS = [
  [
    'Order',
    ({ invoiceId, externalId }: InvoiceView) =>
      html`<a class="row" href="/invoices/${invoiceId}">${outside(externalId, 60)}</a>`,
  ],
  ['State', ({ status }: InvoiceView) => badge(status)],
  ['To pay', ({ payableAmount }: InvoiceView) => ltr(payableAmount), 'number'],
  ['Made', ({ createdAt }: InvoiceView) => time(createdAt)],
  ['Paid', ({ paid }: InvoiceView) => (paid === null ? html`<span class="hint">–</span>` : time(paid.time))],
] as const;

function renderNone(visit: Visit, project: ListedProjectView, isFiltered: boolean): Html {
  if (isFiltered) {
    return html`<section class="card empty"><h2>No invoice fits</h2><p>Take a filter away, or find one order by the box at the top: it takes the order id, a checkout link, an address, a transaction or an amount.</p></section>`;
  }
  const make = isAllowed(visit.actor, 'createInvoiceByHand')
    ? html`<p><a class="button" href="${urlTo(visit, '/invoices/new', project)}">Make the first one here</a></p>`
    : null;
  const key = isAllowed(visit.actor, 'createKey')
    ? html`<a href="${urlTo(visit, '/settings/keys/new', project)}">a key</a>`
    : 'a key that an owner makes';
  return html`<section class="card empty"><h2>No invoice yet</h2><p>Your shop makes them by the API (<code>POST /v1/invoices</code>), with ${key}. Without a shop, make one by hand and send its link.</p>${make}</section>`;
}

export const NEW_FIELDS = ['amount', 'externalId', 'note', 'project', 'token'] as const;
type NewFields = Fields<(typeof NEW_FIELDS)[number]>;

export function newInvoicePage(
  visit: Visit,
  project: ListedProjectView,
  filled: NewFields,
  problem: Html | null,
): Page {
  return {
    title: 'New invoice',
    about: project,
    ...(problem === null ? {} : { status: 400 }),
    main: html`<section class="card form">${problem === null ? null : alert(problem)}
<form method="post" action="/invoices/new"><input type="hidden" name="token" value="${visit.token('new-invoice')}"><input type="hidden" name="project" value="${project.projectId}">
${field('amount', 'Amount in USDT', filled.amount, html` inputmode="decimal" dir="ltr" required`, 'Such as 25 or 25.50. The payer pays a few digits more, by which the payment is recognised.')}
${field('externalId', 'Order id', filled.externalId, html` maxlength="200" required`, 'Yours, such as a bill’s number. It names one invoice, for ever.')}
${field('note', 'Note (optional)', filled.note, html` maxlength="2000"`, 'Kept with your name in the audit log. The payer never sees it.')}
<div class="actions"><button>Make the invoice</button><a href="${urlTo(visit, '/invoices', project)}">Back</a></div></form></section>`,
  };
}

/** The link and its QR code, to send or to show. */
export function madePage(visit: Visit, project: ListedProjectView, { invoice }: NewInvoiceView): Page {
  const { checkoutUrl, invoiceId, externalId, payableAmount, expiresAt } = invoice;
  return {
    title: 'Invoice made',
    about: project,
    main: html`<section class="card form"><h2>Send this link to the payer</h2>
<p class="link"><a href="${checkoutUrl}" rel="noreferrer">${ltr(checkoutUrl)}</a></p>${copyButton(checkoutUrl, 'Copy link for the payer')}
<div class="scan">${renderQr(checkoutUrl, 'QR code of the link')}<p class="hint">Or let the payer scan it: it opens the page on which the invoice is paid. It is no address.</p></div>
${facts([
  ['Order', outside(externalId, 200)],
  ['To pay', html`${ltr(payableAmount)} USDT`],
  ['Pay by', html`${time(expiresAt)} UTC; a later payment still counts`],
])}
<div class="actions"><a class="button" href="/invoices/${invoiceId}">Look at the invoice</a><a href="${urlTo(visit, '/invoices/new', project)}">Make another</a></div></section>`,
  };
}
