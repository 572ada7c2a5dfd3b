import { createHash, randomBytes, randomInt, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import common from './common-passwords.json' with { type: 'json' };

const MIN_CHARACTERS = 12;
/** Limits the work, because every submitted password gets hashed. */
export const MAX_PASSWORD_BYTES = 1024;

const WHOLE: ReadonlySet<string> = new Set(common.whole.toLowerCase().split(' '));
const WORDS: ReadonlySet<string> = new Set([...common.words.split(' '), 'quittance', 'usdt', 'tron']);
/** The minimum number of different characters. A password with fewer different characters is easy to read over someone's shoulder. */
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

/**
 * Returns why a password is unsafe, or `null` if it's safe. It must have at most 1,024 bytes of UTF-8 and must not be guessable from
 * `login`.
 */
export function passwordProblem(password: string, login: string): string | null {
  const length = [...password].length;
  if (length < MIN_CHARACTERS) return `has ${length} characters: use ${MIN_CHARACTERS} or more, for example four words`;
  if (Buffer.byteLength(password) > MAX_PASSWORD_BYTES) return `is longer than ${MAX_PASSWORD_BYTES} bytes`;
  return isCommon(password.normalize('NFKC').toLowerCase(), login) ? 'is too common: choose another password' : null;
}

function isCommon(password: string, login: string): boolean {
  if (WHOLE.has(password) || new Set(password).size < MIN_DIFFERENT) return true;
  if (RUNS.some((run) => run.includes(password))) return true;
  // A common word with a year, a "!" or a copy of itself appended is still common.
  const letters = unitOf(password.replaceAll(/[^\p{L}]/gu, ''));
  const own = login.split('@')[0]?.replaceAll(/[^a-z]/g, '');
  return (
    WORDS.has(letters) ||
    (letters !== '' && letters === own) ||
    RUNS.some((run) => letters.length > 3 && run.includes(letters))
  );
}

/** Reduces a repetition to the part that is repeated: `dragondragon` to `dragon`. */
function unitOf(text: string): string {
  for (let size = 1; size <= text.length / 2; size += 1) {
    if (text.length % size === 0 && text.slice(0, size).repeat(text.length / size) === text) return text.slice(0, size);
  }
  return text;
}

/**
 * 32 MiB and three passes: one of the scrypt settings that OWASP's Password Storage Cheat Sheet considers equivalent (N=2^15, r=8, p=3).
 * With the settings that need more memory and fewer passes, a few simultaneous sign-ins would exhaust a small machine.
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

/**
 * Whether a password matches a hash. Without a hash it returns `false` after the same time so that timing doesn't reveal which logins
 * exist.
 */
export async function isPassword(password: string, stored: string | null, derive: Derive): Promise<boolean> {
  const { salt, hash, cost } = parse(stored ?? NOBODYS);
  const derived = await derive(normalized(password), salt, cost);
  return timingSafeEqual(derived, hash) && stored !== null;
}

/** Different keyboards can encode the same letter differently. */
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

/** The hash that an unknown person's password is compared with. */
const NOBODYS = format(randomBytes(SALT_BYTES), randomBytes(KEY_BYTES));

/** The interface of the token buckets in `src/faces/web/rate-limit.ts`. */
type Buckets = {
  take(name: string, nowMs: number): { kind: 'pass' } | { kind: 'limited'; retryAfterSeconds: number };
  giveBack(name: string): void;
};

export type SignInLimits = ReturnType<typeof createSignInLimits>;

/** An attempt to sign in. `isKnown` means that the person has signed in from that network before. */
type Attempt = { login: string; network: string; isKnown: boolean; nowMs: number };

/** The limit for one login from one network: five attempts in a row, then one a minute. */
const PAIR = { perSecond: 1 / 60, burst: 5 };
/** The limit for all logins from a network that isn't known for the person: twenty attempts in a row, then four a minute. */
const NETWORK = { perSecond: 1 / 15, burst: 20 };

/**
 * Creates a process's sign-in limits. No limit applies to an account as a whole, because a stranger with many networks could use it up and
 * lock the person out. Guesses from many networks are still unlikely to succeed, because both the password and the code have to be right at
 * the same time.
 */
export function createSignInLimits(createBuckets: (limit: typeof PAIR) => Buckets, derive: Derive = deriveByScrypt) {
  const pairs = createBuckets(PAIR);
  const networks = createBuckets(NETWORK);
  const pairOf = ({ login, network }: Attempt) => createHash('sha256').update(`${network}\n${login}`).digest('base64');
  const turns = { known: createSemaphore(), stranger: createSemaphore() };
  return {
    /** Uses up one attempt to sign in with a login from a network. */
    take: (attempt: Attempt) => {
      const ofPair = pairs.take(pairOf(attempt), attempt.nowMs);
      if (ofPair.kind === 'limited' || attempt.isKnown) return ofPair;
      const ofNetwork = networks.take(attempt.network, attempt.nowMs);
      if (ofNetwork.kind === 'limited') pairs.giveBack(pairOf(attempt));
      return ofNetwork;
    },
    /** Gives back an attempt that succeeded, because a successful sign-in shouldn't count. */
    giveBack: (attempt: Attempt) => {
      pairs.giveBack(pairOf(attempt));
      if (!attempt.isKnown) networks.giveBack(attempt.network);
    },
    /** Derives a key with scrypt when its turn comes. Throws `TooBusy` if too many derivations were waiting and this one was dropped. */
    derive:
      (isKnown: boolean): Derive =>
      (...input) =>
        turns[isKnown ? 'known' : 'stranger'](() => derive(...input)),
  };
}

/** Thrown if too many derivations were waiting and this one was dropped. The client may try again. */
export class TooBusy extends Error {
  override readonly name = 'TooBusy';
  readonly retryAfterSeconds = 5;
}

/** The maximum number of waiting derivations, which together take a few seconds. */
const MAX_WAITING = 32;
/**
 * On a busy machine, a turn takes seconds. A client that has waited this long gets a response before its connection is closed after 30 s.
 */
const MAX_WAIT_MS = 10_000;

/**
 * Creates a semaphore that runs one task at a time. If too many are waiting, it drops a random one instead of the newest, so that a flood
 * that arrives first can't keep out later requests.
 */
function createSemaphore() {
  const waiting: { start(): void; drop(): void }[] = [];
  let isBusy = false;
  const next = () => {
    const first = waiting.shift();
    isBusy = first !== undefined;
    first?.start();
  };
  return async <Output>(work: () => Promise<Output>): Promise<Output> => {
    if (isBusy) {
      await new Promise<void>((resolve, reject) => {
        const drop = () => {
          clearTimeout(timer);
          reject(new TooBusy('too many people are signing in at the same time'));
        };
        const start = () => {
          clearTimeout(timer);
          resolve();
        };
        const entry = { start, drop };
        const timer = setTimeout(() => {
          waiting.splice(waiting.indexOf(entry), 1);
          drop();
        }, MAX_WAIT_MS);
        waiting.push(entry);
        if (waiting.length > MAX_WAITING) waiting.splice(randomInt(waiting.length), 1)[0]?.drop();
      });
    }
    isBusy = true;
    return work().finally(next);
  };
}
