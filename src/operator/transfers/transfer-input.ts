import { AppError, type FieldProblem } from '../../domain/errors.ts';
import { decodeId } from '../../domain/ids.ts';
import { readTransactionReference } from '../../domain/lookup/transaction-reference.ts';
import { say, type Text } from '../../domain/message.ts';
import { noteProblem } from '../../domain/resolution.ts';
import { clip } from '../input/clip.ts';
import { FieldError, fieldProblem } from '../input/field-error.ts';
import { readNote } from '../input/read-note.ts';
import type { TransferKind } from './transfer-desk.ts';

const KINDS: readonly TransferKind[] = ['unmatched', 'duplicate', 'matched'];

/** The kinds that a text names: one, or `all`. Errors: `INVALID_ARGUMENT`. */
export function readKinds(text: string): readonly TransferKind[] {
  if (text === 'all') return KINDS;
  const kind = KINDS.find((known) => known === text);
  if (kind !== undefined) return [kind];
  throw new FieldError('kind', `is ${clip(text)}: choose ${KINDS.join(', ')} or all`);
}

/** The UUID behind a `trf_…`. Errors: `INVALID_ARGUMENT`. */
export function readTransferId(text: string): string {
  const id = decodeId('trf', text);
  if (id !== null) return id;
  throw new AppError('INVALID_ARGUMENT', noTransferId(text));
}

/** Why a text is no `trf_…`. */
export function noTransferId(text: string): Text {
  return say`${clip(text)} is not a transfer id: it is "trf_" and 26 characters, as "${{ command: 'transfers list' }}" shows it`;
}

/** A note that names a refund, so that lists and exports lead to it. */
export function nameRefund(txId: string): string {
  return `refund tx ${txId}`;
}

/** The note of whoever refunded, behind the name of the refund. Problems are added to `problems`. */
export function readRefundNote(txId: string, text: string | undefined, problems: FieldProblem[]): string {
  const own = readNote(text, problems);
  const note = own === '' ? nameRefund(txId) : `${nameRefund(txId)}; ${own}`;
  const problem = problems.length > 0 ? null : noteProblem(note);
  if (problem !== null) problems.push(fieldProblem('note', problem));
  return note;
}

/** The id of the transaction by which money was sent back, from the id or its Tronscan link. Errors: `INVALID_ARGUMENT`. */
export function readRefundTx(field: string, text: string): string {
  const transaction = readTransactionReference(text.trim());
  if (transaction.kind === 'id') return transaction.txId;
  throw new FieldError(
    field,
    `is ${clip(text)}: give the 64 characters of a transaction on TRON, or its Tronscan link`,
  );
}
