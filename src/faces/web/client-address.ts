import { BlockList, isIP } from 'node:net';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { Problem } from './problem.ts';

/** A request's sender: its address in the form of `plainAddress`, and the network that its requests are counted under. */
export type Client = { ip: string; network: string };

const CLIENT = Symbol('client');
type ReadRequest = FastifyRequest & { [CLIENT]?: Client };

/** Returns a request's sender, behind the trusted proxies. */
export function clientOf(request: ReadRequest): Client {
  const client = request[CLIENT];
  if (client === undefined) throw new Error('the client address of the request was not read');
  return client;
}

/** Reads each request's sender. Register it before every hook that needs the sender. */
export function readClients(app: FastifyInstance, isProxy: (ip: string) => boolean): void {
  app.addHook('onRequest', (request: ReadRequest, _reply, done) => {
    const ip = readClient(request, isProxy);
    request[CLIENT] = { ip, network: clientNetwork(ip) };
    done();
  });
}

/**
 * Returns a test of whether an address belongs to a trusted proxy, whose X-Forwarded-For can be relied on. `loopback` means this machine.
 */
export function proxiesOf(trustProxy: readonly string[]): (ip: string) => boolean {
  if (trustProxy.length === 0) return () => false;
  return createAddressList(trustProxy.flatMap((entry) => (entry === 'loopback' ? ['127.0.0.0/8', '::1'] : [entry])));
}

/**
 * Reads `X-Forwarded-For: 198.51.100.7:4711, 10.0.0.2`. Each proxy appends the address of its client, so the header is read from the end
 * for as long as the proxies are trusted. Anyone could have written the earlier entries, so they are ignored.
 */
function readClient({ raw, headers }: FastifyRequest, isProxy: (ip: string) => boolean): string {
  let ip = plainAddress(raw.socket.remoteAddress ?? '') ?? '';
  const header = headers['x-forwarded-for'];
  if (header === undefined || !isProxy(ip)) return ip;
  const entries = [header].flat().join().split(',');
  while (entries.length > 0 && isProxy(ip)) {
    const entry = (entries.pop() ?? '').trim();
    if (entry === '') continue;
    const address = plainAddress(entry);
    if (address === null) throw unreadable(entry);
    ip = address;
  }
  return ip;
}

function unreadable(entry: string): Problem {
  const detail = `X-Forwarded-For has ${JSON.stringify(entry.slice(0, 100))} where a trusted proxy should have written its client's address. Correct the proxy's settings.`;
  return new Problem('INVALID_REQUEST', detail);
}

/** An address with a port, as load balancers write it, in each address family's notation. */
const WITH_PORT = /^(?:\[([^\]]+)\](?::[0-9]{1,5})?|([0-9.]+):[0-9]{1,5})$/;
/** An IPv4 address in IPv6 form, as a dual-stack socket shows it. */
const MAPPED = /^(?:0{0,4}:){2,5}ffff:(?:([0-9.]+)|([0-9a-f]{1,4}):([0-9a-f]{1,4}))$/i;

/** Returns an IP address without port, brackets and zone, where IPv4 is always in IPv4 form, or `null` for anything else. */
export function plainAddress(text: string): string | null {
  const [, bracketed, dotted] = WITH_PORT.exec(text) ?? [];
  const [address = ''] = (bracketed ?? dotted ?? text).split('%', 1);
  // Only IPv6 addresses may be in brackets.
  if (isIP(address) === 0 || (bracketed !== undefined && isIP(address) === 4)) return null;
  const [, last, high, low] = MAPPED.exec(address) ?? [];
  if (last !== undefined) return last;
  if (high === undefined || low === undefined) return address;
  const bits = Number.parseInt(high, 16) * 0x1_00_00 + Number.parseInt(low, 16);
  return [24, 16, 8, 0].map((shift) => (bits >>> shift) & 0xff).join('.');
}

/** Returns the network that requests are counted under. An IPv6 client owns a whole /64, whichever address in it is used. */
export function clientNetwork(ip: string): string {
  if (isIP(ip) !== 6) return ip;
  const [head = '', tail] = ip.split('::');
  const [left, right] = [groupsOf(head), groupsOf(tail ?? '')];
  const zeros = tail === undefined ? 0 : 8 - left.length - right.length;
  return [...left, ...Array<number>(zeros).fill(0), ...right].slice(0, 4).join(':');
}

function groupsOf(text: string): number[] {
  // The last two groups may be written as an IPv4 address, but they aren't part of the network.
  return text === ''
    ? []
    : text.split(':').flatMap((group) => (group.includes('.') ? [0, 0] : [Number.parseInt(group, 16)]));
}

/** Returns a test of whether an address is in a list of addresses and CIDR blocks. The entries were already validated. */
export function createAddressList(entries: readonly string[]): (ip: string) => boolean {
  const list = new BlockList();
  for (const entry of entries) {
    const [address = '', prefix] = entry.split('/');
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    list.addSubnet(address, prefix === undefined ? (family === 'ipv6' ? 128 : 32) : Number(prefix), family);
  }
  return (ip) => isIP(ip) !== 0 && list.check(ip, isIP(ip) === 6 ? 'ipv6' : 'ipv4');
}
