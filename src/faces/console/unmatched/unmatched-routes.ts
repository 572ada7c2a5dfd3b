import { AppError } from '../../../core/domain/errors.ts';
import { say } from '../../../core/domain/message.ts';
import { CAUSES, type CauseCode } from '../../../core/domain/mismatch.ts';
import { formatAmount, microUsdt } from '../../../core/domain/money.ts';
import { isLocalNetwork } from '../../../core/domain/network.ts';
import { RESOLUTIONS, type ResolutionKind } from '../../../core/domain/resolution.ts';
import type { Actor } from '../../operator/actor.ts';
import { isAllowed } from '../../operator/authorize.ts';
import { readChoice } from '../../operator/input/readers.ts';
import { perform } from '../../operator/operation.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import {
  readRefundNote,
  readRefundTx,
  refundTransfer,
  resolveTransfers,
} from '../../operator/subjects/transfer-decisions.ts';
import {
  type CauseView,
  type ListedTransferView,
  listTransfers,
  type RefundView,
  type ResolutionView,
  showTransfers,
  type TransferListView,
  type TransferView,
} from '../../operator/subjects/transfers.ts';
import { type Html, html } from '../../web/html.ts';
import { describeProblem, type Page } from '../page/layout.ts';
import {
  badge,
  type Column,
  copyButton,
  facts,
  field,
  hidden,
  invoiceBadge,
  live,
  liveNone,
  liveRows,
  ltr,
  many,
  money,
  number,
  outside,
  pager,
  shortAddress,
  table,
  tabs,
  tile,
  time,
} from '../page/pieces.ts';
import { type Asked, type ConsoleDeps, performFor, type Routes } from '../page/routes.ts';
import { type Fields, needProject, noSuch, pathPart, readPostedForm, urlTo, type Visit } from '../page/visit.ts';
import { renderText } from '../page/words.ts';

/** The maximum number of transfers per page whose causes are searched. */
const PAGE_SIZE = '25';

/** Adds the list of unmatched transfers with their causes, the page for a transfer, and the decision about it. */
export function addUnmatchedRoutes({ get, post }: Routes, deps: ConsoleDeps): void {
  get('/unmatched', 'listTransfers', ['project', 'state', 'before', 'resolved'], async ({ visit, query }) => {
    const project = needProject(visit, query.project);
    const { projectId } = project;
    const state = readChoice('state', query.state, STATES) ?? 'open';
    const given = { projectId, state, before: query.before, limit: PAGE_SIZE };
    const { view: list } = await performFor(deps, visit, listTransfers, given);
    const urlOf = (of: State, before?: string) =>
      urlTo(visit, '/unmatched', project, { state: of === 'open' ? undefined : of, before });
    const older = list.nextBefore && urlOf(state, list.nextBefore);
    return {
      title: 'Unmatched transfers',
      about: project,
      said: query.resolved === undefined ? null : 'The decision was recorded. No invoice was changed.',
      main: html`
${renderSums(list)}
${tabs('Which transfers', NAMES, state, urlOf)}
${list.data.length === 0 ? liveNone(renderNone(visit, project, state)) : liveRows('Transfers', table('Unmatched transfers: those with questions from payers first, then the newest', COLUMNS, list.data))}
${pager({ older, text: 'Older transfers', newest: query.before === undefined ? null : urlOf(state) })}`,
    };
  });
  get('/unmatched/:transferId', 'showTransfers', [], async (asked) => {
    const { transfer, project } = await find(deps, asked);
    return transferPage(asked.visit, project, transfer, {});
  });
  post('/unmatched/:transferId', 'resolveTransfers', async (asked) => {
    const { visit, request, tokens } = asked;
    const filled = readPostedForm(request, RESOLVE_FIELDS);
    const { transfer, project } = await find(deps, asked);
    const { transferId } = transfer;
    const refuse = (problem: Html, status: number) => {
      return { ...transferPage(visit, project, transfer, filled), problem, status };
    };
    const taken = tokens.take(`resolve ${transferId}`, filled.token);
    if (taken.kind === 'refused') return refuse(html`<p>${taken.reason}.</p>`, 409);
    try {
      await decide(deps, visit.actor, transferId, filled);
    } catch (error) {
      if (!(error instanceof AppError) || STATUS[error.code] === undefined) throw error;
      return refuse(describeProblem(error, { tx: 'Refund transaction' }), STATUS[error.code] ?? 400);
    }
    return { goTo: `/unmatched?resolved=1${visit.projects.length > 1 ? `&project=${project.projectId}` : ''}` };
  });
}

/** Finds a transfer that the visitor may see. Hidden projects are reported as not found. Throws `NOT_FOUND`. */
async function find(deps: ConsoleDeps, { visit, request }: Asked) {
  const transferId = pathPart(request, 'transferId');
  const unknown = noSuch('transfer', transferId);
  if (!transferId.startsWith('trf_')) throw unknown;
  const { data } = (
    await performFor(deps, visit, showTransfers, { reference: transferId }).catch((error: unknown) => {
      throw error instanceof AppError && error.code !== 'DATABASE_UNAVAILABLE' ? unknown : error;
    })
  ).view;
  const transfer = data.find(({ projectId }) => visit.projects.some((project) => project.projectId === projectId));
  if (transfer === undefined) throw unknown;
  return { transfer, project: needProject(visit, transfer.projectId) };
}

/** Refusals that are shown beside the form. */
const STATUS: Partial<Record<AppError['code'], number>> = { INVALID_ARGUMENT: 400, NOT_FOUND: 400, CONFLICT: 409 };

/**
 * Links a refund to its outgoing transfer. If the refund was sent from a wallet that the ledger doesn't know, the note names it instead.
 */
async function decide(deps: ConsoleDeps, actor: Actor, transferId: string, filled: ResolveFields): Promise<void> {
  const { resolution = '', refundTx, elsewhere } = filled;
  const seenAt = filled.seenAt === undefined || filled.seenAt === 'never' ? null : filled.seenAt;
  const given = { note: filled.note, invoice: filled.invoice?.trim() };
  if (resolution === 'refunded' && refundTx !== undefined && elsewhere === undefined) {
    const wanted = refundTransfer.read({ ...given, transferId, tx: refundTx }, deps.now());
    await perform(refundTransfer, deps, actor, { ...wanted, seenAt });
    return;
  }
  const note = refundTx === undefined ? given.note : readRefundNote(readRefundTx('tx', refundTx), given.note);
  const wanted = resolveTransfers.read({ ...given, note, resolution, transfers: [transferId] }, deps.now());
  await perform(resolveTransfers, deps, actor, { ...wanted, seenAt });
}

const STATES = ['open', 'resolved', 'all'] as const;
type State = (typeof STATES)[number];

const NAMES: Record<State, string> = { open: 'Waiting', resolved: 'Resolved', all: 'All' };

/** Sums up the open transfers in the list by likeliest cause, largest sum first. */
function renderSums({ data: listed, nextBefore }: TransferListView): Html | null {
  const sums = new Map<CauseCode, { code: CauseCode; count: number; micro: bigint }>();
  for (const { amount, reason, resolution } of listed) {
    if (resolution !== null) continue;
    const code = reason?.code ?? 'UNKNOWN';
    const { count, micro } = sums.get(code) ?? { count: 0, micro: 0n };
    sums.set(code, { code, count: count + 1, micro: micro + BigInt(amount.replace('.', '')) });
  }
  const data = [...sums.values()]
    .toSorted((a, b) => Number(b.micro - a.micro))
    .map(({ micro, ...sum }) => ({ ...sum, amount: formatAmount(microUsdt(micro)) }));
  if (data.length === 0) return null;
  const tiles = data
    .slice(0, MAX_TILES)
    .map(({ code, count, amount }) => tile(CAUSES[code].title, money(amount), many(count, 'transfer')));
  const all =
    data.length <= MAX_TILES
      ? null
      : html`<details><summary>All ${data.length} causes</summary>${table('Open transfers by most likely cause', SUM_COLUMNS, data)}</details>`;
  return html`<section aria-labelledby="sums"><h2 id="sums">Open, by most likely cause${nextBefore === null ? null : html` <small>on this page</small>`}</h2><dl class="tiles">${tiles}</dl>${all}</section>`;
}

const MAX_TILES = 6;

type CauseSum = { code: CauseCode; count: number; amount: string };
const SUM_COLUMNS: readonly Column<CauseSum>[] = [
  ['Cause', ({ code }) => CAUSES[code].title],
  ['Transfers', ({ count }) => number(count), 'number'],
  ['USDT', ({ amount }) => money(amount), 'number'],
];

const linkInvoice = ({ invoiceId, externalId }: { invoiceId: string; externalId: string }): Html =>
  html`<a href="/invoices/${invoiceId}">${outside(externalId, 40)}</a> `;

const COLUMNS: readonly Column<ListedTransferView>[] = [
  [
    'USDT',
    ({ transferId, amount }) => html`<a class="row" data-resolve href="/unmatched/${transferId}">${ltr(amount)}</a>`,
  ],
  ['Received', (row) => time(row.time)],
  ['From', ({ from }) => shortAddress(from)],
  [
    'Likely cause',
    ({ reason }) =>
      reason === null ? '–' : html`${CAUSES[reason.code].title} <small class="hint">${reason.confidence}</small>`,
  ],
  [
    'Nearest invoice',
    ({ invoice, nearestInvoice, claimedBy }) => {
      if (claimedBy.length > 0)
        return html`${claimedBy.map(linkInvoice)}<small class="hint">${claimedBy.length === 1 ? 'the payer asks' : 'the payers ask'}</small>`;
      const near = invoice ?? nearestInvoice;
      return near === null ? '–' : linkInvoice(near);
    },
  ],
  ['Decision', ({ resolution }) => (resolution === null ? badge('Waiting', 'CONFIRMING') : RESOLVED[resolution])],
];

/** On a sandbox's network, anyone can make such a mistake on purpose to try this page. */
const TRY_ONE = say`To see an unmatched transfer, pay an invoice in this sandbox twice: ${{ command: 'sandbox pay', args: ['INVOICE'], input: { scenario: 'twice' } }}`;

function renderNone(visit: Visit, project: ListedProjectView, state: State): Html {
  if (state !== 'open')
    return html`<section class="card empty"><h2>No matching transfers</h2><p><a href="${urlTo(visit, '/unmatched', project)}">Open transfers</a></p></section>`;
  return html`<section class="card empty well"><h2>No open transfers</h2><p>Every transfer to your addresses is matched to an invoice or resolved. Unmatched transfers appear here about a minute after they are sent, with their likely cause.</p>${isLocalNetwork(project.network) ? html`<p>${renderText(TRY_ONE)}</p>` : null}</section>`;
}

const RESOLVED: Record<ResolutionKind, string> = {
  refunded: 'Refunded',
  'fulfilled-manually': 'Fulfilled manually',
  'own-deposit': 'Own deposit',
  kept: 'Kept',
};

/** Explains each decision to the person who has to choose. */
const MEANINGS: Record<ResolutionKind, string> = {
  refunded: 'You sent the money back from your wallet. Quittance cannot do this, because it has no private key.',
  'fulfilled-manually':
    'You fulfilled the order anyway. The invoice stays unchanged: PAID always means one transfer of exactly the payable amount.',
  'own-deposit': 'You sent this money yourself, for example to fund the address. It was not a payment.',
  kept: 'You keep the money and do nothing, because it is dust or no one asked for it back.',
};

const RESOLVE_FIELDS = ['resolution', 'invoice', 'refundTx', 'elsewhere', 'note', 'token', 'seenAt'] as const;
type ResolveFields = Fields<(typeof RESOLVE_FIELDS)[number]>;

/** Shows an unmatched transfer with its likely causes, and the form for the decision. */
function transferPage(visit: Visit, about: ListedProjectView, transfer: TransferView, filled: ResolveFields): Page {
  const { amount, from, to, txId, kind, invoice, takenBack, causes, claims, resolutions, evidence, refund } = transfer;
  const inForce = resolutions.at(-1) ?? null;
  const isDecided = kind === 'matched' || takenBack !== null;
  const state = isDecided ? null : inForce === null ? 'Waiting' : RESOLVED[inForce.resolution];
  return {
    ...{ title: `${amount} USDT`, about },
    beside: state === null ? null : badge(state, inForce === null ? 'CONFIRMING' : 'PAID'),
    main: html`
${takenBack === null ? null : html`<p class="notice">This transfer was annulled, because it is not on the chain. It no longer counts.</p>`}
${kind === 'matched' ? html`<p class="good">It paid its invoice, so there is nothing to decide.</p>` : renderCauses(causes)}
${renderClaims(claims, isDecided || inForce !== null)}
<div class="pair"><section class="card" aria-labelledby="facts"><h2 id="facts">Details</h2>${facts([
      ['Received', html`${time(transfer.time)} UTC, in block ${number(evidence.blockNumber)}`],
      ['From', html`<a href="/find?q=${from}">${ltr(from)}</a> ${copyButton(from, 'Copy the sender')}`],
      ['To', html`<a href="/find?q=${to}">${ltr(to)}</a>`],
      ['Transaction', html`<a href="/find?q=${txId}">${ltr(txId)}</a> ${copyButton(txId, 'Copy the transaction')}`],
      ['Refunded', refund && renderRefund(refund)],
      [
        'Invoice',
        invoice === null
          ? null
          : html`<a href="/invoices/${invoice.invoiceId}">${outside(invoice.externalId)}</a> ${invoiceBadge(invoice.status)}`,
      ],
      [
        'Shown by',
        evidence.nodes.length === 0 ? evidence.verified : `${evidence.verified}, ${evidence.nodes.join(', ')}`,
      ],
    ])}</section>
${isDecided ? null : isAllowed(visit.actor, 'resolveTransfers') ? renderForm(visit, transfer, filled, inForce) : html`<p class="hint">Your role is read-only: only an operator or an owner can resolve transfers.</p>`}</div>
${live('decisions', renderDecisions(resolutions))}`,
  };
}

/** Anyone with an invoice's link can claim a transfer, so a claim alone doesn't justify a decision. */
function renderClaims(claims: TransferView['claims'], isDecided: boolean): Html {
  if (claims.length === 0) return html``;
  const items = claims.map(({ invoice: { invoiceId, externalId, status }, claimedAt }) => {
    return html`<li><a href="/invoices/${invoiceId}">${outside(externalId, 60)}</a> ${invoiceBadge(status)} <span class="hint">since ${time(claimedAt)} UTC</span></li>`;
  });
  const until = isDecided
    ? null
    : html`<p class="hint">The page for ${claims.length === 1 ? 'this invoice' : 'these invoices'} says that the money arrived and asks for no further payment until you decide. Before you fulfil an order, compare the amount with the invoice, and ask the payer for the sending address, because anyone with the invoice link can look up a transfer.</p>`;
  return html`<section class="card" aria-labelledby="claims"><h2 id="claims">Payers asking about this transfer</h2><ul>${items}</ul>${until}</section>`;
}

function renderDecisions(resolutions: readonly ResolutionView[]): Html {
  if (resolutions.length === 0) return html``;
  return html`<section class="card flush" aria-labelledby="decided"><h2 id="decided">Decisions, newest first</h2>${table('Decisions, newest first', DECISIONS, resolutions.toReversed())}</section>`;
}

function renderRefund({ txId, from, blockTime, blockNumber }: RefundView): Html {
  return html`${time(blockTime)} UTC, in block ${number(blockNumber)}, from <a href="/find?q=${from}">${ltr(from)}</a>: transaction <a href="/find?q=${txId}">${ltr(txId)}</a>`;
}

function renderCauses(causes: readonly CauseView[]): Html {
  const items = causes.map(({ code, confidence, explanation, invoices }) => {
    const near = invoices.slice(0, MAX_NEAR).map(({ invoiceId, externalId, status, payableAmount, difference }) => {
      return html`<li><a href="/invoices/${invoiceId}">${outside(externalId, 60)}</a> ${invoiceBadge(status)} <span class="hint">to pay ${ltr(payableAmount)}, difference ${ltr(difference)}</span></li>`;
    });
    return html`<li><p><strong>${CAUSES[code].title}</strong> <small class="hint">certainty ${confidence}</small><br><bdi>${explanation}</bdi></p>${near.length === 0 ? null : html`<ul>${near}</ul>`}</li>`;
  });
  return html`<section class="card verdict" aria-labelledby="why"><h2 id="why">Why this transfer probably matched no invoice</h2><ol class="causes">${items}</ol></section>`;
}

const MAX_NEAR = 5;

const DECISIONS: readonly Column<ResolutionView>[] = [
  ['Decided', ({ resolvedAt }) => time(resolvedAt)],
  ['As', ({ resolution }) => RESOLVED[resolution]],
  ['By', ({ resolvedBy }) => outside(resolvedBy, 100)],
  [
    'For',
    ({ invoice }) =>
      invoice === null ? '–' : html`<a href="/invoices/${invoice.invoiceId}">${outside(invoice.externalId, 40)}</a>`,
  ],
  ['Note', ({ note }) => (note === '' ? '–' : outside(note, 2000))],
];

function renderForm(
  visit: Visit,
  { transferId, amount }: TransferView,
  filled: ResolveFields,
  inForce: ResolutionView | null,
): Html {
  const choices = RESOLUTIONS.map((each) => {
    const checked = filled.resolution === each ? html` checked` : null;
    return html`<label class="choice"><input type="radio" name="resolution" value="${each}"${checked} required><span><strong>${RESOLVED[each]}</strong><span class="hint">${MEANINGS[each]}</span></span></label>`;
  });
  const before = inForce === null ? null : html` The previous decision stays in the list above.`;
  return html`<section class="card form" aria-labelledby="decide"><h2 id="decide">${inForce === null ? 'Decide' : 'Change the decision'}</h2>
<form method="post" action="/unmatched/${transferId}">${hidden('token', visit.token(`resolve ${transferId}`))}${hidden('seenAt', inForce?.resolvedAt ?? 'never')}
<fieldset><legend>What did you do with the ${amount} USDT?</legend>${choices}</fieldset>
${field('refundTx', 'Refund transaction (optional)', filled.refundTx, html` dir="ltr" maxlength="200"`, 'Transaction id (64 characters) or Tronscan link. The ledger must contain it as a transfer of the full amount to the sender, from an address of this project. Your shop is notified.')}
<label class="check"><input type="checkbox" name="elsewhere" value="yes"${filled.elsewhere === undefined ? null : html` checked`}> The refund was sent from a different wallet or to a different address: record it only in the note</label>
${field('invoice', 'Intended invoice (optional)', filled.invoice, html` maxlength="400"`, 'inv_… or the order id.')}
${field('note', 'Note (optional)', filled.note, html` maxlength="2000"`)}
<p class="hint">The transfer leaves this list. No invoice changes and no money moves. The decision is recorded permanently with your name.${before}</p>
<div class="actions"><button>Save decision</button></div></form></section>`;
}
