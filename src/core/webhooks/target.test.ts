import type { LookupAddress } from 'node:dns';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, BlockList, isIPv4, type Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { TlsOptions } from 'node:tls';
import fc from 'fast-check';
import { Agent, request } from 'undici';
import { afterEach, describe, expect, test } from 'vitest';
import { createCertificate } from '../../../test/support/create-certificate.ts';
import {
  checkAddresses,
  checkTarget,
  classifyAddress,
  createCheckedLookup,
  createTargetConnector,
  isPublicUnicast,
  type LookupAll,
  type TargetRule,
} from './target.ts';

test('public unicast is what is public of addresses in a standard spelling', () => {
  const seen = ['198.41.0.4', '2001:503:ba3e::2:30', '127.0.0.1', '10.0.0.1', '::1', 'shop.example', ''].map(
    isPublicUnicast,
  );
  expect(seen).toEqual([true, true, false, false, false, false, false]);
});

describe('what is refused before anything is resolved', () => {
  const reason = (url: string, rule: 'public' | 'local' = 'public') => {
    const check = checkTarget(new URL(url), rule);
    return check.kind === 'ok' ? 'ok' : check.reason;
  };

  test('every reason names what was seen and what to do, and nothing of the path, query or credentials', () => {
    const path = '/h0rse?token=h0rse#h0rse';
    const reasons = [
      [`http://a.example:8080${path}`, '"http://a.example:8080" must start with https://: plain http is not allowed'],
      [`https://h0rse:h0rse@a.example${path}`, '"https://a.example" has a user name or password: remove it'],
      [`https://a.example:444${path}`, '"https://a.example:444" has the port 444: use 443 or one from 1024 on'],
      [`https://10.0.0.5${path}`, '"10.0.0.5" is not allowed (10.0.0.0/8, private): only public addresses are allowed'],
      [`https://[::1]${path}`, '"::1" is not allowed (::1/128, loopback): only public addresses are allowed'],
      [`https://shop.internal.${path}`, '"shop.internal." is a local network name: only public addresses are allowed'],
      [`https://a..example${path}`, '"a..example" is not a host name: use one such as shop.example.com'],
    ] as const;
    for (const [url, says] of reasons) expect(reason(url)).toBe(says);
    expect(reason(`ftp://a.example${path}`, 'local')).toBe('"ftp://a.example" must start with https:// or http://');
    expect(reason(`https://${'a.'.repeat(400)}example`).length).toBeLessThan(160);
  });

  test('a user name alone, and a password alone, are refused', () => {
    const says = '"https://a.example" has a user name or password: remove it';
    for (const who of ['h0rse', ':h0rse', 'h0rse:h0rse']) {
      expect(reason(`https://${who}@a.example/`)).toBe(says);
      expect(reason(`https://${who}@a.example/`, 'local')).toBe(says);
    }
  });

  test('a name has 253 characters at most, of labels that begin and end with a letter, a digit or an underscore', () => {
    const long = `${'a'.repeat(60)}.`.repeat(4);
    const longest = `${long}${'b'.repeat(253 - long.length)}`;
    for (const name of [longest, `${longest}.`, 'a-b.c_d', '_a.b', `${'a'.repeat(63)}.b`, 'a.1x']) {
      expect(reason(`https://${name}/`)).toBe('ok');
    }
    for (const name of [
      `${longest}b`,
      '-a.b',
      'a-.b',
      'a.-b',
      `${'a'.repeat(64)}.b`,
      'a.b..',
      '.a.b',
      '!a.b',
      'a!.b',
    ]) {
      expect(reason(`https://${name}/`)).toMatch(/ is not a host name: use one such as shop\.example\.com$/);
    }
  });

  test('only the end of a name says that it is local', () => {
    for (const end of ['localhost', 'local', 'internal', 'home.arpa', 'onion']) {
      expect(reason(`https://a.${end}/`)).toBe(`"a.${end}" is a local network name: only public addresses are allowed`);
      for (const name of [`a.${end}.example`, `a.x${end}`]) expect(reason(`https://${name}/`)).toBe('ok');
    }
    expect(reason('https://shop/')).toContain('is a local network name');
  });

  test('of a long text 80 characters are shown', () => {
    const name = (length: number) => `${'a'.repeat(length - 2)}..`;
    expect(checkAddresses(name(80), [], 'public')).toEqual({
      kind: 'refused',
      reason: `"${name(80)}" resolves to no address: publish a public address for it`,
    });
    expect(checkAddresses(name(81), [], 'public')).toEqual({
      kind: 'refused',
      reason: `"${name(81).slice(0, 80)}…" resolves to no address: publish a public address for it`,
    });
  });

  test('of addresses all are judged by the rule, and are of one kind', () => {
    const judge = (rule: 'public' | 'local', ...ips: string[]) => {
      const check = checkAddresses(
        'a.example',
        ips.map((address) => ({ address, family: 4 })),
        rule,
      );
      return check.kind === 'ok' ? 'ok' : check.reason;
    };
    const LOCAL = 'only public addresses and loopback addresses on this machine are allowed';
    expect(judge('public', '8.8.8.8', '1.1.1.1')).toBe('ok');
    expect(judge('local', '127.0.0.1', '127.0.0.2')).toBe('ok');
    expect(judge('public', '8.8.8.8', '127.0.0.1')).toBe(
      '"a.example" resolves to 127.0.0.1 (127.0.0.0/8, loopback): only public addresses are allowed',
    );
    expect(judge('local', '8.8.8.8', '127.0.0.1')).toBe(
      '"a.example" resolves to both public and other addresses: use one kind only',
    );
    expect(judge('local', '10.0.0.1')).toBe(`"a.example" resolves to 10.0.0.1 (10.0.0.0/8, private): ${LOCAL}`);
    expect(reason('http://10.0.0.1/', 'local')).toBe(`"10.0.0.1" is not allowed (10.0.0.0/8, private): ${LOCAL}`);
    expect(reason('http://127.0.0.1/', 'local')).toBe('ok');
    expect(reason('http://[::1]/', 'local')).toBe('ok');
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

const isPublic = (ip: string) => classifyAddress(ip).scope === 'public';

describe('public unicast addresses', () => {
  /** From the IANA registries, in order, plus reachable blocks without receivers. */
  const SPECIAL = [
    ['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24'],
    ['192.0.2.0/24', '192.31.196.0/24', '192.52.193.0/24', '192.88.99.0/24', '192.168.0.0/16', '192.175.48.0/24'],
    ['198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4', '168.63.129.16/32'],
    ['2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3fff::/20'],
    // Everything outside of 2000::/3.
    ['::/3', '4000::/2', '8000::/1'],
  ].flat();
  // Separate lists, because a BlockList also compares IPv4 addresses with IPv6 blocks, as mapped addresses.
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
        expect(isPublic(ip)).toBe(!isSpecial(ip));
      }),
      { numRuns: 2000 },
    );
    const globalUnicast = fc.bigInt({ min: 0x2n << 124n, max: (0x4n << 124n) - 1n });
    fc.assert(
      fc.property(fc.oneof(fc.bigInt({ min: 1n << 112n, max: (1n << 128n) - 1n }), globalUnicast), (value) => {
        fc.pre(value >> 32n !== 0x64ff9bn << 64n);
        expect(isPublic(v6(value))).toBe(!isSpecial(v6(value)));
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
        expect([ip, isPublic(ip)]).toEqual([ip, !isSpecial(ip)]);
      }
    }
  });

  test('an address that IPv6 wraps for IPv4 or for a translator counts as what it holds', () => {
    fc.assert(
      fc.property(anyV4, fc.constantFrom('::ffff:', '64:ff9b::', '0:0:0:0:0:FFFF:'), (ip, prefix) => {
        expect(isPublic(prefix + ip)).toBe(isPublic(ip));
        const hex = readV4(ip).toString(16).padStart(8, '0');
        expect(isPublic(`${prefix}${hex.slice(0, 4)}:${hex.slice(4)}`)).toBe(isPublic(ip));
      }),
    );
  });

  test.each([
    ...['', 'shop.example', '8.8.8', '8.8.8.8.', ' 8.8.8.8', '8.8.8.8/32', '08.8.8.8', '0x8.8.8.8', '134744072'],
    ...['8.8.8.8\u0000', '８.8.8.8', '[2606:4700::1]', '2606:4700::1%eth0', '2606:4700::1%', '2606:4700', ':::'],
  ])('%j is not an address in a standard notation, and not public', (text) => {
    expect(isPublic(text)).toBe(false);
  });

  function readV4(ip: string): bigint {
    return BigInt(`0x${Buffer.from(ip.split('.').map(Number)).toString('hex')}`);
  }

  /** Parses the blocks above: groups, and zeros to the end. */
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

describe('an address that is not public is named by the block that it stands in', () => {
  test.each([
    ['169.254.169.254', '169.254.169.254/32, cloud metadata'],
    ['100.100.100.200', '100.100.100.200/32, cloud metadata'],
    ['192.0.0.192', '192.0.0.192/32, cloud metadata'],
    ['168.63.129.16', '168.63.129.16/32, Azure platform'],
    ['0.0.0.0', '0.0.0.0/8, this network'],
    ['10.1.2.3', '10.0.0.0/8, private'],
    ['100.127.255.255', '100.64.0.0/10, shared by carriers'],
    ['169.254.0.1', '169.254.0.0/16, link-local'],
    ['172.31.255.255', '172.16.0.0/12, private'],
    ['192.0.0.1', '192.0.0.0/24, protocol assignments'],
    ['192.0.2.1', '192.0.2.0/24, documentation'],
    ['192.31.196.1', '192.31.196.0/24, AS112 sink'],
    ['192.52.193.1', '192.52.193.0/24, multicast relay'],
    ['192.88.99.1', '192.88.99.0/24, 6to4 relay'],
    ['192.168.0.1', '192.168.0.0/16, private'],
    ['192.175.48.1', '192.175.48.0/24, AS112 sink'],
    ['198.19.255.255', '198.18.0.0/15, benchmarking'],
    ['198.51.100.1', '198.51.100.0/24, documentation'],
    ['203.0.113.1', '203.0.113.0/24, documentation'],
    ['239.0.0.1', '224.0.0.0/4, multicast'],
    ['255.255.255.255', '240.0.0.0/4, reserved'],
    ['fd00:ec2::254', 'fd00:ec2::254/128, cloud metadata'],
    ['::', '::/128, unspecified'],
    ['::2', '::/96, IPv4-compatible'],
    ['::8.8.8.8', '::/96, IPv4-compatible'],
    ['64:ff9b:1::1', '64:ff9b:1::/48, NAT64 of a local network'],
    ['100::1', '100::/64, discard'],
    ['2001::1', '2001::/32, Teredo'],
    ['2001:1::1', '2001::/23, protocol assignments'],
    ['2001:db8::1', '2001:db8::/32, documentation'],
    ['2002::1', '2002::/16, 6to4'],
    ['2620:4f:8000::1', '2620:4f:8000::/48, AS112 sink'],
    ['3fff::1', '3fff::/20, documentation'],
    ['5f00::1', '5f00::/16, segment routing'],
    ['fd00::1', 'fc00::/7, private'],
    ['fe80::1', 'fe80::/10, link-local'],
    ['fec0::1', 'fec0::/10, site-local'],
    ['ff02::1', 'ff00::/8, multicast'],
    ['4000::1', 'outside of 2000::/3'],
    ['64:ff9b::10.0.0.1', '10.0.0.0/8, private, behind 64:ff9b::/96, NAT64'],
    ['64:ff9b::7f00:1', '127.0.0.0/8, loopback, behind 64:ff9b::/96, NAT64'],
    ['::ffff:10.0.0.1', '10.0.0.0/8, private'],
    ['fe80::1%eth0', 'not an address in a standard notation'],
    ['0177.0.0.1', 'not an address in a standard notation'],
  ])('%s', (ip, range) => {
    const scope = /, (private|shared by carriers)$/.test(range) ? 'private' : 'other';
    expect(classifyAddress(ip)).toEqual({ scope, range });
  });

  test('loopback is apart, in every spelling of an address', () => {
    for (const ip of [
      '127.0.0.1',
      '127.255.255.255',
      '::ffff:127.0.0.1',
      '::ffff:7f00:1',
      '0:0:0:0:0:ffff:7f00:0001',
    ]) {
      expect(classifyAddress(ip)).toEqual({ scope: 'loopback', range: '127.0.0.0/8, loopback' });
    }
    for (const ip of ['::1', '0:0:0:0:0:0:0:1', '0000::0001', '::0.0.0.1']) {
      expect(classifyAddress(ip)).toEqual({ scope: 'loopback', range: '::1/128, loopback' });
    }
  });

  test('what is public has no range', () => {
    for (const ip of ['8.8.8.8', '2606:4700::1', '::ffff:8.8.8.8', '64:ff9b::8.8.8.8', '2606:4700:1:2:3:4:8.8.8.8']) {
      expect(classifyAddress(ip)).toEqual({ scope: 'public', range: null });
    }
  });
});

const PUBLIC = '198.41.0.4';
const PUBLIC_V6 = '2001:503:ba3e::2:30';
const HERE = '127.0.0.1';

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

/** Counts the connections that are opened to it, whatever happens to them. */
async function listen(server: Server): Promise<{ port: number; connections: () => number }> {
  const sockets: Socket[] = [];
  server.on('connection', (socket: Socket) => void sockets.push(socket.on('error', () => undefined)));
  server.listen(0, HERE);
  await once(server, 'listening');
  cleanUps.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, connections: () => sockets.length };
}

const startReceiver = () => listen(createServer((_, response) => response.end('ok')));

/**
 * Resolves names to one list after the other, and then always to the last. A caller that doesn't ask for all addresses gets the first.
 * Records the names.
 */
function resolver(...answers: string[][]) {
  const names: string[] = [];
  const lookup: LookupAll = (name, { all }, callback) => {
    const answer = answers[Math.min(names.length, answers.length - 1)] ?? [];
    names.push(name);
    setImmediate(() => callback(null, answer.slice(0, all ? undefined : 1).map(toLookupAddress)));
  };
  return { lookup, names };
}

function toLookupAddress(address: string): LookupAddress {
  return { address, family: address.includes(':') ? 6 : 4 };
}

/** Sends a request like the webhook sender. Returns the status, or the code and message of the error. */
function client(options: {
  rule: TargetRule;
  lookup?: LookupAll;
  connectTimeoutMs?: number;
  ca?: string;
  connections?: number;
}) {
  const { connections = 1, ...target } = options;
  const agent = new Agent({ connections, connect: createTargetConnector({ connectTimeoutMs: 5000, ...target }) });
  cleanUps.push(() => agent.destroy());
  return async (url: string, extra: { reset?: boolean } = {}): Promise<string> => {
    try {
      const answer = await request(url, { dispatcher: agent, method: 'POST', reset: extra.reset ?? false });
      await answer.body.dump();
      return `status ${answer.statusCode}`;
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      return `${code}: ${message}`;
    }
  };
}

describe('addresses as literals, which are never looked up', () => {
  test('loopback is refused without a connection under the public rule, and reached under the local rule', async () => {
    const { port, connections } = await startReceiver();
    const post = client({ rule: 'public' });
    for (const host of [HERE, '2130706433', '0x7f.1', '[::ffff:127.0.0.1]', '[::1]']) {
      expect(await post(`https://${host}:${port}/`)).toMatch(/^TARGET_REFUSED: .*loopback/);
    }
    expect(connections()).toBe(0);
    expect(await client({ rule: 'local' })(`http://${HERE}:${port}/`)).toBe('status 200');
    expect(connections()).toBe(1);
  });

  test('nothing but loopback is added by the local rule', async () => {
    const post = client({ rule: 'local' });
    for (const host of ['10.0.0.1', '169.254.169.254', '0.0.0.0', '[fe80::1]', '[::]', '[64:ff9b::7f00:1]']) {
      expect(await post(`http://${host}:9/`)).toMatch(/^TARGET_REFUSED: /);
    }
  });
});

test('http and privileged ports are refused under the public rule before anything is looked up', async () => {
  const { lookup, names } = resolver([HERE]);
  const post = client({ rule: 'public', lookup });
  expect(await post('http://shop.example/')).toMatch(/^TARGET_REFUSED: .*https/);
  expect(await post('https://shop.example:25/')).toMatch(/^TARGET_REFUSED: .*port 25/);
  expect(names).toEqual([]);
});

describe('names, whose addresses are judged whenever they are connected to', () => {
  test('one that resolves to another address the second time is refused the second time, with no connection', async () => {
    const { port, connections } = await startReceiver();
    const { lookup, names } = resolver([HERE], ['10.0.0.7']);
    const post = client({ rule: 'local', lookup });
    expect(await post(`http://shop.example:${port}/`, { reset: true })).toBe('status 200');
    expect(await post(`http://shop.example:${port}/`)).toBe(
      'TARGET_REFUSED: "shop.example" resolves to 10.0.0.7 (10.0.0.0/8, private): only public addresses and loopback addresses on this machine are allowed',
    );
    expect([connections(), names.length]).toEqual([1, 2]);
  });

  test('one that resolves to a public address first and to this machine the second time is refused, with no connection', async () => {
    const { port, connections } = await startReceiver();
    const { lookup } = resolver([PUBLIC], [HERE]);
    expect(await lookUp('public', lookup)).toEqual([PUBLIC]);
    expect(await client({ rule: 'public', lookup })(`https://shop.example:${port}/`)).toMatch(
      /^TARGET_REFUSED: .*loopb/,
    );
    expect(connections()).toBe(0);
  });

  test('what was judged is what is dialled: a connection looks up once', async () => {
    const { port } = await startReceiver();
    const { lookup, names } = resolver([HERE], ['127.0.0.2']);
    expect(await client({ rule: 'local', lookup })(`http://shop.example:${port}/`)).toBe('status 200');
    expect(names).toEqual(['shop.example']);
  });

  test('an open connection is used again without a look-up', async () => {
    const { port, connections } = await startReceiver();
    const { lookup, names } = resolver([HERE], ['10.0.0.7']);
    const post = client({ rule: 'local', lookup });
    for (const _ of [1, 2]) expect(await post(`http://shop.example:${port}/`)).toBe('status 200');
    expect([connections(), names.length]).toEqual([1, 1]);
  });

  test('one address that is not allowed refuses the name, wherever it stands', async () => {
    for (const answer of [
      ['10.0.0.1', PUBLIC],
      [PUBLIC, PUBLIC_V6, '::ffff:a00:1'],
      [PUBLIC, HERE],
    ]) {
      expect(await lookUp('public', resolver(answer).lookup)).toMatch(/^TARGET_REFUSED: /);
    }
    expect(await lookUp('local', resolver([HERE, PUBLIC]).lookup)).toMatch(/^TARGET_REFUSED: .*one kind only/);
    expect(await lookUp('local', resolver([HERE, '::1']).lookup)).toEqual([HERE, '::1']);
    expect(await lookUp('public', resolver([PUBLIC, PUBLIC_V6]).lookup)).toEqual([PUBLIC, PUBLIC_V6]);
  });

  test('of 1,000 addresses all are judged and 16 are dialled', async () => {
    const many = Array.from({ length: 1000 }, (_, index) => `198.41.${index >> 8}.${index & 255}`);
    expect(await lookUp('public', resolver(many).lookup)).toEqual(many.slice(0, 16));
    expect(await lookUp('public', resolver([...many, '10.0.0.1']).lookup)).toMatch(/^TARGET_REFUSED: .*10\.0\.0\.1/);
  });

  test('the next address is tried when one does not answer', async () => {
    const { port } = await startReceiver();
    const { lookup } = resolver(['127.0.0.9', '::1', HERE]);
    expect(await client({ rule: 'local', lookup })(`http://shop.example:${port}/`)).toBe('status 200');
  });

  test('no address, and a name that does not resolve, are failures that say so', async () => {
    expect(await lookUp('public', resolver([]).lookup)).toMatch(/^TARGET_REFUSED: .*no address/);
    const unknown = Object.assign(new Error('getaddrinfo ENOTFOUND shop.example'), { code: 'ENOTFOUND' });
    expect(await lookUp('public', (_name, _options, callback) => callback(unknown, []))).toMatch(/^ENOTFOUND: /);
  });

  test('a look-up that hangs is given up on with the connection; those who wait share it, and later ones do not', async () => {
    const { port } = await startReceiver();
    const answers: Parameters<LookupAll>[2][] = [];
    const lookup: LookupAll = (_name, _options, callback) => {
      if (answers.push(callback) > 1) callback(null, [toLookupAddress(HERE)]);
    };
    const post = client({ rule: 'local', lookup, connectTimeoutMs: 50, connections: 3 });
    const hanging = await Promise.all([1, 2, 3].map(() => post(`http://shop.example:${port}/`)));
    expect(hanging).toEqual([1, 2, 3].map(() => expect.stringMatching(/^UND_ERR_CONNECT_TIMEOUT: /)));
    expect(answers).toHaveLength(1);
    answers[0]?.(null, [toLookupAddress('10.0.0.1')]);
    await nextTurn();
    expect(await post(`http://shop.example:${port}/`)).toBe('status 200');
  });
});

describe('TLS', () => {
  const secure = createCertificate(['shop.example']);
  const start = (seen: string[] = []) => {
    const SNICallback: TlsOptions['SNICallback'] = (name, done) => {
      seen.push(name);
      done(null);
    };
    return listen(createTlsServer({ ...secure, SNICallback }, (_, response) => response.end('ok')));
  };

  test('the receiver is asked for by its name, and its certificate must be for that name', async () => {
    const seen: string[] = [];
    const { port } = await start(seen);
    const post = client({ rule: 'local', lookup: resolver([HERE]).lookup, ca: secure.cert });
    expect(await post(`https://shop.example:${port}/`)).toBe('status 200');
    expect(await post(`https://other.example:${port}/`)).toMatch(/^ERR_TLS_CERT_ALTNAME_INVALID/);
    expect(await post(`https://${HERE}:${port}/`)).toMatch(/^ERR_TLS_CERT_ALTNAME_INVALID/);
    expect(seen).toEqual(['shop.example', 'other.example']);
  });

  test('a certificate of an unknown issuer is refused', async () => {
    const { port } = await start();
    const post = client({ rule: 'local', lookup: resolver([HERE]).lookup });
    expect(await post(`https://shop.example:${port}/`)).toMatch(/^DEPTH_ZERO_SELF_SIGNED_CERT/);
  });
});

/** Returns the addresses that a connection to a name would use, or the code and message of the refusal. */
function lookUp(rule: TargetRule, lookup: LookupAll): Promise<string[] | string> {
  return new Promise((resolve) => {
    createCheckedLookup({ rule, lookup })('shop.example', { all: true }, (error, addresses) => {
      if (error === null) resolve((addresses as LookupAddress[]).map(({ address }) => address));
      else resolve(`${error.code}: ${error.message}`);
    });
  });
}
