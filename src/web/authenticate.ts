import { hash, timingSafeEqual } from 'node:crypto';
import { BlockList, isIP } from 'node:net';
import { readApiKey } from '../domain/api-key.ts';
import type { Network } from '../domain/network.ts';
import type { Policy } from '../domain/policy.ts';
import type { UnixMs } from '../domain/time.ts';

/** A key as the database knows it: valid when it was read. */
export type KnownKey = {
  id: string;
  projectId: string;
  network: Network;
  secretSha256: Uint8Array;
  allowedCidrs: string[] | null;
  expiresAt: UnixMs | null;
  policy: Policy;
  maxSurchargeMicro: bigint;
};

/** Who is calling. */
export type Caller = Pick<KnownKey, 'projectId' | 'network' | 'policy' | 'maxSurchargeMicro'> & { keyId: string };

export type Authenticator = {
  /** The caller, or `null` for every kind of refusal. `header` is the raw X-Api-Key, `ip` the client's address. */
  authenticate(header: string | undefined, ip: string): Promise<Caller | null>;
  /** Forgets a key that turned out to be revoked. */
  forget(keyId: string): void;
  /** The ids of keys used since the last call, for the coarse last-used time. */
  takeUsed(): string[];
};

type Remembered = { key: KnownKey; addresses: BlockList | null; readAt: number };

/**
 * A remembered key spares a round trip. It never decides alone: each statement that creates or reads checks in the database
 * that the key is still valid, so a revoked key is refused at once. This only bounds how long project settings are stale.
 */
const REMEMBER_MS = 10_000;
const MAX_REMEMBERED = 10_000;

export function createAuthenticator(deps: {
  findValidKey(id: string, now: UnixMs): Promise<KnownKey | null>;
  now(): UnixMs;
}): Authenticator {
  const remembered = new Map<string, Remembered>();
  const used = new Set<string>();
  const recall = async (id: string): Promise<Remembered | null> => {
    const found = remembered.get(id);
    const now = deps.now();
    if (found !== undefined && now - found.readAt < REMEMBER_MS) return found;
    remembered.delete(id);
    const key = await deps.findValidKey(id, now);
    if (key === null) return null;
    const fresh = { key, addresses: toBlockList(key.allowedCidrs), readAt: now };
    if (remembered.size >= MAX_REMEMBERED) remembered.clear();
    remembered.set(id, fresh);
    return fresh;
  };
  return {
    authenticate: async (header, ip) => {
      const parsed = header === undefined ? null : readApiKey(header);
      if (header === undefined || parsed === null) return null;
      const known = await recall(parsed.keyUuid);
      if (known === null) return null;
      const { key, addresses } = known;
      const presented = hash('sha256', header, 'buffer');
      if (!timingSafeEqual(presented, key.secretSha256)) return null;
      if (key.expiresAt !== null && key.expiresAt <= deps.now()) return null;
      if (addresses !== null && !addresses.check(ip, isIP(ip) === 6 ? 'ipv6' : 'ipv4')) return null;
      used.add(key.id);
      return {
        keyId: key.id,
        projectId: key.projectId,
        network: key.network,
        policy: key.policy,
        maxSurchargeMicro: key.maxSurchargeMicro,
      };
    },
    forget: (keyId) => {
      remembered.delete(keyId);
    },
    takeUsed: () => {
      const ids = [...used];
      used.clear();
      return ids;
    },
  };
}

/** The addresses a key may be used from; `null` means from everywhere. Entries were validated when the key was made. */
function toBlockList(cidrs: string[] | null): BlockList | null {
  if (cidrs === null) return null;
  const list = new BlockList();
  for (const cidr of cidrs) {
    const [address = '', prefix] = cidr.split('/');
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    list.addSubnet(address, prefix === undefined ? (family === 'ipv6' ? 128 : 32) : Number(prefix), family);
  }
  return list;
}
