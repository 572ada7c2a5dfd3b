import type { ResolutionKind } from '../domain/resolution.ts';
import type { UnixMs } from '../domain/time.ts';
import type { Database } from '../store/database.ts';
import {
  findNamedInvoice,
  findResolutions,
  insertResolutions,
  type LockedTransfer,
  lockTransfers,
  type NamedInvoice,
  type Resolution,
} from '../store/transfer-desk.ts';

/** More than a person decides on at once; a day of dust is resolved in a few commands. */
export const MAX_RESOLVED = 500;

/** What an operator did about transfers (UUIDs, at most `MAX_RESOLVED`). `invoice` is what the money was for, by id or external id. */
export type ResolveRequest = {
  transferIds: readonly string[];
  resolution: ResolutionKind;
  note: string;
  invoice: { id: string | null; externalId: string } | null;
  resolvedBy: string;
};

export type ResolveOutcome =
  /** `before` is the resolution that was in force, by transfer id. */
  | {
      kind: 'resolved';
      transfers: LockedTransfer[];
      before: Map<string, Resolution>;
      invoice: NamedInvoice | null;
      resolvedAt: UnixMs;
    }
  | { kind: 'unknown'; transferIds: string[] }
  | { kind: 'matched'; transfers: LockedTransfer[] }
  | { kind: 'taken-back'; transfers: LockedTransfer[] }
  | { kind: 'several-projects' }
  | { kind: 'no-invoice'; projectId: string };

/**
 * Notes what was done about transfers that paid nothing: all of them or, if one cannot be resolved, none. What was noted
 * before stays. No invoice is changed, for only one exact transfer makes an invoice `PAID`.
 */
export function resolveTransfers(
  { db, now }: { db: Database; now: () => UnixMs },
  request: ResolveRequest,
): Promise<ResolveOutcome> {
  const transferIds = [...new Set(request.transferIds)];
  if (transferIds.length > MAX_RESOLVED) {
    throw new RangeError(
      `${transferIds.length} transfers were given, and at most ${MAX_RESOLVED} are resolved at once`,
    );
  }
  return db.transaction(async (tx): Promise<ResolveOutcome> => {
    const transfers = await lockTransfers(tx, transferIds);
    const found = new Set(transfers.map(({ id }) => id));
    const unknown = transferIds.filter((id) => !found.has(id));
    const [first] = transfers;
    if (unknown.length > 0 || first === undefined) return { kind: 'unknown', transferIds: unknown };
    const annulled = transfers.filter(({ isAnnulled }) => isAnnulled);
    if (annulled.length > 0) return { kind: 'taken-back', transfers: annulled };
    const matched = transfers.filter(({ kind }) => kind === 'matched');
    if (matched.length > 0) return { kind: 'matched', transfers: matched };
    let invoice: NamedInvoice | null = null;
    if (request.invoice !== null) {
      if (transfers.some(({ projectId }) => projectId !== first.projectId)) return { kind: 'several-projects' };
      invoice = await findNamedInvoice(tx, first.projectId, request.invoice);
      if (invoice === null) return { kind: 'no-invoice', projectId: first.projectId };
    }
    const before = new Map<string, Resolution>();
    for (const [id, resolutions] of await findResolutions(tx, transferIds)) {
      const inForce = resolutions.at(-1);
      if (inForce !== undefined) before.set(id, inForce);
    }
    const { resolution, note, resolvedBy } = request;
    const resolvedAt = now();
    const rows = transfers.map(({ id: transferId, projectId }) => {
      return { projectId, transferId, resolution, note, invoiceId: invoice?.id ?? null, resolvedBy };
    });
    await insertResolutions(tx, rows, resolvedAt);
    return { kind: 'resolved', transfers, before, invoice, resolvedAt };
  });
}
