import { BlockList, isIP } from 'node:net';

export type ParsedCidr = { kind: 'ok'; cidr: string } | { kind: 'invalid'; reason: string };

/**
 * Reads an IP address or a CIDR block and writes it with its prefix length: `192.0.2.7` → `192.0.2.7/32`.
 * A prefix of 0 is refused: a list that lets everyone in is a mistake, leaving the list out says the same honestly.
 */
export function parseCidr(text: string): ParsedCidr {
  const shown = JSON.stringify(text.slice(0, 60));
  const [ip = '', prefix, ...rest] = text.split('/');
  const version = ip.includes('%') ? 0 : isIP(ip);
  if (version === 0 || rest.length > 0) {
    return { kind: 'invalid', reason: `${shown} is neither an IP address nor a CIDR block such as 10.0.0.0/8` };
  }
  const bits = version === 4 ? 32 : 128;
  if (prefix === undefined) return { kind: 'ok', cidr: `${ip}/${bits}` };
  if (!/^\d{1,3}$/.test(prefix) || Number(prefix) > bits) {
    return { kind: 'invalid', reason: `${shown} has the prefix length ${prefix}; IPv${version} allows 1 to ${bits}` };
  }
  if (Number(prefix) === 0) return { kind: 'invalid', reason: `${shown} means everyone; leave it out or narrow it` };
  return { kind: 'ok', cidr: `${ip}/${Number(prefix)}` };
}

/** Whether all addresses of a block are in another one. Both are written as `parseCidr` writes them. */
export function isWithin(inner: string, outer: string): boolean {
  const [[ip = '', bits], [outerIp = '', outerBits]] = [inner.split('/'), outer.split('/')];
  const family = isIP(ip) === 6 ? 'ipv6' : 'ipv4';
  if (isIP(ip) !== isIP(outerIp) || Number(bits) < Number(outerBits)) return false;
  const list = new BlockList();
  list.addSubnet(outerIp, Number(outerBits), family);
  return list.check(ip, family);
}
