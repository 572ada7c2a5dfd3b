import { type LookupAddress, lookup as systemLookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import type undici from 'undici';
import { buildConnector } from '../runtime/http-agent.ts';
import { checkAddresses, checkTarget, type TargetCheck, type TargetRule } from './target.ts';

/** The part of node:dns's `lookup` that is used here. */
export type LookupAll = (
  name: string,
  options: { all: true },
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/**
 * Creates `connect` for an undici Agent that connects only to allowed targets. Literal addresses are checked here, because undici resolves
 * only names. A name's addresses are checked when connecting, and exactly these addresses are used. A refused target fails with an error
 * whose `code` is `TARGET_REFUSED` and whose message is in plain words. The look-up and the connection together may take
 * `connectTimeoutMs`. `ca` contains the certificates (PEM) to trust instead of the well-known ones.
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
    // With this timeout, the last address is tried in time even if all others drop packets.
    autoSelectFamilyAttemptTimeout: Math.ceil(connectTimeoutMs / MAX_ADDRESSES),
    ...(ca === undefined ? {} : { ca }),
  });
  return (target, callback) => {
    const check = checkTarget(new URL(`${target.protocol}//${target.host}`), rule);
    if (check.kind === 'ok') connect(target, callback);
    else queueMicrotask(() => callback(refusal(check), null));
  };
}

/** Creates `lookup` for net.connect. It returns the first 16 addresses in the resolver's order, but only if all addresses are allowed. */
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

/** Some receivers have a dozen addresses. If there were more, most would never be tried. */
const MAX_ADDRESSES = 16;

/**
 * Lets concurrent look-ups of the same name share one request, because the system has only two threads for them. If a name's servers don't
 * respond, the name blocks its thread for as long as the resolver keeps trying, even if no attempt is waiting any more. The dispatcher
 * limits how many attempts are waiting.
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
