import type { Network } from '../domain/network.ts';
import { type RateSource, type ReadRate, readRate } from '../domain/rate.ts';
import type { UnixMs } from '../domain/time.ts';
import type { WebhookSender } from './send.ts';
import { targetRule } from './target.ts';

export type AskDeps = {
  sender: WebhookSender;
  /** Whether projects on test networks may send requests to this machine, and over http. */
  localTargets: boolean;
  now(): UnixMs;
};

export type AskedRate = ReadRate & { retryAfterMs: number | null };

/**
 * Queries a rate source once, under the same rules as webhooks: public addresses over `https`, no redirects, 8 KiB, 15 s. Returns `null` if
 * Quittance stopped the request.
 */
export async function askRate(
  { sender, localTargets, now }: AskDeps,
  network: Network,
  source: RateSource,
): Promise<AskedRate | null> {
  // The time of the request is used, because the rate is at least that old.
  const askedAt = now();
  const { url } = source;
  const rule = targetRule(network, localTargets);
  const headers = { accept: 'application/json' };
  const result = await sender.send({ url, rule, headers, method: 'GET', body: new Uint8Array(), nowMs: askedAt });
  if (result.kind === 'aborted') return null;
  if (result.kind === 'failed') return { kind: 'refused', reason: result.error, retryAfterMs: result.retryAfterMs };
  return { ...readRate(decode(result.answer), source, askedAt), retryAfterMs: null };
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Decodes the response. Invalid UTF-8 becomes an empty text, which isn't JSON. */
function decode(answer: Uint8Array): string {
  try {
    return utf8.decode(answer);
  } catch {
    return '';
  }
}
