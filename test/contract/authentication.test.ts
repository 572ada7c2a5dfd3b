import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { formatApiKey } from '../../src/core/domain/api-key.ts';
import { uuidV7 } from '../../src/core/domain/ids.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { revokeApiKey } from '../../src/faces/operator/subjects/keys.ts';
import { createTestProject, startTestService, type TestProject, type TestService } from '../support/service.ts';
import { ask, created, expectProblem, get, indistinct, order, post, type Reply } from './ask.ts';
import { addKey } from './keys.ts';
import { runSql } from './sql.ts';

let service: TestService;
/** A service that trusts the X-Forwarded-For of a proxy on this machine, so that a test can come from anywhere. */
let proxied: TestService;
let project: TestProject;
beforeAll(async () => {
  [service, proxied] = await Promise.all([
    startTestService(),
    startTestService({ config: { trustProxy: ['loopback'] } }),
  ]);
  // Buckets refill with time, and on a slow machine one would refill just after a test emptied it.
  proxied.clock.freeze();
});
beforeEach(async () => {
  // Refills the bucket of failed authentications.
  service.clock.advance(10_000);
  proxied.clock.advance(10_000);
  project = await createTestProject(service.db);
});
afterAll(() => Promise.all([service.stop(), proxied.stop()]));

const read = (apiKey: string | null, path = '/v1/invoices/none') =>
  ask(service.url + path, { headers: { 'x-api-key': apiKey } });

const from = (ip: string, apiKey: string) =>
  ask(`${proxied.url}/v1/invoices/none`, { headers: { 'x-api-key': apiKey, 'x-forwarded-for': ip } });

describe('UNAUTHENTICATED: missing, malformed, unknown, revoked: one and the same answer', () => {
  test('every refusal of a key is the same but for the request id', async () => {
    const revoked = await addKey(service.db, project.id);
    await revokeApiKey(service.db, revoked.keyId, unixMs(service.clock.now()));
    const expired = await addKey(service.db, project.id, { expiresAtMs: service.clock.now() - 1 });
    const elsewhere = await addKey(service.db, project.id, { allowedCidrs: ['10.0.0.0/8'] });
    const unknown = formatApiKey('devnet', uuidV7(Date.now(), randomBytes(10)), randomBytes(32));
    const wrongSecret = formatApiKey('devnet', project.keyId, randomBytes(32));
    const otherMode = formatApiKey('mainnet', project.keyId, randomBytes(32));
    const keys = [
      null,
      '',
      'x',
      'qt_test_',
      project.apiKey.slice(0, -1),
      `${project.apiKey}0`,
      project.apiKey.toUpperCase(),
      project.apiKey.replace('qt_test_', 'qt_live_'),
      `Bearer ${project.apiKey}`,
      `${project.apiKey}, ${project.apiKey}`,
      'x'.repeat(8000),
      revoked.apiKey,
      expired.apiKey,
      elsewhere.apiKey,
      unknown,
      wrongSecret,
      otherMode,
    ];
    const replies: Reply[] = [];
    for (const key of keys) replies.push(await read(key));
    for (const reply of replies) {
      expectProblem(reply, 401, 'UNAUTHENTICATED');
      expect(indistinct(reply)).toEqual(indistinct(replies[0] as Reply));
    }
  });

  test('it is the same on both endpoints and for an invoice that exists', async () => {
    const { invoiceId } = await created(service, { project });
    const replies = [
      await read(null, `/v1/invoices/${invoiceId}`),
      await read(null, '/v1/invoices/none'),
      await read(null, '/v1/invoices?externalId=x'),
      await post(service, { headers: { 'x-api-key': null } }),
    ];
    for (const reply of replies) expect(indistinct(reply)).toEqual(indistinct(replies[0] as Reply));
  });

  test('a key with one mistyped character is refused', async () => {
    for (const position of [8, 20, 40, 60, project.apiKey.length - 1]) {
      const wrong = project.apiKey[position] === 'a' ? 'b' : 'a';
      const key = project.apiKey.slice(0, position) + wrong + project.apiKey.slice(position + 1);
      expectProblem(await read(key), 401, 'UNAUTHENTICATED');
    }
  });
});

describe('keys', () => {
  test('qt_test_… for a test network, qt_live_… for the main network', async () => {
    const live = await createTestProject(service.db, { network: 'mainnet' });
    expect(project.apiKey).toMatch(/^qt_test_[0-9A-Za-z]{75}$/);
    expect(live.apiKey).toMatch(/^qt_live_[0-9A-Za-z]{75}$/);
    expect((await read(live.apiKey)).status).toBe(404);
  });

  test('stored as SHA-256: no column of the database holds the key', async () => {
    await created(service, { project });
    const tables = await runSql(
      service,
      `select table_name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'`,
    );
    const secret = project.apiKey.slice('qt_test_'.length + 26);
    for (const { table_name: table } of tables) {
      const [row] = await runSql(service, `select count(*)::int as n from "${table}" t where t::text like $1`, [
        `%${secret.slice(0, 20)}%`,
      ]);
      expect({ table, n: row?.['n'] }).toEqual({ table, n: 0 });
    }
  });

  test('several per project, overlapping rotation: both work until the old one is revoked', async () => {
    const { invoiceId } = await created(service, { project });
    const next = await addKey(service.db, project.id);
    expect((await read(project.apiKey, `/v1/invoices/${invoiceId}`)).status).toBe(200);
    expect((await read(next.apiKey, `/v1/invoices/${invoiceId}`)).status).toBe(200);
    await revokeApiKey(service.db, project.keyId, unixMs(service.clock.now()));
    expectProblem(await read(project.apiKey, `/v1/invoices/${invoiceId}`), 401, 'UNAUTHENTICATED');
    expect((await read(next.apiKey, `/v1/invoices/${invoiceId}`)).status).toBe(200);
  });

  test('a revoked key is refused at once in every request, although it was just used', async () => {
    const body = order();
    const headers = { 'idempotency-key': 'before-revocation' };
    const { invoiceId, externalId } = await created(service, { project, body, headers });
    await revokeApiKey(service.db, project.keyId, unixMs(service.clock.now()));
    const replies = [
      await post(service, { project, body, headers }),
      await post(service, { project }),
      await get(service, `/v1/invoices/${invoiceId}`, project),
      await get(service, `/v1/invoices/${invoiceId}?expand=payment`, project),
      await get(service, `/v1/invoices?externalId=${externalId}`, project),
    ];
    for (const reply of replies) expectProblem(reply, 401, 'UNAUTHENTICATED');
    const [row] = await runSql(service, 'select count(*)::int as n from invoices where project_id = $1', [project.id]);
    expect(row?.['n']).toBe(1);
  });

  test.each<[string, (key: string) => Promise<Reply>]>([
    ['create', (key) => post(service, { headers: { 'x-api-key': key } })],
    ['read', (key) => read(key)],
    ['look up', (key) => read(key, '/v1/invoices?externalId=x')],
    ['be told of a wrong body', (key) => post(service, { headers: { 'x-api-key': key }, body: '{' })],
    ['be told of a wrong query', (key) => read(key, '/v1/invoices')],
  ])('a key that was just used and is revoked cannot %s as its next request', async (_what, request) => {
    expect((await read(project.apiKey)).status).toBe(404);
    await revokeApiKey(service.db, project.keyId, unixMs(service.clock.now()));
    expectProblem(await request(project.apiKey), 401, 'UNAUTHENTICATED');
  });

  test('optional expiry: refused from its time on, although it was just used', async () => {
    const key = await addKey(service.db, project.id, { expiresAtMs: service.clock.now() + 3_600_000 });
    expect((await read(key.apiKey)).status).toBe(404);
    service.clock.advance(3_600_000);
    expectProblem(await read(key.apiKey), 401, 'UNAUTHENTICATED');
    expectProblem(await post(service, { headers: { 'x-api-key': key.apiKey } }), 401, 'UNAUTHENTICATED');
  });

  test('optional CIDR list: only from these addresses', async () => {
    const { apiKey } = await addKey(proxied.db, proxied.project.id, { allowedCidrs: ['10.1.0.0/16', '2001:db8::/32'] });
    for (const ip of ['10.1.0.0', '10.1.255.255', '2001:db8::7', '::ffff:10.1.2.3']) {
      expect((await from(ip, apiKey)).status, ip).toBe(404);
    }
    for (const ip of ['10.2.0.1', '9.255.255.255', '2001:db9::7', '127.0.0.1']) {
      expectProblem(await from(ip, apiKey), 401, 'UNAUTHENTICATED');
    }
  });

  test('a proxy that writes the port, the zone, or IPv4 as IPv6 names the same address', async () => {
    const allowedCidrs = ['10.1.0.0/16', '2001:db8::/32', 'fe80::/10'];
    const { apiKey } = await addKey(proxied.db, proxied.project.id, { allowedCidrs });
    for (const ip of [
      '10.1.2.3:4711',
      '[::ffff:10.1.2.3]:4711',
      '::FFFF:a01:203',
      '[2001:db8::7]:4711',
      'fe80::1%eth0',
    ]) {
      expect((await from(ip, apiKey)).status, ip).toBe(404);
    }
    expectProblem(await from('10.2.0.1:4711', apiKey), 401, 'UNAUTHENTICATED');
  });

  test('what is no address where a trusted proxy writes its client is refused, and what stands before that is not looked at', async () => {
    const { apiKey } = await addKey(proxied.db, proxied.project.id, { allowedCidrs: ['10.1.0.0/16'] });
    for (const ip of [
      'unknown',
      '_hidden',
      '999.1.1.1',
      '10.1.2.3:',
      'x'.repeat(500),
      '10.1.2.3, unknown, 127.0.0.1',
    ]) {
      const { detail } = expectProblem(await from(ip, apiKey), 400, 'INVALID_REQUEST');
      expect(detail).toContain('X-Forwarded-For');
    }
    expect((await from('unknown, 10.1.2.3', apiKey)).status).toBe(404);
    expect((await from('unknown, 10.1.2.3:4711, 127.0.0.1', apiKey)).status).toBe(404);
    expectProblem(await from('', apiKey), 401, 'UNAUTHENTICATED');
    const direct = { 'x-api-key': service.project.apiKey, 'x-forwarded-for': 'unknown' };
    expect((await ask(`${service.url}/v1/invoices/none`, { headers: direct })).status).toBe(404);
  });

  test('X-Forwarded-For is believed only from a proxy that the operator named', async () => {
    const { apiKey } = await addKey(service.db, project.id, { allowedCidrs: ['10.1.0.0/16'] });
    const reply = await ask(`${service.url}/v1/invoices/none`, {
      headers: { 'x-api-key': apiKey, 'x-forwarded-for': '10.1.2.3' },
    });
    expectProblem(reply, 401, 'UNAUTHENTICATED');
  });
});

describe('a token bucket per IP for failed authentication', () => {
  const wrong = (ip: string) => from(ip, 'qt_test_wrong');

  async function exhaust(ip: string): Promise<Reply> {
    for (let i = 0; i < 1000; i++) {
      const reply = await wrong(ip);
      if (reply.status === 429) return reply;
      expectProblem(reply, 401, 'UNAUTHENTICATED');
    }
    throw new Error('1000 failed authentications were not limited');
  }

  test('guessing keys ends in RATE_LIMITED with Retry-After, RateLimit and RateLimit-Policy', async () => {
    const reply = await exhaust('192.0.2.1');
    expectProblem(reply, 429, 'RATE_LIMITED');
    expect(Number(reply.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    expect(reply.headers['ratelimit']).toBeDefined();
    expect(reply.headers['ratelimit-policy']).toBeDefined();
  });

  test('another address, and a key from the same address that is known as valid, are not affected', async () => {
    expect((await from('192.0.2.9', proxied.project.apiKey)).status).toBe(404);
    // The cached key is too old to be used.
    proxied.clock.advance(60_000);
    await exhaust('192.0.2.2');
    expectProblem(await wrong('192.0.2.3'), 401, 'UNAUTHENTICATED');
    expect((await from('192.0.2.2', proxied.project.apiKey)).status).toBe(404);
  });

  test('a process knows the keys that are valid when it starts', async () => {
    const { apiKey } = await addKey(proxied.db, proxied.project.id);
    const revoked = await addKey(proxied.db, proxied.project.id);
    await revokeApiKey(proxied.db, revoked.keyId, unixMs(proxied.clock.now()));
    await proxied.restart();
    await exhaust('192.0.2.5');
    expect((await from('192.0.2.5', apiKey)).status).toBe(404);
    expectProblem(await from('192.0.2.5', revoked.apiKey), 429, 'RATE_LIMITED');
  });

  test('a valid key that a process does not know yet waits as long as Retry-After says, uses up nothing, and is known from then on', async () => {
    const { apiKey } = await addKey(proxied.db, proxied.project.id);
    const { headers } = await exhaust('192.0.2.6');
    expectProblem(await from('192.0.2.6', apiKey), 429, 'RATE_LIMITED');
    proxied.clock.advance(Number(headers['retry-after']) * 1000);
    expect((await from('192.0.2.6', apiKey)).status).toBe(404);
    await exhaust('192.0.2.6');
    expect((await from('192.0.2.6', apiKey)).status).toBe(404);
  });

  test('a new key is valid in a hundred requests at once', async () => {
    const { apiKey } = await addKey(proxied.db, proxied.project.id);
    const replies = await Promise.all(Array.from({ length: 100 }, () => from('192.0.2.7', apiKey)));
    expect(replies.map(({ status }) => status)).toEqual(Array(100).fill(404));
  });

  test('a wrong key costs no query when its bucket is empty, nor when its id was asked for a moment ago', async () => {
    const newKey = () => formatApiKey('devnet', uuidV7(Date.now(), randomBytes(10)), randomBytes(32));
    const asked = newKey();
    expectProblem(await from('192.0.2.10', asked), 401, 'UNAUTHENTICATED');
    await exhaust('192.0.2.8');
    const operator = new pg.Client({ connectionString: proxied.ownerString });
    await operator.connect();
    try {
      // A request for a key now waits until the database gives up, and gets 503.
      await operator.query('begin; lock table api_keys in access exclusive mode');
      for (let i = 0; i < 3; i++) expectProblem(await from('192.0.2.8', newKey()), 429, 'RATE_LIMITED');
      expectProblem(await from('192.0.2.10', asked), 401, 'UNAUTHENTICATED');
    } finally {
      await operator.end();
    }
  });

  test('it fills again with time', async () => {
    const { headers } = await exhaust('192.0.2.4');
    proxied.clock.advance(Number(headers['retry-after']) * 1000);
    expectProblem(await wrong('192.0.2.4'), 401, 'UNAUTHENTICATED');
  });

  test('an IPv6 client owns a /64, however its addresses are written', async () => {
    await exhaust('2001:db8:1:2::1');
    for (const ip of ['2001:db8:1:2::2', '2001:db8:1:2:ffff:ffff:ffff:ffff', '2001:DB8:1:2:0:0:0:9']) {
      expectProblem(await wrong(ip), 429, 'RATE_LIMITED');
    }
    expectProblem(await wrong('2001:db8:1:3::1'), 401, 'UNAUTHENTICATED');
    await exhaust('2001:db8::1');
    expectProblem(await wrong('2001:db8::2'), 429, 'RATE_LIMITED');
    expectProblem(await wrong('2001:db8:0:1::2'), 401, 'UNAUTHENTICATED');
  });
});
