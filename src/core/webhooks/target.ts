import { type LookupAddress, lookup as systemLookup } from 'node:dns';
import { isIP, isIPv4, isIPv6, type LookupFunction } from 'node:net';
import type undici from 'undici';
import { keyMode, type Network } from '../domain/network.ts';
import { buildConnector } from '../runtime/http-agent.ts';

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
type TargetCheck = { kind: 'ok' } | { kind: 'refused'; reason: string };

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

/**
 * Where the network sends a packet to an address. `range` describes the block and its use in messages. It's `null` for public addresses.
 */
type AddressClass = { scope: 'public'; range: null } | { scope: 'loopback' | 'private' | 'other'; range: string };

/**
 * Classifies an IP address given as text, without brackets. An address is public if it's neither in the IANA special-purpose address
 * registries (iana-ipv4-special-registry, iana-ipv6-special-registry) nor multicast. An IPv6 address must also be within 2000::/3. Blocks
 * that are reachable but contain no receivers, such as relays and sinks, aren't public either. Anything except a single address in its
 * standard spelling is `other`, such as an address with a zone id, or `0177.0.0.1`.
 */
export function classifyAddress(ip: string): AddressClass {
  if (isIPv4(ip)) return classifyV4(readV4(ip));
  // isIPv6 accepts fe80::1%eth0.
  if (isIPv6(ip) && !ip.includes('%')) return classifyV6(readV6(ip));
  return { scope: 'other', range: 'not an address in a standard notation' };
}

function classifyV4(value: bigint): AddressClass {
  return classifyBy(V4_BLOCKS, value) ?? PUBLIC;
}

function classifyV6(value: bigint): AddressClass {
  // The operating system sends packets for these addresses over IPv4.
  if (contains(V4_MAPPED, value)) return classifyV4(value & V4_MASK);
  if (contains(NAT64, value)) {
    // On an IPv6-only network, every IPv4 receiver is reached this way. A loopback address behind a translator doesn't mean this machine.
    const { scope, range } = classifyV4(value & V4_MASK);
    return scope === 'public' ? PUBLIC : { scope: 'other', range: `${range}, behind ${NAT64.text}, ${NAT64.use}` };
  }
  const special = classifyBy(V6_BLOCKS, value);
  if (special !== null) return special;
  return contains(GLOBAL_UNICAST, value) ? PUBLIC : { scope: 'other', range: `outside of ${GLOBAL_UNICAST.text}` };
}

function classifyBy(blocks: readonly Block[], value: bigint): AddressClass | null {
  const block = blocks.find((candidate) => contains(candidate, value));
  if (block === undefined) return null;
  return { scope: SCOPE_OF_USE.get(block.use) ?? 'other', range: `${block.text}, ${block.use}` };
}

type Block = { text: string; use: string; shift: bigint; prefix: bigint };

function contains({ shift, prefix }: Block, value: bigint): boolean {
  return value >> shift === prefix;
}

function block(text: string, use: string): Block {
  const [ip = '', length = ''] = text.split('/');
  const v4 = isIPv4(ip);
  const shift = BigInt((v4 ? 32 : 128) - Number(length));
  return { text, use, shift, prefix: (v4 ? readV4(ip) : readV6(ip)) >> shift };
}

function readV4(ip: string): bigint {
  return ip.split('.').reduce((value, byte) => (value << 8n) | BigInt(byte), 0n);
}

/** Parses any text that isIPv6 accepts: at most one `::`, and dotted IPv4 only at the end. */
function readV6(ip: string): bigint {
  const hex = ip.replace(/[0-9.]+$/, (tail) => (tail.includes('.') ? inGroups(readV4(tail)) : tail));
  const [head = [], tail = []] = hex.split('::').map((side) => side.split(':').filter((group) => group !== ''));
  const groups = [...head, ...new Array<string>(8 - head.length - tail.length).fill('0'), ...tail];
  return groups.reduce((value, group) => (value << 16n) | BigInt(`0x${group}`), 0n);
}

function inGroups(v4: bigint): string {
  return `${(v4 >> 16n).toString(16)}:${(v4 & 0xffffn).toString(16)}`;
}

const V4_MASK = 0xffff_ffffn;
const PUBLIC: AddressClass = { scope: 'public', range: null };
const LOOPBACK = 'loopback';
const PRIVATE = 'private';
/** Some overlay networks on the Internet use the carriers' shared address range. */
const CARRIERS = 'shared by carriers';
const SCOPE_OF_USE: ReadonlyMap<string, 'loopback' | 'private'> = new Map([
  [LOOPBACK, 'loopback'],
  [PRIVATE, 'private'],
  [CARRIERS, 'private'],
]);
const V4_MAPPED = block('::ffff:0:0/96', 'IPv4-mapped');
/** See RFC 6052. */
const NAT64 = block('64:ff9b::/96', 'NAT64');
const GLOBAL_UNICAST = block('2000::/3', 'global unicast');

/** An address's description comes from the first block that contains it. */
const V4_BLOCKS: readonly Block[] = [
  block('169.254.169.254/32', 'cloud metadata'),
  block('100.100.100.200/32', 'cloud metadata'),
  block('192.0.0.192/32', 'cloud metadata'),
  // This address is in a public block, but requests to it are served by the machine's own host.
  block('168.63.129.16/32', 'Azure platform'),
  block('0.0.0.0/8', 'this network'),
  block('10.0.0.0/8', PRIVATE),
  block('100.64.0.0/10', CARRIERS),
  block('127.0.0.0/8', LOOPBACK),
  block('169.254.0.0/16', 'link-local'),
  block('172.16.0.0/12', PRIVATE),
  block('192.0.0.0/24', 'protocol assignments'),
  block('192.0.2.0/24', 'documentation'),
  block('192.31.196.0/24', 'AS112 sink'),
  block('192.52.193.0/24', 'multicast relay'),
  block('192.88.99.0/24', '6to4 relay'),
  block('192.168.0.0/16', PRIVATE),
  block('192.175.48.0/24', 'AS112 sink'),
  block('198.18.0.0/15', 'benchmarking'),
  block('198.51.100.0/24', 'documentation'),
  block('203.0.113.0/24', 'documentation'),
  block('224.0.0.0/4', 'multicast'),
  block('240.0.0.0/4', 'reserved'),
];

const V6_BLOCKS: readonly Block[] = [
  block('fd00:ec2::254/128', 'cloud metadata'),
  block('::/128', 'unspecified'),
  block('::1/128', LOOPBACK),
  block('::/96', 'IPv4-compatible'),
  block('64:ff9b:1::/48', 'NAT64 of a local network'),
  block('100::/64', 'discard'),
  block('2001::/32', 'Teredo'),
  block('2001::/23', 'protocol assignments'),
  block('2001:db8::/32', 'documentation'),
  block('2002::/16', '6to4'),
  block('2620:4f:8000::/48', 'AS112 sink'),
  block('3fff::/20', 'documentation'),
  block('5f00::/16', 'segment routing'),
  block('fc00::/7', PRIVATE),
  block('fe80::/10', 'link-local'),
  block('fec0::/10', 'site-local'),
  block('ff00::/8', 'multicast'),
];

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
