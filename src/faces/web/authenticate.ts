import { hash, timingSafeEqual } from 'node:crypto';
import { readApiKey, type Scope, scopesOf } from '../../core/domain/api-key.ts';
import type { Network } from '../../core/domain/network.ts';
import type { Policy } from '../../core/domain/policy.ts';
import { isRecent, type UnixMs } from '../../core/domain/time.ts';
import { keepNewest } from '../../core/runtime/keep-newest.ts';
import { type Client, createAddressList } from './client-address.ts';
import type { TokenBuckets, Verdict } from './rate-limit.ts';

/** A key as it was read from the database, at a time when it was valid. */
export type KnownKey = {
  id: string;
  projectId: string;
  network: Network;
  secretSha256: Uint8Array;
  allowedCidrs: string[] | null;
  expiresAt: UnixMs | null;
  scopes: readonly string[] | null;
  policy: Policy;
  maxSurchargeMicro: bigint;
  invoiceLifetimeMs: number;
  /** The project's sites that payers may be sent to. */
  returnOrigins: readonly string[];
};

type Rule = 'projectId' | 'network' | 'policy' | 'maxSurchargeMicro' | 'invoiceLifetimeMs' | 'returnOrigins';
export type Caller = Pick<KnownKey, Rule> & { keyId: string; scopes: readonly Scope[] };

/** `limited`: too many wrong keys came from this network, so this key wasn't checked. */
type Authentication = { kind: 'caller'; caller: Caller } | { kind: 'refused' } | Exclude<Verdict, { kind: 'pass' }>;

export type Authenticator = ReturnType<typeof createAuthenticator>;

type Remembered = { key: KnownKey; isAllowedFrom: ((ip: string) => boolean) | null; readAt: number };

/**
 * A cached key saves a round trip, but it never decides on its own: each statement that creates or reads data checks the key in the
 * database, so a revoked key is refused immediately. This lifetime only limits for how long project settings can be out of date.
 */
const FRESH_MS = 10_000;
/** For this long, an unknown id isn't queried again. A key is issued only after its id has been stored. */
const ABSENT_MS = 10_000;
export const MAX_REMEMBERED = 10_000;

type AuthenticatorDeps = {
  findValidKey(id: string, now: UnixMs): Promise<KnownKey | null>;
  /** One bucket per client network. */
  failureBuckets: TokenBuckets;
  now(): UnixMs;
};

/**
 * Finds a request's caller. A key that was valid before is read again without using a token. Any other key uses a token of the client
 * network's bucket, which is returned if the key is valid. So the bucket limits the database load that wrong keys cause.
 */
export function createAuthenticator(deps: AuthenticatorDeps) {
  const { failureBuckets, now } = deps;
  const memory = createKeyMemory(deps);
  const used = new Set<string>();
  const recognize = (id: string, digest: Uint8Array, { ip }: Client): KnownKey | null => {
    const found = memory.find(id);
    return found !== undefined && isGood(found, digest, ip, now()) ? found.key : null;
  };
  const refuse = ({ network }: Client): Authentication => {
    const verdict = failureBuckets.take(network, now());
    return verdict.kind === 'pass' ? { kind: 'refused' } : verdict;
  };
  return {
    /** Finds the caller. `header` is the raw X-Api-Key. */
    authenticate: async (header: string | undefined, client: Client): Promise<Authentication> => {
      const id = header === undefined ? undefined : readApiKey(header)?.keyUuid;
      if (header === undefined || id === undefined) return refuse(client);
      const digest = hash('sha256', header, 'buffer');
      const recalled = memory.recall(id);
      // A request for a key that is already being read costs nothing more.
      const isPaid = recalled === undefined && !memory.isReading(id) && recognize(id, digest, client) === null;
      if (isPaid) {
        const verdict = failureBuckets.take(client.network, now());
        if (verdict.kind === 'limited') return verdict;
      }
      let isWrong = false;
      try {
        const found = recalled === undefined ? await memory.read(id) : recalled;
        isWrong = found === null || !isGood(found, digest, client.ip, now());
        if (found === null || isWrong) return isPaid ? { kind: 'refused' } : refuse(client);
        used.add(id);
        const { projectId, network, policy, maxSurchargeMicro, invoiceLifetimeMs, returnOrigins } = found.key;
        const rule = { projectId, network, policy, maxSurchargeMicro, invoiceLifetimeMs, returnOrigins };
        return { kind: 'caller', caller: { keyId: id, scopes: scopesOf(found.key.scopes), ...rule } };
      } finally {
        // The token is also returned if the database doesn't respond, because that says nothing about the key.
        if (isPaid && !isWrong) failureBuckets.giveBack(client.network);
      }
    },
    /**
     * Returns a key that was valid when it was last read and that may be used from the client's address. A stolen key that may not be used
     * from there therefore can't use up the owner's slots. Reads only memory, so it may miss a recent revocation.
     */
    recognize: (header: string, client: Client): Pick<KnownKey, 'id' | 'projectId'> | null => {
      const id = readApiKey(header)?.keyUuid;
      return id === undefined ? null : recognize(id, hash('sha256', header, 'buffer'), client);
    },
    /** Learns valid keys, newest first, so that their callers count as known before their first request. */
    learn: memory.learn,
    /** Forgets a key that turned out to be revoked. */
    forget: memory.forget,
    /** Returns the ids of the keys used since the last call, so that their last use can be recorded approximately. */
    takeUsed: () => {
      const ids = [...used];
      used.clear();
      return ids;
    },
  };
}

/** Caches the keys that were read, and the ids that don't exist. */
function createKeyMemory({ findValidKey, now }: Pick<AuthenticatorDeps, 'findValidKey' | 'now'>) {
  const remembered = new Map<string, Remembered>();
  const absent = new Map<string, number>();
  const reading = new Map<string, Promise<Remembered | null>>();
  const remember = (key: KnownKey, readAt: number): Remembered => {
    const { allowedCidrs } = key;
    const entry = { key, isAllowedFrom: allowedCidrs && createAddressList(allowedCidrs), readAt };
    keepNewest(remembered, key.id, entry, MAX_REMEMBERED);
    return entry;
  };
  const read = async (id: string): Promise<Remembered | null> => {
    const readAt = now();
    const key = await findValidKey(id, readAt);
    if (key !== null) return remember(key, readAt);
    remembered.delete(id);
    keepNewest(absent, id, readAt, MAX_REMEMBERED);
    return null;
  };
  return {
    find: (id: string) => remembered.get(id),
    isReading: (id: string) => reading.has(id),
    /** Runs at most one query per id at a time. */
    read: (id: string) => {
      const found = reading.get(id) ?? read(id).finally(() => reading.delete(id));
      reading.set(id, found);
      return found;
    },
    /** Returns the cached result, or `undefined` if nothing is cached. */
    recall: (id: string): Remembered | null | undefined => {
      const found = remembered.get(id);
      if (found !== undefined && isRecent(found.readAt, now(), FRESH_MS)) return found;
      const absentAt = absent.get(id);
      return absentAt !== undefined && isRecent(absentAt, now(), ABSENT_MS) ? null : undefined;
    },
    learn: (keys: readonly KnownKey[]) => {
      for (const key of keys.toReversed()) if (!remembered.has(key.id)) remember(key, Number.NEGATIVE_INFINITY);
    },
    forget: (keyId: string) => {
      remembered.delete(keyId);
    },
  };
}

function isGood({ key, isAllowedFrom }: Remembered, digest: Uint8Array, ip: string, now: UnixMs): boolean {
  if (!timingSafeEqual(digest, key.secretSha256)) return false;
  if (key.expiresAt !== null && key.expiresAt <= now) return false;
  return isAllowedFrom === null || isAllowedFrom(ip);
}
