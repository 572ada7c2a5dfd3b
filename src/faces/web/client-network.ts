import { isIP } from 'node:net';

/** Returns the network by which requests are counted. An IPv6 client owns a whole /64, whichever address in it is used. */
export function clientNetwork(ip: string): string {
  if (isIP(ip) !== 6) return ip;
  const [head = '', tail] = ip.split('::');
  const [left, right] = [groupsOf(head), groupsOf(tail ?? '')];
  const zeros = tail === undefined ? 0 : 8 - left.length - right.length;
  return [...left, ...Array<number>(zeros).fill(0), ...right].slice(0, 4).join(':');
}

function groupsOf(text: string): number[] {
  // The last two groups may be written as an IPv4 address. They aren't part of the network.
  return text === ''
    ? []
    : text.split(':').flatMap((group) => (group.includes('.') ? [0, 0] : [Number.parseInt(group, 16)]));
}
