import { expect, test } from 'vitest';
import { say } from '../../../core/domain/message.ts';
import { unixMs } from '../../../core/domain/time.ts';
import { detectSecret, fieldProblem } from '../input/problems.ts';
import { findDerivationKey } from './address-derivation.ts';

/** One key in 2,000 has twelve consecutive runs of three to nine letters. */
const LIKE_WORDS =
  'xpub6BzGvmteYQGmYtMv5XRMR5k5RrNxGw6Nkm98Siu9NKi41mznWrwkQ7smPF3ayFEis4bWvUgMAkB2QYD5xLqYrmbx5Adjy9mfrhMkqkd8dEK';

const readXpub = (xpub: string) => findDerivationKey.read({ xpub }, unixMs(0)).xpub;

test('an account key that looks like a seed phrase by chance is taken', () => {
  expect(detectSecret(LIKE_WORDS)).toBe('a seed phrase');
  expect(readXpub(` ${LIKE_WORDS}\n`)).toBe(LIKE_WORDS);
});

test('what is no account key and looks like a secret is not repeated', () => {
  const wrong = `${LIKE_WORDS.slice(0, -1)}L`;
  const problems = [fieldProblem('xpub', say`: ${{ secret: 'a seed phrase' }}`)];
  expect(() => readXpub(wrong)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT', problems }));
});
