import { assertNever } from '../../domain/assert-never.ts';
import { decodeId, encodeId } from '../../domain/ids.ts';
import { isResolution, RESOLUTIONS } from '../../domain/resolution.ts';
import { toIso, unixMs } from '../../domain/time.ts';
import {
  MAX_RESOLVED,
  type ResolveOutcome,
  type ResolveRequest,
  resolveTransfers,
} from '../../payments/resolve-transfer.ts';
import { systemClock } from '../../runtime/clock.ts';
import { CliError, type Problem } from '../cli-error.ts';
import { clip, quote } from '../clip.ts';
import { readOperator } from '../operator.ts';
import { readNote } from '../read-note.ts';
import { spotSecret } from '../spot-secret.ts';
import { formatTable, type Result, type Terminal } from '../terminal.ts';
import { withDatabase } from '../with-database.ts';
import { describeNamedInvoice, describeResolution, noTransferId } from './options.ts';

export type ResolveOptions = { as: string; note?: string; invoice?: string; by?: string };

/** Notes what was done about transfers that paid nothing, all or none, and says what was noted before. */
export async function resolve(terminal: Terminal, references: string[], options: ResolveOptions): Promise<Result> {
  const request = readRequest(terminal, references, options);
  const outcome = await withDatabase(terminal, ({ db }) =>
    resolveTransfers({ db, now: () => unixMs(systemClock.now()) }, request),
  );
  if (outcome.kind !== 'resolved') throw refused(outcome, options);
  return describe(outcome, request);
}

/** All problems at once. */
function readRequest(terminal: Terminal, references: string[], options: ResolveOptions): ResolveRequest {
  const problems: Problem[] = [];
  const transferIds = references.flatMap((text) => {
    const id = decodeId('trf', text);
    if (id !== null) return [id];
    problems.push({
      subject: spotSecret(text) === null ? text.slice(0, 60) : 'transfers',
      message: noTransferId(text),
    });
    return [];
  });
  if (references.length > MAX_RESOLVED) {
    const message = `${references.length} transfers were given: resolve at most ${MAX_RESOLVED} at once`;
    problems.push({ subject: 'transfers', message });
  }
  const { as: resolution } = options;
  if (!isResolution(resolution)) {
    problems.push({ subject: '--as', message: `--as is ${clip(resolution)}: choose ${RESOLUTIONS.join(', ')}` });
  }
  const note = readNote(options.note, problems);
  // The bound of an external id, which is longer than an invoice id. PostgreSQL takes no NUL.
  const invoice = options.invoice;
  if (invoice !== undefined && (invoice === '' || invoice.length > 400 || invoice.includes('\0'))) {
    problems.push({ subject: '--invoice', message: `--invoice is ${clip(invoice)}: give inv_… or an externalId` });
  }
  if (problems.length > 0 || !isResolution(resolution)) {
    throw new CliError('INVALID_ARGUMENT', 'nothing was resolved', { problems });
  }
  return {
    transferIds,
    resolution,
    note,
    invoice: invoice === undefined ? null : { id: decodeId('inv', invoice), externalId: invoice },
    resolvedBy: readOperator(options.by, terminal.env),
  };
}

type Refusal = Exclude<ResolveOutcome, { kind: 'resolved' }>;

function refused(outcome: Refusal, options: ResolveOptions): CliError {
  const nothing = 'nothing was resolved';
  switch (outcome.kind) {
    case 'unknown':
      return new CliError('NOT_FOUND', nothing, {
        problems: outcome.transferIds.map((id) => {
          const transferId = encodeId('trf', id);
          return { subject: transferId, message: `there is no transfer ${transferId}` };
        }),
      });
    case 'matched':
      return new CliError('CONFLICT', `${nothing}: what paid its invoice is settled, and PAID is never left`, {
        problems: outcome.transfers.map(({ id, externalId }) => {
          const transferId = encodeId('trf', id);
          return {
            subject: transferId,
            message: `${transferId} paid the invoice ${quote(externalId ?? '')}`,
          };
        }),
      });
    case 'taken-back':
      return new CliError('CONFLICT', nothing, {
        problems: outcome.transfers.map(({ id }) => {
          const transferId = encodeId('trf', id);
          const message = `${transferId} never came: the chain denies it, and it was taken back`;
          return { subject: transferId, message };
        }),
      });
    case 'several-projects':
      return new CliError(
        'CONFLICT',
        `${nothing}: the transfers belong to several projects, and --invoice names one of one project; resolve them apart`,
      );
    case 'no-invoice':
      return new CliError(
        'NOT_FOUND',
        `${nothing}: project ${encodeId('prj', outcome.projectId)}, which got the money, has no invoice ${clip(options.invoice ?? '')}`,
      );
    default:
      return assertNever(outcome);
  }
}

function describe(outcome: Extract<ResolveOutcome, { kind: 'resolved' }>, request: ResolveRequest): Result {
  const { transfers, before, invoice, resolvedAt } = outcome;
  const { resolution, note, resolvedBy } = request;
  const rows = transfers.map(({ id }) => {
    const old = before.get(id);
    const was = old && `${old.resolution} by ${old.resolvedBy}, ${toIso(old.resolvedAt)}`;
    return [encodeId('trf', id), resolution, was ?? 'open'];
  });
  const data = {
    resolution,
    note,
    invoice: describeNamedInvoice(invoice),
    resolvedBy,
    resolvedAt: toIso(resolvedAt),
    transfers: transfers.map(({ id }) => {
      const old = before.get(id);
      return {
        transferId: encodeId('trf', id),
        before: old === undefined ? null : describeResolution(old),
      };
    }),
  };
  const kept = rows.some(([, , was]) => was !== 'open') ? '\nwhat was noted before stays in the history' : '';
  return {
    data,
    text: `${formatTable(['TRANSFER', 'RESOLUTION', 'BEFORE'], rows)}${kept}`,
    next: adviceOn(resolution, invoice),
  };
}

function adviceOn(
  resolution: ResolveRequest['resolution'],
  invoice: { externalId: string; status: string } | null,
): string {
  const which =
    invoice === null ? 'no invoice changed' : `the invoice ${quote(invoice.externalId)} stays ${invoice.status}`;
  if (resolution !== 'credited-outside') return which;
  return `${which}: PAID means one transfer of exactly its amount and nothing else, so what you granted stands in your own system only`;
}
