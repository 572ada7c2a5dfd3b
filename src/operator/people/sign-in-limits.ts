import { createHash, randomInt } from 'node:crypto';
import { type Derive, deriveByScrypt } from './password.ts';

/** As those of `src/web/token-bucket.ts`. */
type Buckets = {
  take(name: string, nowMs: number): { kind: 'pass' } | { kind: 'limited'; retryAfterSeconds: number };
  giveBack(name: string): void;
};
type CreateBuckets = (perSecond: number, burst: number, maxBuckets: number) => Buckets;

/** What slows sign-ins with a password in one process. */
export type SignInLimits = {
  /** Takes a try of a login from a network. `isKnown`: the person has signed in from there before. */
  take(attempt: Attempt): { kind: 'pass' } | { kind: 'limited'; retryAfterSeconds: number };
  /** Undoes a `take` that passed: whoever signs in has used up nothing. */
  giveBack(attempt: Attempt): void;
  /** Runs scrypt in its turn. Throws `TooBusy` where others wait and this one was let go. */
  derive(isKnown: boolean): Derive;
};

type Attempt = { login: string; network: string; isKnown: boolean; nowMs: number };

/** A login from one network: five tries at once, then one a minute. */
const PAIR = { perSecond: 1 / 60, burst: 5 };
/** All logins from a network of which the person is not known to come: twenty at once, then four a minute. */
const NETWORK = { perSecond: 1 / 15, burst: 20 };
const MAX_BUCKETS = 10_000;

/**
 * The limits of a process. No count belongs to an account alone: a stranger with many networks would use it up, and lock the person out. What
 * bounds the guesses of many networks is that a guess must have the password and the code right at once.
 */
export function createSignInLimits(createBuckets: CreateBuckets, derive: Derive = deriveByScrypt): SignInLimits {
  const pairs = createBuckets(PAIR.perSecond, PAIR.burst, MAX_BUCKETS);
  const networks = createBuckets(NETWORK.perSecond, NETWORK.burst, MAX_BUCKETS);
  const pairOf = ({ login, network }: Attempt) => createHash('sha256').update(`${network}\n${login}`).digest('base64');
  const turns = { known: createSemaphore(), stranger: createSemaphore() };
  return {
    take: (attempt) => {
      const ofPair = pairs.take(pairOf(attempt), attempt.nowMs);
      if (ofPair.kind === 'limited' || attempt.isKnown) return ofPair;
      const ofNetwork = networks.take(attempt.network, attempt.nowMs);
      if (ofNetwork.kind === 'limited') pairs.giveBack(pairOf(attempt));
      return ofNetwork;
    },
    giveBack: (attempt) => {
      pairs.giveBack(pairOf(attempt));
      if (!attempt.isKnown) networks.giveBack(attempt.network);
    },
    derive:
      (isKnown) =>
      (...input) =>
        turns[isKnown ? 'known' : 'stranger'](() => derive(...input)),
  };
}

/** So many wait that this one was let go: it may come again. */
export class TooBusy extends Error {
  override readonly name = 'TooBusy';
  readonly retryAfterSeconds = 5;
}

/** Some seconds of work for one turn after the other. */
const MAX_WAITING = 32;
/** On a busy machine a turn takes seconds. Anyone who has waited this long gets an answer before the connection is cut, after 30 s. */
const MAX_WAIT_MS = 10_000;

/**
 * One at a time, and others wait. Where too many do, any of them is let go, not the newest: a flood that comes first must not keep out
 * whoever comes later.
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
