import { AppError } from '../../domain/errors.ts';
import { say } from '../../domain/message.ts';
import { type AccountXpub, parseAccountXpub } from '../../tron/account-xpub.ts';
import { clip } from '../input/clip.ts';
import { FieldError, fieldProblem } from '../input/field-error.ts';
import { spotSecret } from '../input/spot-secret.ts';

/** The public key of an account. Some look like a seed phrase by chance, so what is one is never taken for a secret. Errors: `INVALID_ARGUMENT`. */
export function readXpub(text: string): AccountXpub {
  const parsed = parseAccountXpub(text.trim());
  if (parsed.kind === 'ok') return parsed.xpub;
  const secret = spotSecret(text);
  if (secret === null)
    throw new AppError('INVALID_ARGUMENT', say`${{ field: 'xpub' }}: ${parsed.reason}; no address was added`);
  const problems = [fieldProblem('xpub', say`: ${{ secret }}`)];
  throw new AppError('INVALID_ARGUMENT', 'no address was added', { problems });
}

/** Each address takes about a millisecond, in a transaction that locks the project. */
const MAX_COUNT = 1000;

/** How many addresses are to be derived. Errors: `INVALID_ARGUMENT`. */
export function readCount(text = ''): number {
  const count = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (count >= 1 && count <= MAX_COUNT) return count;
  throw new FieldError(
    'count',
    `is ${clip(text)}: give a number from 1 to ${MAX_COUNT}; the next call goes on where this one ends`,
  );
}

/** Addresses that one key may yield by itself in all. */
const MAX_AUTO_LIMIT = 10_000;

/** How many a key may yield by itself. Errors: `INVALID_ARGUMENT`. */
export function readAutoLimit(text: string): number {
  const limit = /^\d{1,5}$/.test(text) ? Number(text) : Number.POSITIVE_INFINITY;
  if (limit <= MAX_AUTO_LIMIT) return limit;
  throw new FieldError('autoLimit', `is ${clip(text)}: give a number from 0 (never) to ${MAX_AUTO_LIMIT}`);
}
