import { AppError } from '../../../core/domain/errors.ts';
import { decodeId, encodeId } from '../../../core/domain/ids.ts';
import { INVOICE_STATUSES } from '../../../core/domain/invoice.ts';
import type { Text } from '../../../core/domain/message.ts';
import { formatAmount, microUsdt } from '../../../core/domain/money.ts';
import { POLICIES } from '../../../core/domain/policy.ts';
import { formatPrice } from '../../../core/domain/price.ts';
import { toIso } from '../../../core/domain/time.ts';
import type { TimelineEntry } from '../../../core/domain/timeline.ts';
import { isAllowed } from '../../operator/authorize.ts';
import { explainSubject, type Found, findSubject } from '../../operator/explain/explain.ts';
import { describeStep, type Explanation, printableText } from '../../operator/explain/explanation.ts';
import { clip, printable, shorten } from '../../operator/input/problems.ts';
import { perform } from '../../operator/operation.ts';
import { replayEvents } from '../../operator/subjects/delivery-replay.ts';
import {
  createInvoiceByHand,
  exportInvoices,
  type InvoiceView,
  listInvoices,
  showInvoice,
  withdrawInvoiceByHand,
} from '../../operator/subjects/invoices.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import { type Html, html } from '../../web/html.ts';
import { renderQr } from '../../web/render-qr.ts';
import { addForm, byOperation, line } from '../forms/form.ts';
import { addList, by } from '../page/add-list.ts';
import { describeProblem, type Page } from '../page/layout.ts';
import {
  type Column,
  copyButton,
  facts,
  invoiceBadge,
  live,
  ltr,
  money,
  outside,
  rowLink,
  table,
  tile,
  time,
} from '../page/pieces.ts';
import { type Answer, type Asked, type ConsoleDeps, performFor, type Routes, sendRows } from '../page/routes.ts';
import {
  chooseProject,
  type Fields,
  needProject,
  noSuch,
  pathPart,
  readPostedForm,
  urlTo,
  type Visit,
} from '../page/visit.ts';
import { consoleText, renderText } from '../page/words.ts';

/** Adds the list, the export, the page for an invoice, the form that creates one, and the search box's page. */
export function addInvoiceRoutes(routes: Routes, deps: ConsoleDeps): void {
  const { get, post } = routes;
  addList(routes, {
    ...{ path: '/invoices', action: 'listInvoices', title: 'Invoices', noun: 'invoices', pageSize: PAGE_SIZE },
    columns: COLUMNS,
    filters: FILTERS,
    find: async (visit, { projectId }, filters, before) => {
      const given = { ...filters, projectId, before, limit: String(PAGE_SIZE) };
      const found = await performFor(deps, visit, listInvoices, given as never);
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
  get('/invoices.csv', 'exportInvoices', ['project', ...FILTERS.map(({ name }) => name)], async (asked) => {
    const { project, ...filters }: Fields = asked.query;
    const { projectId } = needProject(asked.visit, project);
    const rows = await performFor(deps, asked.visit, exportInvoices, { ...filters, projectId } as never);
    return sendRows(asked, `invoices-${projectId}.csv`, rows);
  });
  addForm(routes, deps, {
    ...byOperation(deps, createInvoiceByHand, ({ amount = '', externalId = '', note }, project: ListedProjectView) => ({
      ...{ projectId: project.projectId, amount, externalId, note, idempotencyKey: undefined },
    })),
    run: (actor, wanted, once) => perform(createInvoiceByHand, deps, actor, { ...wanted, idempotencyKey: once }),
    path: '/invoices/new',
    filled: ['amount'],
    find: async ({ visit }, project) => needProject(visit, project),
    show: (visit, project) => ({
      ...{ title: 'New invoice', about: project, button: 'Create invoice', back: urlTo(visit, '/invoices', project) },
      consequence: html``,
      fields: [
        line('amount', 'Amount in USDT', {
          more: html` inputmode="decimal" dir="ltr" required`,
          hint: 'Such as 25 or 25.50. The payer sends a slightly higher amount, which identifies the payment.',
        }),
        line('externalId', 'Order id', {
          more: html` maxlength="200" required`,
          hint: 'Your own id, such as a bill number. You can use each id only once.',
        }),
        line('note', 'Note (optional)', {
          more: html` maxlength="2000"`,
          hint: 'Recorded with your name in the audit log. The payer never sees it.',
        }),
      ],
    }),
    done: madePage,
  });
  get('/find', 'findSubject', ['q', 'project', 'in'], (asked) => find(deps, asked, asked.query));
  get('/invoices/:invoiceId', 'explainSubject', ['sent', 'withdrawn'], async (asked) => {
    const { sent, withdrawn } = asked.query;
    const { project, ...shown } = await findInvoice(deps, asked);
    const saidOf = withdrawn === undefined ? null : 'The invoice is withdrawn.';
    const said = sent === undefined ? saidOf : 'Quittance is sending the event again.';
    return { ...invoicePage(asked.visit, project, { ...shown, requestId: asked.request.id }), said };
  });
  post('/invoices/:invoiceId/replay', 'replayEvents', async (asked) => {
    const { visit, request, tokens } = asked;
    const { event = '', token } = readPostedForm(request, ['event', 'token']);
    const { project, ...shown } = await findInvoice(deps, asked);
    const refuse = (problem: Html) => {
      return { ...invoicePage(visit, project, { ...shown, requestId: request.id }), problem, status: 409 };
    };
    // Excludes events for other invoices, and events in projects that the visitor may not see.
    if (!shown.explanation.timeline.some((entry) => eventOf(entry) === event)) {
      return refuse(html`<p>This invoice has no event ${clip(event)}.</p>`);
    }
    const taken = tokens.take(`replay ${event}`, token);
    if (taken.kind === 'refused') return refuse(html`<p>${taken.reason}.</p>`);
    try {
      await performFor(deps, visit, replayEvents, { events: [event], isConfirmed: true });
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'NOT_FOUND') throw error;
      return refuse(describeProblem(error));
    }
    return { goTo: `/invoices/${shown.invoice.invoiceId}?sent=1` };
  });
  addForm(routes, deps, {
    ...byOperation(deps, withdrawInvoiceByHand, (_filled, { invoice }: InvoiceAsked) => invoice),
    path: '/invoices/:invoiceId/withdraw',
    find: (asked) => findInvoice(deps, asked),
    show: (_visit, { project, invoice }) => ({
      ...{ title: 'Withdraw an invoice', about: project, button: 'Withdraw' },
      back: `/invoices/${invoice.invoiceId}`,
      consequence: html`<p>The payment page for ${outside(invoice.externalId)} will say that payment is cancelled, and will no longer show an amount or an address. You cannot undo this.</p><p>The invoice keeps its status: a payment that still arrives pays the invoice.</p>`,
    }),
    done: (_visit, { invoice }) => ({ goTo: `/invoices/${invoice.invoiceId}?withdrawn=1` }),
  });
}

/** Finds an invoice that the visitor may see, with its explanation. Throws `NOT_FOUND`. */
async function findInvoice(deps: ConsoleDeps, { visit, request }: Asked) {
  const invoiceId = pathPart(request, 'invoiceId');
  const explanation = await explainSubject(deps, visit.actor, { text: invoiceId, projectId: undefined });
  const { subject } = explanation;
  const [id, projectId] = [String(subject['invoiceId']), String(subject['projectId'])];
  // The text may be an order id; the search box at the top finds those.
  if (id !== invoiceId) throw noSuch('invoice', invoiceId);
  return {
    explanation,
    project: needProject(visit, projectId),
    invoice: await performFor(deps, visit, showInvoice, { projectId, invoiceId }),
  };
}

type InvoiceAsked = Awaited<ReturnType<typeof findInvoice>>;

const FILTERS = [
  by.choice('status', 'State', INVOICE_STATUSES, (status) => status.toLowerCase()),
  by.line('amount', 'Amount', html` inputmode="decimal" dir="ltr"`),
  ...by.days,
  by.choice('policy', 'Policy', POLICIES),
];

/** How many rows a page shows. With long order ids, a page with more rows would exceed 30 kB. */
const PAGE_SIZE = 50;

const COLUMNS: readonly Column<InvoiceView>[] = [
  ['Order', ({ invoiceId, externalId }) => rowLink(`/invoices/${invoiceId}`, outside(externalId, 60))],
  ['State', ({ status }) => invoiceBadge(status)],
  ['Payable amount', ({ payableAmount }) => ltr(payableAmount), 'number'],
  ['Created', ({ createdAt }) => time(createdAt)],
  ['Paid', ({ paid }) => (paid === null ? html`<span class="hint">–</span>` : time(paid.time))],
];

function renderNone(visit: Visit, project: ListedProjectView, isFiltered: boolean): Html {
  if (isFiltered) {
    return html`<section class="card empty"><h2>No matching invoices</h2><p>Remove a filter, or use the search box at the top: it accepts an order id, a checkout link, an address, a transaction or an amount.</p></section>`;
  }
  const make = isAllowed(visit.actor, 'createInvoiceByHand')
    ? html`<p><a class="button" href="${urlTo(visit, '/invoices/new', project)}">Create the first invoice here</a></p>`
    : null;
  const key = isAllowed(visit.actor, 'createKey')
    ? html`<a href="${urlTo(visit, '/settings/keys/new', project)}">a key</a>`
    : 'a key that an owner creates';
  return html`<section class="card empty"><h2>No invoices yet</h2><p>Your shop creates them through the API (<code>POST /v1/invoices</code>), with ${key}. Without a shop, create an invoice by hand and send its link to the payer.</p>${make}</section>`;
}

type Made = Awaited<ReturnType<typeof createInvoiceByHand.run>>;

/** Shows the link and its QR code, to send or to show to the payer. */
function madePage(visit: Visit, project: ListedProjectView, { invoice }: Made): Page {
  const { checkoutUrl, invoiceId, externalId, payableAmount, expiresAt } = invoice;
  return {
    title: 'Invoice created',
    about: project,
    main: html`<section class="card form"><h2>Send this link to the payer</h2>
<p class="link"><a href="${checkoutUrl}" rel="noreferrer">${ltr(checkoutUrl)}</a></p>${copyButton(checkoutUrl, 'Copy link for the payer')}
<div class="scan">${renderQr(checkoutUrl, 'QR code for the link')}<p class="hint">Or let the payer scan this code, which opens the payment page. The code is not a payment address.</p></div>
${facts([
  ['Order', outside(externalId, 200)],
  ['Payable amount', html`${ltr(payableAmount)} USDT`],
  ['Pay by', html`${time(expiresAt)} UTC; a later payment still counts`],
])}
<div class="actions"><a class="button" href="/invoices/${invoiceId}">Show invoice</a><a href="${urlTo(visit, '/invoices/new', project)}">Create another</a></div></section>`,
  };
}

type Shown = { explanation: Explanation; invoice: InvoiceView; requestId: string };

/** Shows everything about one invoice. It can be neither marked as paid nor deleted. */
function invoicePage(visit: Visit, project: ListedProjectView, shown: Shown): Page {
  const { explanation, invoice, requestId } = shown;
  const { externalId, status, checkoutUrl, paid } = invoice;
  const receipt =
    paid === null ? null : html`<a class="button quiet" href="${checkoutUrl}/receipt" rel="noreferrer">Receipt</a>`;
  return {
    title: shorten(externalId, 60),
    about: project,
    beside: live('state', invoiceBadge(status)),
    main: html`
${live('verdict', html`${renderVerdict(explanation)}${renderNext(explanation)}`, { isSpoken: true })}
${live('amounts', renderAmounts(invoice))}
<p class="actions"><a class="button quiet" href="${checkoutUrl}" rel="noreferrer">Open as the payer</a>${receipt}${copyButton(checkoutUrl, 'Copy link for the payer')}${renderWithdrawal(visit, shown)}</p>
${live('events', html`${renderTimeline(explanation, (entry) => renderReplay(visit, invoice, entry))}${renderFields(explanation)}`)}
${renderSupport(explanation, requestId)}`,
  };
}

/** A paid invoice has nothing left to withdraw. */
function renderWithdrawal(visit: Visit, { invoice: { invoiceId, status }, explanation }: Shown): Html | null {
  const isWithdrawn = explanation.timeline.some(({ kind }) => kind === 'withdrawn');
  if (status === 'PAID' || isWithdrawn || !isAllowed(visit.actor, 'withdrawInvoiceByHand')) return null;
  return html`<a class="button quiet" href="/invoices/${invoiceId}/withdraw">Withdraw</a>`;
}

function renderAmounts({ requestedAmount, price, payableAmount, paid, expiresAt, address }: InvoiceView): Html {
  const tail = formatAmount(microUsdt(microOf(payableAmount) - microOf(requestedAmount)));
  return html`<section aria-label="Amounts"><dl class="tiles">
${tile('Requested', ltr(requestedAmount), html`USDT${price && html` for ${outside(formatPrice(price))}`}`)}
${tile('Payable amount', ltr(payableAmount), html`a tail of ${ltr(tail)}, to ${outside(`${address.slice(0, 6)}…${address.slice(-6)}`)}`)}
${tile('Received', paid === null ? '–' : ltr(payableAmount), paid === null ? html`due by ${time(expiresAt)} UTC; a later payment still counts` : html`${time(paid.time)} UTC, <a href="/find?q=${paid.txId}">${paid.txId.slice(0, 8)}…</a>`)}
</dl></section>`;
}

const microOf = (amount: string) => BigInt(amount.replace('.', ''));

/** Returns the event that a timeline entry reports, or `null`. */
function eventOf({ kind, data }: TimelineEntry): string | null {
  const { eventId } = data;
  return kind === 'event' && typeof eventId === 'string' ? eventId : null;
}

/** Sends the event again to all of its endpoints. Receivers process an event only once. */
function renderReplay(visit: Visit, { invoiceId }: InvoiceView, entry: TimelineEntry): Html | null {
  const eventId = eventOf(entry);
  if (eventId === null || !isAllowed(visit.actor, 'replayEvents')) return null;
  return html`<form method="post" action="/invoices/${invoiceId}/replay"><input type="hidden" name="token" value="${visit.token(`replay ${eventId}`)}"><input type="hidden" name="event" value="${eventId}"><button class="quiet">Send again</button></form>`;
}

/** The explanation is empty, because the invoice's own page explains it. */
const nameInvoice = async (_db: unknown, { id }: { id: string }): Promise<Explanation> => ({
  ...{ verdict: [], subject: { form: 'invoice', invoiceId: encodeId('inv', id) }, fields: [] },
  ...{ timeline: [], omissions: [], next: [] },
});

/** The kinds of ids that have a page. */
const PAGES = [
  ['evt', '/events'],
  ['req', '/requests'],
  ['trf', '/unmatched'],
  ['whe', '/webhooks'],
] as const;

/**
 * The search box at the top. Accepts everything that `explain` does, and ids of things with their own page, in all projects that the person
 * may see. `in` selects one project, for an address that several projects have.
 */
async function find(
  deps: ConsoleDeps,
  { visit, request }: Asked,
  { q = '', project: asked, in: projectId }: Fields<'q' | 'project' | 'in'>,
): Promise<Answer> {
  const [text, id] = [q.trim(), q.trim().toLowerCase()];
  const page = PAGES.find(([kind]) => decodeId(kind, id) !== null);
  if (page !== undefined) return { goTo: `${page[1]}/${id}` };
  const about = chooseProject(visit, asked);
  const answer = await findSubject(deps, visit.actor, { text, projectId }, nameInvoice);
  if (!('verdict' in answer)) return foundPage(visit, text, answer, about);
  const { form, invoiceId } = answer.subject;
  if (form === 'invoice') return { goTo: `/invoices/${String(invoiceId)}` };
  return explanationPage(form === 'address' ? 'Address' : 'Transaction', answer, about, request.id);
}

/** Shows every possible meaning of a text, in all projects that the person may see. */
function foundPage(
  visit: Visit,
  typed: string,
  { invoices, transfers, addresses }: Found,
  about: ListedProjectView | null,
): Page {
  const ofSeveral: Column<{ projectName: string }>[] =
    visit.projects.length > 1 ? [['Project', ({ projectName }) => html`<bdi>${projectName}</bdi>`]] : [];
  const made = table(
    'Invoices',
    [
      ['Order', ({ id, externalId }) => rowLink(`/invoices/${encodeId('inv', id)}`, outside(externalId))],
      ['Status', ({ status }) => invoiceBadge(status)],
      ['Payable amount', ({ payableMicro }) => money(formatAmount(payableMicro)), 'number'],
      ['Created (UTC)', ({ createdAt }) => time(toIso(createdAt))],
      ...ofSeveral,
    ],
    invoices,
  );
  const came = table(
    'Transfers',
    [
      ['Transaction', ({ txId }) => rowLink(`/find?q=${txId}`, ltr(`${txId.slice(0, 8)}…`))],
      [
        'Paid',
        ({ id, kind }) =>
          kind === 'matched' ? 'an invoice' : html`nothing: <a href="/unmatched/${encodeId('trf', id)}">${kind}</a>`,
      ],
      ['Amount', ({ amountMicro }) => money(formatAmount(amountMicro)), 'number'],
      ['Block (UTC)', ({ blockTime }) => time(toIso(blockTime))],
      ...ofSeveral,
    ],
    transfers,
  );
  const named = table(
    'Addresses',
    [
      [
        'Address',
        ({ address, project: of }) =>
          rowLink(`/find?q=${address}${of === null ? '' : `&in=${encodeId('prj', of.id)}`}`, ltr(address)),
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
<p class="hint">This page shows up to 20 matches of each kind, newest first. Quittance searches for partial order ids and metadata only in the newest 10,000 invoices.</p>`,
  };
}

/** Shows everything known about a transaction or an address. */
function explanationPage(
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

/** Shows the answer in sentences, the most important one first and large. */
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

/** Shows what happened, in order. `act` returns the possible actions for an entry. */
function renderTimeline({ timeline, omissions }: Explanation, act: (entry: TimelineEntry) => Html | null): Html {
  const items = timeline.map((entry) => {
    const { at, kind, text } = entry;
    const iso = toIso(at);
    return html`<li data-kind="${kind}"><time datetime="${iso}">${iso.slice(0, 10)} <b>${iso.slice(11, 19)}</b></time><div><p><span class="kind">${kind}</span> <bdi>${readable(printable(text))}</bdi></p>${renderDetails(entry)}${act(entry)}</div></li>`;
  });
  const left = omissions.map(
    ({ what, shown, total }) => html`<p class="hint">${total - shown} of ${total} ${what} are not shown.</p>`,
  );
  return html`<section class="card" aria-labelledby="timeline"><h2 id="timeline">What happened <small>UTC</small></h2><ol class="timeline">${items}</ol>${left}</section>`;
}

/** The evidence is folded, because people rarely need it. */
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

/** This text is for a public issue tracker: it says what happened, but not to whom. */
function renderSupport(explanation: Explanation, requestId: string): Html {
  const text = supportText(explanation, requestId);
  return html`<details class="card"><summary>Copy for support</summary><p class="hint">Addresses, transactions, order ids, links and names are shortened or removed. Read the text before you share it.</p>${copyButton(text, 'Copy the text for support')}<label class="unseen" for="support">Text for support</label><textarea id="support" readonly rows="12">${text}</textarea></details>`;
}

/** Operators' entries begin with a name and may contain notes. */
const OF_PEOPLE: ReadonlySet<TimelineEntry['kind']> = new Set(['operator', 'resolved', 'taken-back']);

function supportText({ subject, verdict, timeline }: Explanation, requestId: string): string {
  const lines = timeline.map(({ at, kind, text }) => `${toIso(at)} ${kind}${OF_PEOPLE.has(kind) ? '' : `: ${text}`}`);
  const said = verdict.map((text) => printable(consoleText(text)));
  const whole = [...said, '', ...lines.map(printable), '', `request ${requestId}`].join('\n');
  return LENGTHS.reduce((text, length) => text.replaceAll(start(subject['externalId'], length), '(order)'), whole)
    .replace(/https?:\/\/[^\s:]+(:\d+)?[^\s:]*/g, '(link)')
    .replace(/\bT[1-9A-HJ-NP-Za-km-z]{33}\b/g, (address) => `T…${address.slice(-4)}`)
    .replace(/\b[0-9a-f]{64}\b/g, (id) => `${id.slice(0, 6)}…`)
    .replace(/\b(trf|evt|inv|whe|key|prj)_([0-9a-z]{22})([0-9a-z]{4})\b/g, '$1_…$3');
}

/** Texts truncate order ids to these lengths. */
const LENGTHS = [200, 80, 60];

function start(externalId: unknown, length: number): string {
  return typeof externalId === 'string' && externalId !== ''
    ? printable([...externalId].slice(0, length).join(''))
    : '(order)';
}

/** Replaces the times in a sentence with the form that people use. */
function readable<Said extends Text>(text: Said): Said | string {
  return typeof text === 'string' ? text.replace(ISO, '$1 $2 UTC') : text;
}

const ISO = /\b(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)\.\d{3}Z\b/g;
