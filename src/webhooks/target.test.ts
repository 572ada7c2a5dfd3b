import { BlockList, isIPv4 } from 'node:net';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkAddresses, checkTarget, isPublicUnicast } from './target.ts';

describe('public unicast addresses', () => {
  /** From the IANA registries, in their order; with what is reachable and holds no receiver. */
  const SPECIAL = [
    ['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24'],
    ['192.0.2.0/24', '192.31.196.0/24', '192.52.193.0/24', '192.88.99.0/24', '192.168.0.0/16', '192.175.48.0/24'],
    ['198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4', '168.63.129.16/32'],
    ['2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3fff::/20'],
    // All outside of 2000::/3.
    ['::/3', '4000::/2', '8000::/1'],
  ].flat();
  // Apart, because a list compares IPv4 addresses with IPv6 blocks too, as mapped ones.
  const oracle = { ipv4: new BlockList(), ipv6: new BlockList() };
  for (const block of SPECIAL) {
    const [net = '', length = ''] = block.split('/');
    const family = isIPv4(net) ? 'ipv4' : 'ipv6';
    oracle[family].addSubnet(net, Number(length), family);
  }
  const isSpecial = (ip: string) => (isIPv4(ip) ? oracle.ipv4.check(ip, 'ipv4') : oracle.ipv6.check(ip, 'ipv6'));

  const v4 = (value: number) => [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join('.');
  const v6 = (value: bigint) =>
    Array.from({ length: 8 }, (_, index) => ((value >> BigInt(112 - 16 * index)) & 0xffffn).toString(16)).join(':');
  const anyV4 = fc.integer({ min: 0, max: 0xffff_ffff }).map(v4);

  test('agree with an independent list of blocks, for random addresses', () => {
    fc.assert(
      fc.property(anyV4, (ip) => {
        expect(isPublicUnicast(ip)).toBe(!isSpecial(ip));
      }),
      { numRuns: 2000 },
    );
    const globalUnicast = fc.bigInt({ min: 0x2n << 124n, max: (0x4n << 124n) - 1n });
    fc.assert(
      fc.property(fc.oneof(fc.bigInt({ min: 1n << 112n, max: (1n << 128n) - 1n }), globalUnicast), (value) => {
        fc.pre(value >> 32n !== 0x64ff9bn << 64n);
        expect(isPublicUnicast(v6(value))).toBe(!isSpecial(v6(value)));
      }),
      { numRuns: 2000 },
    );
  });

  test('begin and end exactly where the special blocks end and begin', () => {
    for (const block of SPECIAL) {
      const [net = '', length = ''] = block.split('/');
      const bits = isIPv4(net) ? 32 : 128;
      const write = (value: bigint) => (bits === 32 ? v4(Number(value)) : v6(value));
      const first = bits === 32 ? readV4(net) : readV6(net);
      const last = first + (1n << BigInt(bits - Number(length))) - 1n;
      for (const value of [first - 1n, first, last, last + 1n]) {
        if (value < 0n || value >> BigInt(bits) !== 0n) continue;
        const ip = write(value);
        expect([ip, isPublicUnicast(ip)]).toEqual([ip, !isSpecial(ip)]);
      }
    }
  });

  test('an address that IPv6 wraps for IPv4 or for a translator counts as what it holds', () => {
    fc.assert(
      fc.property(anyV4, fc.constantFrom('::ffff:', '64:ff9b::', '0:0:0:0:0:FFFF:'), (ip, prefix) => {
        expect(isPublicUnicast(prefix + ip)).toBe(isPublicUnicast(ip));
        const hex = readV4(ip).toString(16).padStart(8, '0');
        expect(isPublicUnicast(`${prefix}${hex.slice(0, 4)}:${hex.slice(4)}`)).toBe(isPublicUnicast(ip));
      }),
    );
  });

  test.each([
    ...['', 'shop.example', '8.8.8', '8.8.8.8.', ' 8.8.8.8', '8.8.8.8/32', '08.8.8.8', '0x8.8.8.8', '134744072'],
    ...['8.8.8.8\u0000', '８.8.8.8', '[2606:4700::1]', '2606:4700::1%eth0', '2606:4700::1%', '2606:4700', ':::'],
  ])('%j is no address in a standard spelling, and not public', (text) => {
    expect(isPublicUnicast(text)).toBe(false);
  });

  function readV4(ip: string): bigint {
    return BigInt(`0x${Buffer.from(ip.split('.').map(Number)).toString('hex')}`);
  }

  /** Of the blocks above: groups, and zeros to the end. */
  function readV6(net: string): bigint {
    const groups = net.replace(/::$/, '').split(':');
    return BigInt(
      `0x${groups
        .map((group) => group.padStart(4, '0'))
        .join('')
        .padEnd(32, '0')}`,
    );
  }
});

describe('what is refused before anything is resolved', () => {
  const reason = (url: string, rule: 'public' | 'local' = 'public') => {
    const check = checkTarget(new URL(url), rule);
    return check.kind === 'ok' ? 'ok' : check.reason;
  };

  test('every reason names what was seen and what to do, and nothing of the path, query or credentials', () => {
    const path = '/h0rse?token=h0rse#h0rse';
    const reasons = [
      [
        `http://a.example:8080${path}`,
        '"http://a.example:8080" must start with https://: webhooks are sent encrypted only',
      ],
      [`https://h0rse:h0rse@a.example${path}`, '"https://a.example" has a user name or password: remove it'],
      [`https://a.example:444${path}`, '"https://a.example:444" has the port 444: use 443 or one from 1024 on'],
      [
        `https://10.0.0.5${path}`,
        '"10.0.0.5" is not allowed (10.0.0.0/8, private): webhooks are sent to public addresses only',
      ],
      [`https://[::1]${path}`, '"::1" is not allowed (::1/128, loopback): webhooks are sent to public addresses only'],
      [
        `https://shop.internal.${path}`,
        '"shop.internal." is a name of a local network: webhooks are sent to public addresses only',
      ],
      [`https://a..example${path}`, '"a..example" is not the name of a machine: write one such as shop.example.com'],
    ] as const;
    for (const [url, says] of reasons) expect(reason(url)).toBe(says);
    expect(reason(`ftp://a.example${path}`, 'local')).toBe('"ftp://a.example" must start with https:// or http://');
    expect(reason(`https://${'a.'.repeat(400)}example`).length).toBeLessThan(160);
  });

  test('the port 443 and those from 1024 on are allowed, by the local rule all', () => {
    for (const port of ['', ':443', ':0443', ':1024', ':8443', ':65535']) {
      expect(reason(`https://a.example${port}/`)).toBe('ok');
    }
    for (const port of [':0', ':22', ':25', ':80', ':445', ':1023']) {
      expect(reason(`https://a.example${port}/`)).toContain(`has the port ${port.slice(1)}:`);
      expect(reason(`http://a.example${port}/`, 'local')).toBe('ok');
    }
  });

  test('the local rule lets names be decided by their addresses', () => {
    for (const host of ['localhost', 'localhost.', 'app.localhost', 'my-laptop', 'my-laptop.local']) {
      expect(reason(`http://${host}:3000/`, 'local')).toBe('ok');
      expect(reason(`https://${host}:3000/`)).toContain('local network');
    }
    expect(checkAddresses('my-laptop', [{ address: '192.168.1.7', family: 4 }], 'local')).toEqual({
      kind: 'refused',
      reason: expect.stringContaining('"my-laptop" resolves to 192.168.1.7 (192.168.0.0/16, private)'),
    });
    expect(checkAddresses('my-laptop', [{ address: '127.0.1.1', family: 4 }], 'local')).toEqual({ kind: 'ok' });
  });
});
