import { AppError, type FieldProblem } from '../../domain/errors.ts';
import type { Actor } from '../../operator/actor.ts';
import { clip } from '../../operator/input/clip.ts';
import { readChoice } from '../../operator/input/read-choice.ts';
import { readNote } from '../../operator/input/read-note.ts';
import { perform } from '../../operator/operation.ts';
import { listTransfers, readTransferFilter } from '../../operator/transfers/list-transfers.ts';
import { refundTransferOperation } from '../../operator/transfers/operations.ts';
import {
  readInvoiceName,
  readResolution,
  readTransferIds,
  resolveTransfers,
} from '../../operator/transfers/resolve-transfers.ts';
import { showTransfers } from '../../operator/transfers/show-transfers.ts';
import { readRefundNote, readRefundTx } from '../../operator/transfers/transfer-input.ts';
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
  const filter = readTransferFilter({ state, before: query.before, limit: PAGE_SIZE });
  const found = await listTransfers(deps, visit.actor, { ...filter, projectId });
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
    await showTransfers(deps, visit.actor, { reference: transferId }).catch((error: unknown) => {
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
    return refuse(describeProblem(error), STATUS[error.code] ?? 400);
  }
  return { goTo: `/unmatched?resolved=1${visit.projects.length > 1 ? `&project=${project.projectId}` : ''}` };
}

/** What the form was refused for is said beside it. */
const STATUS: Partial<Record<AppError['code'], number>> = { INVALID_ARGUMENT: 400, NOT_FOUND: 400, CONFLICT: 409 };

type Filled = Fields<(typeof RESOLVE_FIELDS)[number]>;

/** A refund is tied to the transfer that left, unless that left a wallet of which the ledger does not know: then the note names it. */
async function decide(deps: ConsoleDeps, actor: Actor, transfer: string, filled: Filled): Promise<void> {
  const [transferId = ''] = readTransferIds([transfer]);
  const resolution = readResolution(filled.resolution ?? '');
  const txId = filled.refundTx === undefined ? null : readRefundTx('refundTx', filled.refundTx);
  const problems: FieldProblem[] = [];
  const note = txId === null ? readNote(filled.note, problems) : readRefundNote(txId, filled.note, problems);
  const [problem] = problems;
  if (problem !== undefined) throw new AppError('INVALID_ARGUMENT', problem.message);
  const common = {
    ...{ note, invoice: readInvoiceName(filled.invoice?.trim()) },
    seenAt: filled.seenAt === undefined || filled.seenAt === 'never' ? null : filled.seenAt,
  };
  if (resolution === 'refunded' && txId !== null && filled.elsewhere === undefined) {
    await perform(refundTransferOperation, deps, actor, { ...common, transferId, txId });
  } else {
    await resolveTransfers(deps, actor, { ...common, transferIds: [transferId], resolution });
  }
}
