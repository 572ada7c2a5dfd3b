import { AppError } from '../../domain/errors.ts';
import type { Actor } from '../../operator/actor.ts';
import { clip } from '../../operator/input/clip.ts';
import { readChoice } from '../../operator/input/read-choice.ts';
import { perform } from '../../operator/operation.ts';
import {
  readRefundNote,
  readRefundTx,
  refundTransfer,
  resolveTransfers,
} from '../../operator/subjects/transfer-decisions.ts';
import { listTransfers, showTransfers } from '../../operator/subjects/transfers.ts';
import { html } from '../../web/html.ts';
import type { ConsoleDeps } from '../page/console-deps.ts';
import { type Fields, readForm, readQuery } from '../page/read-fields.ts';
import type { Answer, Asked, Routes } from '../page/routes.ts';
import { describeProblem } from '../page/show-error.ts';
import { needProject } from '../page/visit.ts';
import { RESOLVE_FIELDS, STATES, transferPage, unmatchedPage } from './unmatched-page.ts';

/** So many causes are found for a page. */
const PAGE_SIZE = '25';

/** The queue, one transfer, and the decision about it. */
export function addUnmatchedRoutes({ get, post }: Routes, deps: ConsoleDeps): void {
  get('/unmatched', 'listTransfers', (asked) => list(deps, asked));
  get('/unmatched/:transferId', 'showTransfers', async (asked) => {
    readQuery(asked.request, []);
    const { transfer, project } = await find(deps, asked);
    return transferPage(asked.visit, project, { transfer, filled: {}, problem: null });
  });
  post('/unmatched/:transferId', 'resolveTransfers', (asked) => resolve(deps, asked));
}

async function list(deps: ConsoleDeps, { visit, request }: Asked): Promise<Answer> {
  const query = readQuery(request, ['project', 'state', 'before', 'resolved']);
  const { projectId, ...project } = needProject(visit, query.project);
  const state = readChoice('state', query.state, STATES) ?? 'open';
  const wanted = listTransfers.read({ projectId, state, before: query.before, limit: PAGE_SIZE }, deps.now());
  const { view: found } = await perform(listTransfers, deps, visit.actor, wanted);
  const said = query.resolved === undefined ? null : html`The decision is recorded. No invoice was changed.`;
  const isFirst = query.before === undefined;
  return unmatchedPage(visit, { projectId, ...project }, { state, list: found, said, isFirst });
}

/** A transfer as the visitor may see it. One of another project is as unknown. Errors: `NOT_FOUND`. */
async function find(deps: ConsoleDeps, { visit, request }: Asked) {
  const { transferId = '' } = request.params as { transferId?: string };
  const unknown = new AppError('NOT_FOUND', `there is no transfer ${clip(transferId)} that you may see`);
  if (!transferId.startsWith('trf_')) throw unknown;
  const { data } = (
    await showTransfers.run(deps, visit.actor, { reference: transferId }).catch((error: unknown) => {
      throw error instanceof AppError && error.code !== 'DATABASE_UNAVAILABLE' ? unknown : error;
    })
  ).view;
  const transfer = data.find(({ projectId }) => visit.projects.some((project) => project.projectId === projectId));
  if (transfer === undefined) throw unknown;
  return { transfer, project: needProject(visit, transfer.projectId) };
}

async function resolve(deps: ConsoleDeps, asked: Asked): Promise<Answer> {
  const { visit, request, tokens } = asked;
  const filled = readForm(request, RESOLVE_FIELDS);
  const { transfer, project } = await find(deps, asked);
  const { transferId } = transfer;
  const refuse = (problem: ReturnType<typeof html>, status: number) =>
    transferPage(visit, project, { transfer, filled, problem, status });
  const taken = tokens.take(`resolve ${transferId}`, filled.token);
  if (taken.kind === 'refused') return refuse(html`<p>${taken.reason}.</p>`, 409);
  try {
    await decide(deps, visit.actor, transferId, filled);
  } catch (error) {
    if (!(error instanceof AppError) || STATUS[error.code] === undefined) throw error;
    return refuse(describeProblem(error, { tx: 'Transaction of the refund' }), STATUS[error.code] ?? 400);
  }
  return { goTo: `/unmatched?resolved=1${visit.projects.length > 1 ? `&project=${project.projectId}` : ''}` };
}

/** What the form was refused for is said beside it. */
const STATUS: Partial<Record<AppError['code'], number>> = { INVALID_ARGUMENT: 400, NOT_FOUND: 400, CONFLICT: 409 };

type Filled = Fields<(typeof RESOLVE_FIELDS)[number]>;

/** A refund is tied to the transfer that left, unless that left a wallet of which the ledger does not know: then the note names it. */
async function decide(deps: ConsoleDeps, actor: Actor, transferId: string, filled: Filled): Promise<void> {
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
