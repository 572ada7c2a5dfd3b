import { AppError } from '../../domain/errors.ts';
import { say } from '../../domain/message.ts';
import { clip } from '../input/clip.ts';
import { FieldError } from '../input/field-error.ts';

/** Heights of blocks, both included. */
export type Range = { from: number; to: number };

/** Blocks of one command: three and a half days, 30,000 requests or more. */
const MAX_BLOCKS = 100_000;

/** The blocks that are to be read. Errors: `INVALID_ARGUMENT`. */
export function readRange(input: { from: string; to: string }): Range {
  const { from, to } = { from: readHeight('from', input.from), to: readHeight('to', input.to) };
  if (from > to)
    throw new AppError('INVALID_ARGUMENT', say`${{ field: 'from' }} ${from} is above ${{ field: 'to' }} ${to}`);
  const count = to - from + 1;
  if (count <= MAX_BLOCKS) return { from, to };
  throw new AppError(
    'INVALID_ARGUMENT',
    say`${count} blocks are more than ${MAX_BLOCKS} at once: read ${{ field: 'from' }} ${from} ${{ field: 'to' }} ${from + MAX_BLOCKS - 1} first, then go on`,
  );
}

/** Block heights fit 2^53; anything else is refused before a node is asked. */
export function readHeight(field: string, text: string): number {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  throw new FieldError(field, `${clip(text)} is no block number: give a whole number from 1 on`);
}

/** As input of another use case. */
export function rangeInput(network: string, range: Range): { network: string; from: string; to: string } {
  return { network, ...heights(range) };
}

/** The same where the network need not be named. */
export function heights({ from, to }: Range): { from: string; to: string } {
  return { from: String(from), to: String(to) };
}
