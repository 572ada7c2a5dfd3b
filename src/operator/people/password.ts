import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
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
  return isCommon(password.normalize('NFKC').toLowerCase(), login) ? 'is too common: choose another one' : null;
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

/**
 * 32 MiB and three passes: one of the settings of scrypt that OWASP's Password Storage Cheat Sheet calls equal (N=2^15, r=8, p=3). Those with
 * more memory and fewer passes would let a few sign-ins at once take what a small machine has.
 */
const COST = { logN: 15, r: 8, p: 3 };
const KEY_BYTES = 32;
const SALT_BYTES = 16;

const asyncScrypt = promisify(scrypt) as (
  text: string,
  salt: Buffer,
  bytes: number,
  o: ScryptOptions,
) => Promise<Buffer>;

/** Derives a key of 32 bytes from a password, as `scrypt` does. */
export type Derive = (password: string, salt: Buffer, cost: typeof COST) => Promise<Buffer>;

export const deriveByScrypt: Derive = (password, salt, { logN, r, p }) =>
  asyncScrypt(password, salt, KEY_BYTES, { N: 2 ** logN, r, p, maxmem: 2 * 128 * 2 ** logN * r });

/** Hashes a password for the database: `scrypt$15$8$3$<salt>$<hash>`, the last two in base64. */
export async function hashPassword(password: string, derive: Derive = deriveByScrypt): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  return format(salt, await derive(normalized(password), salt, COST));
}

/** Whether a password is the one of a hash. Takes the same where there is none, and is `false` then. */
export async function isPassword(password: string, stored: string | null, derive: Derive): Promise<boolean> {
  const { salt, hash, cost } = parse(stored ?? NOBODYS);
  const derived = await derive(normalized(password), salt, cost);
  return timingSafeEqual(derived, hash) && stored !== null;
}

/** Keyboards write the same letter in several ways. */
function normalized(password: string): string {
  return password.normalize('NFKC');
}

function format(salt: Buffer, hash: Buffer): string {
  const { logN, r, p } = COST;
  return ['scrypt', logN, r, p, salt.toString('base64'), hash.toString('base64')].join('$');
}

function parse(stored: string) {
  const [, logN, r, p, salt = '', hash = ''] = stored.split('$');
  const cost = { logN: Number(logN), r: Number(r), p: Number(p) };
  return { cost, salt: Buffer.from(salt, 'base64'), hash: Buffer.from(hash, 'base64') };
}

/** What the password of an unknown person is compared with. */
const NOBODYS = format(randomBytes(SALT_BYTES), randomBytes(KEY_BYTES));
