import { AppError } from '../../domain/errors.ts';
import { encodeId } from '../../domain/ids.ts';
import type { Cause } from '../../domain/mismatch.ts';
import { formatAmount } from '../../domain/money.ts';
import { toIso } from '../../domain/time.ts';
import { type Claim, findClaims } from '../../payments/claims.ts';
import { diagnoseTransfers } from '../../payments/mismatch/diagnose-transfers.ts';
import type { Sql } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';
import { readLimit } from '../input/read-choice.ts';
import { readPeriod } from '../input/read-period.ts';
import { selectProject } from '../select-project.ts';
import { nameInvoice } from './describe-transfer.ts';
import { type DeskFilter, type DeskTransfer, listDeskTransfers } from './transfer-desk.ts';
import { readKinds, readTransferId } from './transfer-input.ts';
import type { ListedTransferView, TransferListView } from './views.ts';

/** So many diagnoses are asked for at once, and no terminal shows more. */
const MAX_LIMIT = 500;

/** Reads which transfers are asked for: those that pay nothing and have no resolution yet, unless it says otherwise. */
export function readTransferFilter(input: {
  kind?: string | undefined;
  state?: DeskFilter['state'] | undefined;
  from?: string | undefined;
  to?: string | undefined;
  before?: string | undefined;
  limit: string;
}): DeskFilter {
  const kinds = input.kind === undefined ? (['unmatched', 'duplicate'] as const) : readKinds(input.kind);
  if (input.kind === 'matched' && (input.state === 'open' || input.state === 'resolved')) {
    throw new AppError('INVALID_ARGUMENT', `matched transfers paid their invoices: leave out --${input.state}`);
  }
  const limit = readLimit(input.limit, { least: 1, most: MAX_LIMIT });
  return {
    kinds,
    // A caller who asks for matched transfers wants to see them, though there is nothing to resolve.
    state: input.state ?? (kinds.includes('matched') ? 'all' : 'open'),
    ...readPeriod(input),
    before: input.before === undefined ? null : readTransferId(input.before),
    limit,
  };
}

/** Transfers to the addresses of a project: those that payers claim, then the newest. */
export async function listTransfers(
  { db }: { db: Sql },
  actor: Actor,
  { projectId, ...filter }: DeskFilter & { projectId: string | undefined },
): Promise<TransferListView> {
  const project = await selectProject(db, actor, projectId);
  // The query reads one more than asked for: it shows whether there is another page.
  const found = await listDeskTransfers(db, project.id, { ...filter, limit: filter.limit + 1 });
  const page = found.slice(0, filter.limit);
  const ids = page.map(({ id }) => id);
  const causes = await diagnoseTransfers(db, ids);
  const claims = await findClaims(db, ids);
  const last = found.length > page.length ? page.at(-1) : undefined;
  return {
    data: page.map((transfer) => toView(transfer, claims.get(transfer.id), causes.get(transfer.id)?.[0])),
    nextBefore: last === undefined ? null : encodeId('trf', last.id),
  };
}

function toView(
  { id, txId, logIndex, blockTime, ...transfer }: DeskTransfer,
  claims: readonly Claim[] = [],
  cause?: Cause,
): ListedTransferView {
  const { from, to, kind, invoice, resolution } = transfer;
  const [nearest] = cause?.invoices ?? [];
  return {
    ...{ transferId: encodeId('trf', id), txId, logIndex, time: toIso(blockTime) },
    ...{ amount: formatAmount(transfer.amountMicro), from, to, kind },
    invoice: invoice && nameInvoice(invoice),
    reason: cause === undefined ? null : { code: cause.code, confidence: cause.confidence },
    nearestInvoice: nearest === undefined ? null : nameInvoice(nearest),
    claimedBy: claims.map(({ invoice }) => nameInvoice(invoice)),
    resolution,
  };
}
