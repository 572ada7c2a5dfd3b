import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';

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
