import { Readable } from 'node:stream';
import { AppError } from '../../domain/errors.ts';
import { INVOICE_STATUSES } from '../../domain/invoice.ts';
import { POLICIES } from '../../domain/policy.ts';
import { isAllowed } from '../../operator/authorize.ts';
import { explainSubject } from '../../operator/explain/explain.ts';
import { writeRows } from '../../operator/export/write-rows.ts';
import { clip } from '../../operator/input/problems.ts';
import { readOneNote } from '../../operator/input/readers.ts';
import { perform } from '../../operator/operation.ts';
import { replayEvents } from '../../operator/subjects/delivery-replay.ts';
import {
  createInvoiceByHand,
  exportInvoices,
  INVOICE_COLUMNS,
  type InvoiceView,
  listInvoices,
  type NewInvoiceView,
  readAmount,
  readExternalId,
  readInvoiceFilter,
  showInvoice,
  withdrawInvoiceByHand,
} from '../../operator/subjects/invoices.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import { givingWay } from '../../runtime/yield-to-event-loop.ts';
import { type Html, html } from '../../web/html.ts';
import { renderQr } from '../../web/render-qr.ts';
import { addForm } from '../forms/add-form.ts';
import type { Form } from '../forms/form.ts';
import { addList, by, type List } from '../page/add-list.ts';
import type { ConsoleDeps } from '../page/console-deps.ts';
import type { Page } from '../page/layout.ts';
import { alert, badge, copyButton, facts, field, ltr, outside, time } from '../page/pieces.ts';
import { type Fields, readForm, readQuery } from '../page/read-fields.ts';
import type { Answer, Asked, Routes } from '../page/routes.ts';
import { describeProblem } from '../page/show-error.ts';
import { needProject, urlTo, type Visit } from '../page/visit.ts';
import { eventOf, invoicePage } from './invoice-page.ts';

/** The list, the export, one invoice, and making one. */
export function addInvoiceRoutes(routes: Routes, deps: ConsoleDeps): void {
  const { get, post } = routes;
  addList(routes, invoicesList(deps));
  get('/invoices.csv', 'exportInvoices', (asked) => sendCsv(deps, asked));
  get('/invoices/new', 'createInvoiceByHand', async ({ visit, request }) => {
    const { project, amount } = readQuery(request, ['project', 'amount']);
    return newInvoicePage(visit, needProject(visit, project), amount === undefined ? {} : { amount }, null);
  });
  post('/invoices/new', 'createInvoiceByHand', (asked) => create(deps, asked));
  get('/invoices/:invoiceId', 'explainSubject', (asked) => show(deps, asked));
  post('/invoices/:invoiceId/replay', 'replayEvents', (asked) => replay(deps, asked));
  addForm(routes, deps, withdrawal(deps));
}

/** A form shows again what was filled in; other errors have a page of their own. */
function badInput(error: unknown): AppError {
  if (error instanceof AppError && (error.code === 'INVALID_ARGUMENT' || error.code === 'CONFLICT')) return error;
  throw error;
}

async function sendCsv(deps: ConsoleDeps, { visit, request, reply }: Asked): Promise<Answer> {
  const { project: asked, ...filters } = readQuery(request, [
    'project',
    ...FILTERS.map(({ name }) => name),
  ] as string[]);
  const { projectId } = needProject(visit, asked);
  const batches = await exportInvoices(deps, visit.actor, { ...readInvoiceFilter(filters), projectId });
  const lines = writeRows('csv', { columns: INVOICE_COLUMNS, batches });
  reply.type('text/csv; charset=utf-8').headers({
    'Content-Disposition': `attachment; filename="invoices-${projectId}.csv"`,
    'Cache-Control': 'no-store',
  });
  return { sent: reply.send(Readable.from(givingWay(lines))) };
}

async function create(deps: ConsoleDeps, { visit, request, tokens }: Asked): Promise<Answer> {
  const filled = readForm(request, NEW_FIELDS);
  const project = needProject(visit, filled.project);
  const taken = tokens.take('new-invoice', filled.token);
  if (taken.kind === 'refused') return newInvoicePage(visit, project, filled, html`<p>${taken.reason}.</p>`);
  try {
    const wanted = {
      requestedMicro: readAmount('amount', (filled.amount ?? '').trim()),
      externalId: readExternalId('externalId', (filled.externalId ?? '').trim()),
      note: readOneNote(filled.note),
    };
    const made = { ...wanted, projectId: project.projectId, idempotencyKey: `console-${taken.id}` };
    return madePage(visit, project, await createInvoiceByHand(deps, visit.actor, made));
  } catch (error) {
    return newInvoicePage(visit, project, filled, describeProblem(badInput(error)));
  }
}

/** An invoice as the visitor may see it, explained. Errors: `NOT_FOUND`. */
async function find(deps: ConsoleDeps, { visit, request }: Asked) {
  const { invoiceId = '' } = request.params as { invoiceId?: string };
  const explanation = await explainSubject(deps, visit.actor, { text: invoiceId, projectId: undefined });
  const { subject } = explanation;
  const [id, projectId] = [String(subject['invoiceId']), String(subject['projectId'])];
  // The text may be an order id, which has its invoice by the box at the top.
  if (id !== invoiceId) throw new AppError('NOT_FOUND', `there is no invoice ${clip(invoiceId)} that you may see`);
  return {
    explanation,
    project: needProject(visit, projectId),
    invoice: await showInvoice(deps, visit.actor, { projectId, invoiceId }),
  };
}

async function show(deps: ConsoleDeps, asked: Asked): Promise<Answer> {
  const { sent, withdrawn } = readQuery(asked.request, ['sent', 'withdrawn']);
  const { project, ...shown } = await find(deps, asked);
  const said =
    sent !== undefined
      ? html`The event is being sent again.`
      : withdrawn === undefined
        ? null
        : html`The invoice is withdrawn.`;
  return invoicePage(asked.visit, project, { ...shown, requestId: asked.request.id, said, isRefused: false });
}

type Found = Awaited<ReturnType<typeof find>>;

function withdrawal(deps: ConsoleDeps): Form<Found, { projectId: string; invoiceId: string }, unknown> {
  return {
    action: 'withdrawInvoiceByHand',
    path: '/invoices/:invoiceId/withdraw',
    find: (asked) => find(deps, asked),
    show: (_visit, { project, invoice }) => ({
      ...{ title: 'Withdraw an invoice', about: project, fields: [], button: 'Withdraw' },
      back: `/invoices/${invoice.invoiceId}`,
      consequence: html`<p>The payment page of ${outside(invoice.externalId)} will say that the shop withdrew the invoice, and no longer show an amount or an address. This cannot be undone.</p><p>The invoice keeps its status: a payment that still arrives pays it.</p>`,
    }),
    read: (_filled, { invoice: { projectId, invoiceId } }) => ({ projectId, invoiceId }),
    run: (actor, wanted) => withdrawInvoiceByHand(deps, actor, wanted),
    done: (_visit, { invoice }) => ({ goTo: `/invoices/${invoice.invoiceId}?withdrawn=1` }),
  };
}

async function replay(deps: ConsoleDeps, asked: Asked): Promise<Answer> {
  const { visit, request, tokens } = asked;
  const { event = '', token } = readForm(request, ['event', 'token']);
  const { project, ...shown } = await find(deps, asked);
  const refuse = (said: ReturnType<typeof html>) =>
    invoicePage(visit, project, { ...shown, requestId: request.id, said, isRefused: true });
  // Events of other invoices, and of projects that the visitor may not see, are not among its own.
  if (!shown.explanation.timeline.some((entry) => eventOf(entry) === event)) {
    return refuse(html`<p>This invoice has no event ${clip(event)}.</p>`);
  }
  const taken = tokens.take(`replay ${event}`, token);
  if (taken.kind === 'refused') return refuse(html`<p>${taken.reason}.</p>`);
  const wanted = replayEvents.read({ events: [event], isConfirmed: true }, deps.now());
  try {
    await perform(replayEvents, deps, visit.actor, wanted);
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'NOT_FOUND') throw error;
    return refuse(describeProblem(error));
  }
  return { goTo: `/invoices/${shown.invoice.invoiceId}?sent=1` };
}

/** The invoices of a project. */
const invoicesList = (deps: ConsoleDeps): List<InvoiceView> => ({
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
    html`<a href="${urlTo(visit, '/invoices.csv', project, filters)}" download>Download as CSV</a>`,
});

const FILTERS = [
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
    ? html`<p><a class="button" href="${urlTo(visit, '/invoices/new', project)}">Create the first one here</a></p>`
    : null;
  const key = isAllowed(visit.actor, 'createKey')
    ? html`<a href="${urlTo(visit, '/settings/keys/new', project)}">a key</a>`
    : 'a key that an owner creates';
  return html`<section class="card empty"><h2>No invoices yet</h2><p>Your shop creates them through the API (<code>POST /v1/invoices</code>), with ${key}. Without a shop, create one by hand and send its link.</p>${make}</section>`;
}

const NEW_FIELDS = ['amount', 'externalId', 'note', 'project', 'token'] as const;
type NewFields = Fields<(typeof NEW_FIELDS)[number]>;

function newInvoicePage(visit: Visit, project: ListedProjectView, filled: NewFields, problem: Html | null): Page {
  return {
    title: 'New invoice',
    about: project,
    ...(problem === null ? {} : { status: 400 }),
    main: html`<section class="card form">${problem === null ? null : alert(problem)}
<form method="post" action="/invoices/new"><input type="hidden" name="token" value="${visit.token('new-invoice')}"><input type="hidden" name="project" value="${project.projectId}">
${field('amount', 'Amount in USDT', filled.amount, html` inputmode="decimal" dir="ltr" required`, 'Such as 25 or 25.50. The payer sends a slightly higher amount, which identifies the payment.')}
${field('externalId', 'Order id', filled.externalId, html` maxlength="200" required`, 'Your own id, such as a bill number. Each one can be used only once.')}
${field('note', 'Note (optional)', filled.note, html` maxlength="2000"`, 'Kept with your name in the audit log. The payer never sees it.')}
<div class="actions"><button>Create invoice</button><a href="${urlTo(visit, '/invoices', project)}">Back</a></div></form></section>`,
  };
}

/** The link and its QR code, to send or to show. */
function madePage(visit: Visit, project: ListedProjectView, { invoice }: NewInvoiceView): Page {
  const { checkoutUrl, invoiceId, externalId, payableAmount, expiresAt } = invoice;
  return {
    title: 'Invoice created',
    about: project,
    main: html`<section class="card form"><h2>Send this link to the payer</h2>
<p class="link"><a href="${checkoutUrl}" rel="noreferrer">${ltr(checkoutUrl)}</a></p>${copyButton(checkoutUrl, 'Copy link for the payer')}
<div class="scan">${renderQr(checkoutUrl, 'QR code of the link')}<p class="hint">Or let the payer scan this code: it opens the payment page. It is not a payment address.</p></div>
${facts([
  ['Order', outside(externalId, 200)],
  ['To pay', html`${ltr(payableAmount)} USDT`],
  ['Pay by', html`${time(expiresAt)} UTC; a later payment still counts`],
])}
<div class="actions"><a class="button" href="/invoices/${invoiceId}">Show invoice</a><a href="${urlTo(visit, '/invoices/new', project)}">Create another</a></div></section>`,
  };
}
