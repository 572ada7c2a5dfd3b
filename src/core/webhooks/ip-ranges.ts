import { isIPv4, isIPv6 } from 'node:net';

/**
 * Where the network sends a packet to an address. `range` describes the block and its use in messages. It's `null` for public addresses.
 */
export type AddressClass =
  | { scope: 'public'; range: null }
  | { scope: 'loopback' | 'private' | 'other'; range: string };

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
  return { scope: SCOPES.get(block.use) ?? 'other', range: `${block.text}, ${block.use}` };
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
const SCOPES: ReadonlyMap<string, 'loopback' | 'private'> = new Map([
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
