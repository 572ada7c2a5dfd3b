import type { LookupAddress } from 'node:dns';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { TlsOptions } from 'node:tls';
import { Agent, request } from 'undici';
import { afterEach, describe, expect, test } from 'vitest';
import { createCertificate } from '../../../test/support/create-certificate.ts';
import type { TargetRule } from './target.ts';
import { createCheckedLookup, createTargetConnector, type LookupAll } from './target-connector.ts';

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
