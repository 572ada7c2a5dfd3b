import type { FastifyRequest } from 'fastify';
import { decodeId } from '../../core/domain/ids.ts';
import type { MicroUsdt } from '../../core/domain/money.ts';
import type { Network } from '../../core/domain/network.ts';
import type { OrderDeps } from '../../core/payments/create-invoice.ts';
import type { LimitReached } from '../../core/payments/unpaid-gate.ts';
import type { KeyRing } from '../../core/runtime/key-ring.ts';
import type { Logger } from '../../core/runtime/log.ts';
import { findValidApiKey } from '../../core/store/access/api-keys.ts';
import { type Adapter, type AdapterKind, findAdapter } from '../../core/store/outbox/adapter-orders.ts';
import { findActiveSecrets } from '../../core/store/outbox/webhook-secrets.ts';
import { adapterSecret } from '../../core/webhooks/adapter-dialect.ts';
import { openEndpointSecrets } from '../../core/webhooks/endpoint-secrets.ts';
import { noteCaller } from '../web/bound-connections.ts';
import { clientOf } from '../web/client-address.ts';
import { type Problem, retryLater } from '../web/problem.ts';
import { type RateLimit, refuseLimited, type TokenBuckets } from '../web/rate-limit.ts';
import { notHere } from './refusal.ts';

type Concerned = { projectId: string; network: Network };

export type AdapterDeps = OrderDeps & {
  publicUrl(): string;
  /** Decrypts the adapters' secrets. Without a key ring, no adapter accepts orders. */
  keyRing: KeyRing | null;
  log: Logger;
  /** Whether callbacks for projects on test networks may be sent to this machine, and over http. */
  localTargets: boolean;
  /** One bucket per client network. Each rejected request uses a token. */
  failureBuckets: TokenBuckets;
  /** One bucket per adapter. */
  keyBuckets: TokenBuckets;
  rateLimit: RateLimit;
  onAmountRefused(refusal: Concerned & { requestedMicro: MicroUsdt }): Promise<void>;
  onUnpaidRefused(refusal: Concerned & LimitReached): Promise<void>;
};

/**
 * The limit on rejected requests per client network. A shop's server may send many orders at the same time, and each of them holds a token
 * until its signature is verified.
 */
export const ADAPTER_FAILURES: RateLimit = { perSecond: 20, burst: 200 };

/** An adapter whose signature check a request has passed, with its project's rule and its secret. */
export type Admitted = {
  adapter: Adapter;
  rule: NonNullable<Awaited<ReturnType<typeof findValidApiKey>>>;
  secret: string;
};

const KIND = Symbol('kind of adapter');
type KnownRequest = FastifyRequest & { [KIND]?: AdapterKind };

/** The kind of adapter in the request path, once it's been found. */
export const kindOf = (request: KnownRequest): AdapterKind | undefined => request[KIND];

/**
 * Finds the adapter in the request path and verifies the request with the adapter's secret. A rejected request uses one of the client
 * network's tokens, as a wrong API key does. An accepted request uses one of the adapter's tokens.
 */
export async function admit(
  deps: AdapterDeps,
  request: FastifyRequest,
  kinds: readonly AdapterKind[],
  isGenuine: (secret: string) => boolean,
): Promise<Admitted> {
  const { failureBuckets, keyBuckets, now } = deps;
  const { network } = clientOf(request);
  refuseLimited(failureBuckets.take(network, now()), ADAPTER_FAILURES);
  const found = await findOpened(deps, request, kinds).catch((error: unknown) => {
    // If the database doesn't respond, it's not the client's fault.
    failureBuckets.giveBack(network);
    throw error;
  });
  if (found === null || !isGenuine(found.secret)) throw notHere();
  failureBuckets.giveBack(network);
  noteCaller(request.raw.socket);
  refuseLimited(keyBuckets.take(found.adapter.id, now()), deps.rateLimit);
  return found;
}

/** Returns the enabled adapter whose id is in the path, if it's one of these kinds. */
export async function findEnabled({ db, now }: AdapterDeps, request: KnownRequest, kinds: readonly AdapterKind[]) {
  const { adapterId = '' } = request.params as { adapterId?: string };
  const id = decodeId('whe', adapterId);
  const rule = id === null ? null : await findValidApiKey(db, id, now());
  const adapter = rule === null ? null : await findAdapter(db, rule.id);
  if (rule === null || adapter === null || adapter.projectId !== rule.projectId) return null;
  if (!kinds.includes(adapter.adapter)) return null;
  request[KIND] = adapter.adapter;
  return { adapter, rule };
}

async function findOpened(deps: AdapterDeps, request: FastifyRequest, kinds: readonly AdapterKind[]) {
  const { db, keyRing, now } = deps;
  const found = await findEnabled(deps, request, kinds);
  if (found === null) return null;
  if (keyRing === null) throw unopened('this process has no master key: set QUITTANCE_MASTER_KEY');
  const rows = await findActiveSecrets(db, [found.adapter.id], now());
  const [opened] = await openEndpointSecrets(keyRing, rows.slice(0, 1));
  if (opened?.kind !== 'ok') throw unopened('its secret cannot be decrypted with the master keys of this process');
  return { ...found, secret: adapterSecret(opened.secret) };
}

function unopened(reason: string): Problem {
  return retryLater('UNAVAILABLE', `The adapter accepts no orders: ${reason}.`, 60);
}
