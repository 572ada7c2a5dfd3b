import { decodeId, encodeId } from '../../domain/ids.ts';
import { toIso, type UnixMs, unixMs } from '../../domain/time.ts';
import type { ExportFilter } from '../../store/ledger-export.ts';
import type { NamedInvoice, Resolution, TransferKind } from '../../store/transfer-desk.ts';
import { CliError } from '../cli-error.ts';
import { clip } from '../clip.ts';
import { parseDuration, parseMoment } from '../duration.ts';

const KINDS: readonly TransferKind[] = ['unmatched', 'duplicate', 'matched'];

/** The kinds that `--kind` names. Errors: `INVALID_ARGUMENT`. */
export function readKinds(text: string): readonly TransferKind[] {
  if (text === 'all') return KINDS;
  const kind = KINDS.find((known) => known === text);
  if (kind !== undefined) return [kind];
  throw new CliError('INVALID_ARGUMENT', `--kind is ${clip(text)}: choose ${KINDS.join(', ')} or all`);
}

const DAY_MS = 86_400_000;

/** The time between `--from` and `--to`; a day given to `--to` belongs to it. Errors: `INVALID_ARGUMENT`. */
export function readPeriod(options: { from?: string; to?: string }): Pick<ExportFilter, 'from' | 'until'> {
  const from = options.from === undefined ? null : readTime('--from', options.from);
  const until = options.to === undefined ? null : readTime('--to', options.to);
  const isDay = options.to !== undefined && !options.to.includes('T');
  const end = until !== null && isDay ? unixMs(until + DAY_MS) : until;
  if (from !== null && end !== null && from >= end) {
    throw new CliError(
      'INVALID_ARGUMENT',
      `--from ${clip(options.from ?? '')} is not before --to ${clip(options.to ?? '')}: nothing lies between them`,
    );
  }
  return { from, until: end };
}

function readTime(option: string, text: string): UnixMs {
  const time = parseDuration(text) === null ? parseMoment(text, 0) : null;
  if (time !== null && time >= 0) return unixMs(time);
  throw new CliError(
    'INVALID_ARGUMENT',
    `${option} is ${clip(text)}: write a day (2026-09-01, UTC) or a moment with its zone (2026-09-01T12:00:00Z)`,
  );
}

/** The UUID behind a `trf_…`. Errors: `INVALID_ARGUMENT`. */
export function readTransferId(text: string): string {
  const id = decodeId('trf', text);
  if (id !== null) return id;
  throw new CliError('INVALID_ARGUMENT', noTransferId(text));
}

/** Why a text is no `trf_…`. */
export function noTransferId(text: string): string {
  return `${clip(text)} is not a transfer id: it is "trf_" and 26 characters, as "quittance transfers list" shows it`;
}

/** An invoice for --json. */
export function describeNamedInvoice(invoice: NamedInvoice | null) {
  return invoice && { invoiceId: encodeId('inv', invoice.id), externalId: invoice.externalId, status: invoice.status };
}

/** A resolution for --json. */
export function describeResolution({ resolution, note, invoice, resolvedBy, resolvedAt }: Resolution) {
  return { resolution, note, invoice: describeNamedInvoice(invoice), resolvedBy, resolvedAt: toIso(resolvedAt) };
}
