import type { LookupAddress } from 'node:dns';
import { isIP } from 'node:net';
import { keyMode, type Network } from '../domain/network.ts';
import { type AddressClass, classifyAddress } from './ip-ranges.ts';

/**
 * `local` allows everything that `public` does, plus http, this machine's loopback addresses and all ports. `own` allows everything that
 * `local` does, plus private network addresses; it's for notifications to operators.
 */
export type TargetRule = 'public' | 'local' | 'own';

/**
 * Returns the rule for a project on a network. `localTargets` says whether projects on test networks may reach this machine, and over http.
 */
export function targetRule(network: Network, localTargets: boolean): 'public' | 'local' {
  return localTargets && keyMode(network) === 'test' ? 'local' : 'public';
}

/**
 * `reason` is in plain words, with the scheme, host, and port or addresses. It never contains a path or query, because these may contain a
 * token.
 */
export type TargetCheck = { kind: 'ok' } | { kind: 'refused'; reason: string };

/**
 * Checks a webhook target without resolving its name. The URL parser has already normalised the host: `http://0x7f.1`, `http://2130706433`
 * and `http://①②⑦.1` are all 127.0.0.1. If a name is accepted, `checkAddresses` must still check its addresses at each connection.
 */
export function checkTarget(url: URL, rule: TargetRule): TargetCheck {
  const shown = show(`${url.protocol}//${url.host}`);
  if (rule === 'public' && url.protocol !== 'https:') {
    return refused(`${shown} must start with https://: plain http is not allowed`);
  }
  if (!(url.protocol in DEFAULT_PORTS)) return refused(`${shown} must start with https:// or http://`);
  if (url.username !== '' || url.password !== '') return refused(`${shown} has a user name or password: remove it`);
  const port = Number(url.port === '' ? DEFAULT_PORTS[url.protocol] : url.port);
  if (rule === 'public' && port !== 443 && port < FIRST_UNPRIVILEGED_PORT) {
    return refused(`${shown} has the port ${port}: use 443 or one from ${FIRST_UNPRIVILEGED_PORT} on`);
  }
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  if (isIP(host) !== 0) return checkLiteral(host, rule);
  return checkName(host, rule);
}

/**
 * Checks the addresses that `name` resolved to. If any of them is forbidden, all are refused, because a name with both internal and
 * external addresses is either a mistake or an attack.
 */
export function checkAddresses(name: string, addresses: readonly LookupAddress[], rule: TargetRule): TargetCheck {
  const shown = show(name);
  if (addresses.length === 0) return refused(`${shown} resolves to no address: publish a public address for it`);
  const scopes = new Set<string>();
  for (const { address } of addresses) {
    const { scope, range } = classifyAddress(address);
    if (!isAllowed(scope, rule)) return refused(`${shown} resolves to ${address} (${range}): ${WHERE[rule]}`);
    scopes.add(scope);
  }
  if (scopes.size === 1) return { kind: 'ok' };
  return refused(`${shown} resolves to both public and other addresses: use one kind only`);
}

/** Whether `ip` is a single public unicast address, in a standard spelling without brackets. */
export function isPublicUnicast(ip: string): boolean {
  return classifyAddress(ip).scope === 'public';
}

const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'https:': 443, 'http:': 80 };
/** Lower ports belong to system services (25, 22, 445 …). Of these, only 443 is allowed. */
const FIRST_UNPRIVILEGED_PORT = 1024;

const WHERE: Readonly<Record<TargetRule, string>> = {
  public: 'only public addresses are allowed',
  local: 'only public addresses and loopback addresses on this machine are allowed',
  own: 'only public and private addresses and those of this machine are allowed',
};

const SCOPES: Readonly<Record<TargetRule, readonly AddressClass['scope'][]>> = {
  public: ['public'],
  local: ['public', 'loopback'],
  own: ['public', 'loopback', 'private'],
};

function isAllowed(scope: AddressClass['scope'], rule: TargetRule): boolean {
  return SCOPES[rule].includes(scope);
}

function checkLiteral(ip: string, rule: TargetRule): TargetCheck {
  const { scope, range } = classifyAddress(ip);
  return isAllowed(scope, rule) ? { kind: 'ok' } : refused(`${show(ip)} is not allowed (${range}): ${WHERE[rule]}`);
}

/**
 * Whether a name is allowed depends on its addresses. But a name that can only be local is refused here, so that a caller that registers it
 * gets the error immediately.
 */
function checkName(host: string, rule: TargetRule): TargetCheck {
  const shown = show(host);
  const name = host.replace(/\.$/, '');
  const labels = name.split('.');
  if (name.length > 253 || !labels.every((label) => LABEL.test(label))) {
    return refused(`${shown} is not a host name: use one such as shop.example.com`);
  }
  if (rule !== 'public') return { kind: 'ok' };
  const local = labels.length === 1 || LOCAL_NAMES.test(name);
  return local ? refused(`${shown} is a local network name: ${WHERE.public}`) : { kind: 'ok' };
}

/** Host names have no underscores, but resolvers accept them. */
const LABEL = /^(?!-)[a-z0-9_-]{1,63}(?<!-)$/;
/**
 * Reserved by RFC 6761, 6762, 7686 and 8375; `internal` was reserved by the ICANN board in 2024. Names for documentation simply don't
 * resolve.
 */
const LOCAL_NAMES = /\.(?:localhost|local|internal|home\.arpa|onion)$/;

/**
 * Quotes and shortens a host, which may be hundreds of characters long. All of them are printable ASCII, because the URL parser escapes all
 * others.
 */
function show(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}

function refused(reason: string): TargetCheck {
  return { kind: 'refused', reason };
}
