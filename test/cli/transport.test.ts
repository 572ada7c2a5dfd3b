import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openDatabase } from '../../src/core/store/db/database.ts';
import { createCertificate } from '../support/create-certificate.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { startTlsFront } from '../support/tls-front.ts';
import { newDirectory, runCli, runProcess } from './run-cli.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

/** The URL options that verify a server, with the file of the certificate authority. */
function trust(cert: string): string {
  const file = join(newDirectory(), 'ca.crt');
  writeFileSync(file, cert);
  return `sslmode=verify-full&sslrootcert=${encodeURIComponent(file)}`;
}

function listProjects(DATABASE_URL: string) {
  return runCli(['project', 'list', '--json'], { env: { DATABASE_URL } });
}

test('commands, backups and connections that listen speak to a server with a verified certificate, and nobody on the way reads them', async () => {
  const certificate = createCertificate(['localhost']);
  const front = await startTlsFront(database.connection, certificate);
  const DATABASE_URL = front.url(trust(certificate.cert));

  expect(await listProjects(DATABASE_URL)).toMatchObject({ code: 0, stderr: '' });
  const file = join(newDirectory(), 'backup');
  expect(await runCli(['backup', '--to', file], { env: { DATABASE_URL } })).toMatchObject({ code: 0 });
  const heard = await new Promise((resolve, reject) => {
    const db = openDatabase({ connection: DATABASE_URL, poolSize: 2, applicationName: 'test', onError: reject });
    // The first notification says that it's listening.
    db.listen('transport', () => db.close().then(() => resolve('listening'), reject));
  });
  expect(heard).toBe('listening');

  expect(front.admittedCount()).toBeGreaterThanOrEqual(3);
  // Each connection sends these first, so they would appear in plain text.
  for (const text of ['user', 'application_name', database.connection.database]) {
    expect(front.sent().includes(text), text).toBe(false);
  }
  expect(await listProjects(front.url('sslmode=disable'))).toMatchObject({ code: 0 });
  expect(front.sent().includes(database.connection.database)).toBe(true);
});

test('a command takes the URL of its database from a file', async () => {
  const file = join(newDirectory(), 'database-url');
  writeFileSync(file, `${database.connectionString}\n`, { mode: 0o600 });
  const { code, json } = await runCli(['project', 'list', '--json'], { env: { DATABASE_URL_FILE: file } });
  expect({ code, json }).toEqual({ code: 0, json: { data: [] } });
});

test.each([
  ['of another authority', 'localhost', createCertificate(['localhost']).cert, /self-signed certificate.*sslrootcert/],
  ['for another name', 'db1.example.com', null, /certificate's altnames.*correct the host/],
])('a server with a certificate %s is refused before it learns anything', async (_what, name, other, says) => {
  const certificate = createCertificate([name]);
  const front = await startTlsFront(database.connection, certificate);
  const { code, json } = await listProjects(front.url(trust(other ?? certificate.cert)));
  expect(json.error).toMatchObject({ code: 'DATABASE_UNAVAILABLE', message: expect.stringMatching(says) });
  expect(code).toBe(5);
  expect(front.sent().includes(database.connection.database)).toBe(false);
});

test('a server that takes no TLS, or an attacker who says so in its place, is refused before it learns anything', async () => {
  const front = await startTlsFront(database.connection, null);
  const { code, json } = await listProjects(front.url('sslmode=verify-full'));
  expect(json.error.message).toContain('The server does not support SSL connections');
  expect(code).toBe(5);
  expect(front.admittedCount()).toBe(0);
});

test('a remote database without verified TLS is refused by the service and by every command, with the fix and without the password', async () => {
  const env = {
    DATABASE_URL: 'postgres://u:h0rse@db1.example.com/q?sslmode=no-verify',
    QUITTANCE_NILE_NODES: 'http://10.0.0.5:8090',
  };
  const commands = ['start', 'migrate', 'project list', 'backup --to x', 'restore x', 'reconcile', 'master-key status'];
  const [start, ...others] = commands.map((text) => [...text.split(' '), '--json']);
  const outputs = [
    await runProcess(start ?? [], { env }),
    ...(await Promise.all(others.map((args) => runCli(args, { env })))),
  ];
  for (const { code, stdout, stderr } of outputs) {
    expect(code).toBe(2);
    expect(stdout + stderr).toContain('sslmode=verify-full&sslrootcert=');
    expect(stdout + stderr).toContain('QUITTANCE_NILE_NODES connects to 10.0.0.5 in plain text');
    expect(stdout + stderr).toContain('QUITTANCE_ALLOW_PLAINTEXT');
    expect(stdout + stderr).not.toContain('h0rse');
  }
});
