import { type LookupAddress, lookup as systemLookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import type undici from 'undici';
import { buildConnector } from '../runtime/http-agent.ts';
import { checkAddresses, checkTarget, type TargetCheck, type TargetRule } from './target.ts';

/** `lookup` of node:dns, as far as it is used here. */
export type LookupAll = (
  name: string,
  options: { all: true },
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/**
 * `connect` for an Agent of undici that opens connections to allowed targets only. Addresses as literals are judged here,
 * for undici resolves only names; the addresses of a name are judged when it is connected to, and exactly those are dialled.
 * A refused target fails with an error whose `code` is `TARGET_REFUSED` and whose message is in plain words. Looking up and
 * connecting take `connectTimeoutMs` together. `ca` are certificates (PEM) to trust in place of the well-known ones.
 */
export function createTargetConnector(options: {
  rule: TargetRule;
  connectTimeoutMs: number;
  lookup?: LookupAll;
  ca?: string;
}): undici.buildConnector.connector {
  const { rule, connectTimeoutMs, lookup = systemLookup, ca } = options;
  const connect = buildConnector({
    timeout: connectTimeoutMs,
    lookup: createCheckedLookup({ rule, lookup }),
    autoSelectFamily: true,
    // Even when every address but the last swallows packets, that one is dialled in time.
    autoSelectFamilyAttemptTimeout: Math.ceil(connectTimeoutMs / MAX_ADDRESSES),
    ...(ca === undefined ? {} : { ca }),
  });
  return (target, callback) => {
    const check = checkTarget(new URL(`${target.protocol}//${target.host}`), rule);
    if (check.kind === 'ok') connect(target, callback);
    else queueMicrotask(() => callback(refusal(check), null));
  };
}

/**
 * `lookup` for net.connect that hands on addresses only if all of them are allowed, the first 16 in the order of the
 * resolver.
 */
export function createCheckedLookup({ rule, lookup }: { rule: TargetRule; lookup: LookupAll }): LookupFunction {
  const lookUp = shareLookups(lookup);
  return (name, _options, callback) => {
    lookUp(name).then(
      (addresses) => {
        const check = checkAddresses(name, addresses, rule);
        if (check.kind === 'ok') callback(null, addresses.slice(0, MAX_ADDRESSES));
        else callback(refusal(check), []);
      },
      (error) => callback(error, []),
    );
  };
}

/** Some receivers stand behind a dozen addresses; of more, most would never get their turn. */
const MAX_ADDRESSES = 16;

/**
 * Look-ups of one name at the same time share one. The system looks up in only two threads, and a name whose servers do not answer holds
 * its thread for as long as the resolver tries, even if no attempt waits any more. The dispatcher bounds how many attempts wait.
 */
function shareLookups(lookup: LookupAll): (name: string) => Promise<LookupAddress[]> {
  const running = new Map<string, Promise<LookupAddress[]>>();
  return (name) => {
    const shared = running.get(name);
    if (shared !== undefined) return shared;
    const started = new Promise<LookupAddress[]>((resolve, reject) => {
      lookup(name, { all: true }, (error, addresses) => (error === null ? resolve(addresses) : reject(error)));
    }).finally(() => running.delete(name));
    running.set(name, started);
    return started;
  };
}

function refusal(check: Extract<TargetCheck, { kind: 'refused' }>): Error & { code: string } {
  return Object.assign(new Error(check.reason), { code: 'TARGET_REFUSED' });
}
