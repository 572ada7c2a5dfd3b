import common from './common-passwords.json' with { type: 'json' };

const MIN_CHARACTERS = 12;
/** A password is hashed, however long; this bounds the work. */
export const MAX_PASSWORD_BYTES = 1024;

const WHOLE: ReadonlySet<string> = new Set(common.whole.toLowerCase().split(' '));
const WORDS: ReadonlySet<string> = new Set([...common.words.split(' '), 'quittance', 'usdt', 'tron']);
/** Fewer than this can be seen over a shoulder. */
const MIN_DIFFERENT = 5;
const ROWS = [
  '0123456789',
  'abcdefghijklmnopqrstuvwxyz',
  'qwertyuiop',
  'asdfghjkl',
  'zxcvbnm',
  'qwertzuiop',
  'yxcvbnm',
];
const RUNS = ROWS.flatMap((row) => [row, [...row].reverse().join('')]).map((row) => row.repeat(4));

/** Says why nobody should have this password, or `null`. `login` is not to be found out by it. Bound: 1,024 bytes of UTF-8. */
export function passwordProblem(password: string, login: string): string | null {
  const length = [...password].length;
  if (length < MIN_CHARACTERS) return `has ${length} characters: give it ${MIN_CHARACTERS} or more, such as four words`;
  if (Buffer.byteLength(password) > MAX_PASSWORD_BYTES) return `is longer than ${MAX_PASSWORD_BYTES} bytes`;
  return isCommon(password.normalize('NFKC').toLowerCase(), login) ? 'is one that is tried first: take another' : null;
}

function isCommon(password: string, login: string): boolean {
  if (WHOLE.has(password) || new Set(password).size < MIN_DIFFERENT) return true;
  if (RUNS.some((run) => run.includes(password))) return true;
  // A common word stays one with a year, a "!" or itself behind it.
  const letters = unitOf(password.replaceAll(/[^\p{L}]/gu, ''));
  const own = login.split('@')[0]?.replaceAll(/[^a-z]/g, '');
  return (
    WORDS.has(letters) ||
    (letters !== '' && letters === own) ||
    RUNS.some((run) => letters.length > 3 && run.includes(letters))
  );
}

/** `dragondragon` is `dragon`. */
function unitOf(text: string): string {
  for (let size = 1; size <= text.length / 2; size += 1) {
    if (text.length % size === 0 && text.slice(0, size).repeat(text.length / size) === text) return text.slice(0, size);
  }
  return text;
}
