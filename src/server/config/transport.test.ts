import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { createCertificate } from '../../../test/support/create-certificate.ts';
import { type ConfigResult, readConfig } from './config.ts';

const NODES = { QUITTANCE_MAINNET_NODES: 'https://a.example,https://b.test' };
const CA = join(mkdtempSync(join(tmpdir(), 'quittance-ca-')), 'ca.crt');
afterAll(() => rmSync(dirname(CA), { recursive: true }));
writeFileSync(CA, createCertificate(['localhost']).cert);

/** Returns the problems of a configuration, or an empty list if it is accepted. */
function problems(env: NodeJS.ProcessEnv): string[] {
  const result: ConfigResult = readConfig(env);
  return result.kind === 'ok' ? [] : result.errors.map(({ message }) => message);
}

function database(url: string, allowed = ''): string[] {
  return problems({ DATABASE_URL: url, QUITTANCE_ALLOW_PLAINTEXT: allowed });
}

describe('the way to the database', () => {
  test.each([
    'postgres://u:p@127.0.0.1/q',
    'postgres://u:p@127.9.9.9:6432/q',
    'postgres://u:p@[::1]/q',
    'postgres://u:p@localhost/q',
    'postgres://u:p@LOCALHOST/q?sslmode=disable',
    'postgres://u:p@%2Frun%2Fpostgresql/q',
    'postgres:///q?host=/run/postgresql',
    'postgres://u:p@db1/q?host=/run/postgresql',
    'postgres:///q',
    'postgres://u:p@db1/q?sslmode=verify-full',
    `postgres://u:p@db1/q?sslmode=verify-full&sslrootcert=${CA}`,
    `postgres://u:p@db1/q?sslrootcert=${CA}`,
    'postgres://u:p@db1/q?ssl=true',
    'postgres://u:p@db1/q?ssl=1',
    'postgres://u:p@db1/q?sslnegotiation=direct',
    // node-postgres 8 treats these as verify-full.
    'postgres://u:p@db1/q?sslmode=prefer',
    'postgres://u:p@db1/q?sslmode=require',
    'postgres://u:p@db1/q?sslmode=verify-ca',
    'postgres://u:p@db1/q?sslmode=disable&sslmode=verify-full',
    'postgres://u:p@db1/q?uselibpqcompat=true&sslmode=verify-full',
  ])('%s is taken', (url) => {
    expect(database(url)).toEqual([]);
  });

  test.each([
    'postgres://u:h0rse@db1/q',
    'postgres://u:h0rse@db1.example.com:5432/q',
    'postgres://u:h0rse@10.0.0.1/q',
    'postgres://u:h0rse@192.168.1.1/q',
    'postgres://u:h0rse@[fd00::1]/q',
    'postgres://u:h0rse@localhost.example.com/q',
    // A name server resolves this name.
    'postgres://u:h0rse@db.localhost/q',
    'postgres://u:h0rse@127.0.0.1.example.com/q',
    'postgres://u:h0rse@127.0.0.999/q',
    'postgres://u:h0rse@0.0.0.0/q',
    'postgres://u:h0rse@localhost,db1/q',
    'postgres://u:h0rse@localhost/q?host=db1',
    'postgres://u:h0rse@localhost/q?host=localhost&host=db1',
    // node-postgres ignores hostaddr.
    'postgres://u:h0rse@db1/q?hostaddr=127.0.0.1',
    'postgres://u:h0rse@db1/q?sslmode=disable',
    'postgres://u:h0rse@db1/q?sslmode=verify-full&sslmode=disable',
    `postgres://u:h0rse@db1/q?sslmode=disable&sslrootcert=${CA}`,
    'postgres://u:h0rse@db1/q?sslmode=',
    'postgres://u:h0rse@db1/q?SSLMODE=verify-full',
    'postgres://u:h0rse@db1/q?ssl=0',
    'postgres://u:h0rse@db1/q?ssl=',
  ])('%s is refused, for it is plain text', (url) => {
    const [message, ...others] = database(url);
    expect(message).toMatch(/^DATABASE_URL connects to \S+ without TLS/);
    expect(message).toContain('sslmode=verify-full&sslrootcert=');
    expect(message).toContain('QUITTANCE_ALLOW_PLAINTEXT');
    expect(message).not.toContain('h0rse');
    expect(others).toEqual([]);
  });

  test.each([
    'postgres://u:h0rse@db1/q?sslmode=no-verify',
    'postgres://u:h0rse@db1/q?ssl=no-verify',
    'postgres://u:h0rse@db1/q?uselibpqcompat=true&sslmode=prefer',
    'postgres://u:h0rse@db1/q?uselibpqcompat=true&sslmode=require',
    // Any certificate from that CA would be accepted, because the name isn't compared.
    `postgres://u:h0rse@db1/q?uselibpqcompat=true&sslmode=require&sslrootcert=${CA}`,
    `postgres://u:h0rse@db1/q?uselibpqcompat=true&sslmode=verify-ca&sslrootcert=${CA}`,
  ])('%s is refused, for it does not verify who answers', (url) => {
    expect(database(url)).toEqual([
      expect.stringMatching(/^DATABASE_URL connects to db1 over TLS that doesn't verify the server/),
    ]);
  });

  test.each([
    ['postgres://u:h0rse@db1/q?sslmode=verify-full&sslrootcert=/none/h0rse.crt', /cannot be read \(ENOENT\)/],
    ['postgres://u:h0rse@127.0.0.1/q?sslkey=h0rse', /cannot be read \(ENOENT\)/],
    ['postgres://u:h0rse@127.0.0.1/q?ssl=false', /an ssl option other than "true", "1" or "0"/],
    ['postgres://u:h0rse@127.0.0.1/q?ssl=verify-full', /an ssl option other than/],
    ['postgres://u:h0rse@127.0.0.1/q?sslnegotiation=h0rse', /options that node-postgres rejects/],
    ['postgres://u:h0rse@127.0.0.1/q?uselibpqcompat=true&sslmode=verify-ca', /options that node-postgres rejects/],
  ])('%s is refused, for node-postgres cannot use it', (url, says) => {
    expect(database(url)).toEqual([expect.stringMatching(says)]);
    expect(database(url).join()).not.toContain('h0rse');
  });

  test('the variables of PostgreSQL, which node-postgres reads too, count as they do there', () => {
    vi.stubEnv('PGHOST', 'db1');
    expect(database('postgres:///q')).toHaveLength(1);
    expect(database('postgres://127.0.0.1/q')).toEqual([]);
    vi.stubEnv('PGSSLMODE', 'verify-full');
    expect(database('postgres:///q')).toEqual([]);
    expect(database('postgres:///q?ssl=0')).toHaveLength(1);
    vi.stubEnv('PGSSLMODE', 'no-verify');
    expect(database('postgres:///q')).toHaveLength(1);
    vi.unstubAllEnvs();
  });

  test('a host is allowed by its own name only, however it is spelt', () => {
    expect(database('postgres://u:p@Db1.Internal/q', 'db1.internal')).toEqual([]);
    expect(database('postgres://u:p@10.0.0.1/q?sslmode=no-verify', '10.0.0.2, 10.0.0.1')).toEqual([]);
    expect(database('postgres://u:p@[FD00:0::1]/q', 'fd00::0001')).toEqual([]);
    expect(database('postgres://u:p@db1.internal/q', 'internal')).toHaveLength(1);
    expect(database('postgres://u:p@db1/q?host=db2', 'db1')).toHaveLength(1);
  });
});

describe('the way to the nodes of a real network', () => {
  const TWO = ['QUITTANCE_MAINNET_NODES', 'QUITTANCE_NILE_NODES'];

  test.each([
    'https://a.example',
    'grpcs://a.example:50051',
    'http://127.0.0.1:8090#solidity=http://localhost:8091',
    'grpc://[::1]:50051',
    'https://a.example#grpc=grpcs://a.example:50051',
  ])('%s is taken', (entry) => {
    for (const variable of TWO) expect(problems({ [variable]: entry })).toEqual([]);
  });

  test.each([
    ['http://a.example', 'a.example'],
    ['HTTP://A.example:8090/secret', 'a.example'],
    ['grpc://a.example:50051', 'a.example'],
    ['http://10.0.0.5:8090', '10.0.0.5'],
    ['http://192.168.0.5:8090', '192.168.0.5'],
    ['http://[fd00::5]:8090', '[fd00::5]'],
    ['http://node.localhost:8090', 'node.localhost'],
    ['https://a.example#solidity=http://b.example:8091', 'b.example'],
    ['https://a.example#grpc=grpc://b.example:50051', 'b.example'],
    ['http://127.0.0.1:8090#solidity=http://b.example:8091', 'b.example'],
    ['https://a.example#jsonrpc=http://b.example:8545', 'b.example'],
  ])('%s is refused unless %s is allowed by name', (entry, host) => {
    const bare = host.replace(/[[\]]/g, '');
    for (const variable of TWO) {
      const [message, ...others] = problems({ [variable]: entry });
      expect(message).toContain(`${variable} connects to ${host} in plain text`);
      expect(message).toContain('QUITTANCE_ALLOW_PLAINTEXT');
      expect(message).not.toContain('secret');
      expect(others).toEqual([]);
      expect(problems({ [variable]: entry, QUITTANCE_ALLOW_PLAINTEXT: bare })).toEqual([]);
      expect(problems({ [variable]: entry, QUITTANCE_ALLOW_PLAINTEXT: `x.${host}` })).not.toEqual([]);
    }
  });

  test('is free on a private network, which holds no money', () => {
    const devnet = { QUITTANCE_DEVNET_NODES: 'http://10.0.0.5:8090,grpc://a.example:50051' };
    expect(problems({ ...devnet, QUITTANCE_DEVNET_USDT: 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t' })).toEqual([]);
  });
});

test('a process that is told to verify no certificate at all is refused where it has something to lose', () => {
  const off = { NODE_TLS_REJECT_UNAUTHORIZED: '0' };
  expect(problems({ ...NODES, ...off })).toEqual([expect.stringContaining('NODE_EXTRA_CA_CERTS')]);
  expect(problems({ DATABASE_URL: 'postgres://db1/q?sslmode=verify-full', ...off })).toHaveLength(1);
  expect(problems(off)).toEqual([]);
  expect(problems({ ...NODES, NODE_TLS_REJECT_UNAUTHORIZED: '1' })).toEqual([]);
});
