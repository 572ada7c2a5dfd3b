import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { connect as connectTls, createServer as createTlsServer } from 'node:tls';
import { types } from 'node:util';
import { Decrypter, Encrypter } from 'age-encryption';
import { createTransport } from 'nodemailer';
import pg from 'pg';
import { Client as HttpClient } from 'undici';
import { describe, expect, test } from 'vitest';
import { createCertificate } from '../../../test/support/create-certificate.ts';
import { AppError } from '../domain/errors.ts';
import { createLogger } from './log.ts';

const SECRET = 'C4N4RYxyz0123456789';
const SQL = 'select id from invoices where checkout_token = $1';
/** Like a client of node-postgres: it holds the keys of its connection and the text of every prepared statement. */
const client = Object.assign(
  Object.create({ constructor: class Client {} }),
  { secretKey: 987_654_321, processID: 4711, connection: { parsedStatements: { one: SQL.repeat(300) } } },
  { password: SECRET },
);

function lineOf(error: unknown): { line: string; err: Record<string, unknown> } {
  const lines: string[] = [];
  const log = createLogger({ level: 'trace', destination: { write: (line: string) => void lines.push(line) } });
  log.warn({ err: error }, 'failed');
  const line = lines.join('');
  return { line, err: JSON.parse(line).err };
}

async function thrownBy(work: () => Promise<unknown>): Promise<unknown> {
  return work().then(
    () => {
      throw new Error('nothing was thrown');
    },
    (error: unknown) => error,
  );
}

function databaseError(more: object): Error {
  const error = new pg.DatabaseError(
    'duplicate key value violates unique constraint "invoices_external_id"',
    200,
    'error',
  );
  return Object.assign(error, {
    code: '23505',
    severity: 'ERROR',
    table: 'invoices',
    routine: '_bt_check_unique',
    ...more,
  });
}

const httpError = () =>
  thrownBy(async () => {
    const http = new HttpClient('http://127.0.0.1:1');
    try {
      await http.request({ path: '/', method: 'POST', body: SECRET, headers: { 'x-api-key': SECRET } });
    } finally {
      await http.destroy();
    }
  });

const socketError = () =>
  thrownBy(() => new Promise((resolve, reject) => connect(1, '127.0.0.1', () => resolve(null)).on('error', reject)));

/** Returns the error that `ask` throws against a server on a free port. */
async function thrownAt(server: Server, ask: (port: number) => Promise<unknown>): Promise<unknown> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    return await thrownBy(() => ask((server.address() as AddressInfo).port));
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
}

/** The error of a mail server that refuses the password. */
const mailError = () =>
  thrownAt(
    createServer((socket) => {
      const replies = [['EHLO', '250-mail\r\n250 AUTH PLAIN'] as const, ['AUTH', '535 wrong password'] as const];
      socket.write('220 mail\r\n');
      socket.on('error', () => undefined);
      socket.on('data', (said) => {
        const reply = replies.find(([command]) => String(said).startsWith(command))?.[1] ?? '221 bye';
        socket.write(`${reply}\r\n`);
        if (reply.startsWith('221')) socket.end();
      });
    }),
    (port) => {
      const mail = createTransport({ host: '127.0.0.1', port, ignoreTLS: true, auth: { user: 'shop', pass: SECRET } });
      return mail.sendMail({ from: 'a@example.com', to: 'b@example.com', subject: SECRET, text: SECRET });
    },
  );

/** The error of gRPC's transport when a server ends the stream. */
const http2Error = () =>
  thrownAt(
    createHttp2Server().on('stream', (stream) => stream.on('error', () => undefined).close(2)),
    (port) =>
      new Promise((resolve, reject) => {
        const session = connectHttp2(`http://127.0.0.1:${port}`);
        const request = session.request({ ':method': 'POST', 'x-api-key': SECRET });
        request.on('error', reject).on('close', () => session.destroy());
        request.on('end', resolve).resume().end(SECRET);
      }),
  );

/** The error for a certificate with another name. */
const tlsError = () => {
  const { key, cert } = createCertificate(['other.example']);
  return thrownAt(
    createTlsServer({ key, cert }).on('tlsClientError', () => undefined),
    (port) =>
      new Promise((resolve, reject) => {
        const socket = connectTls({ host: '127.0.0.1', port, ca: cert, servername: 'pay.example' }, () =>
          resolve(null),
        );
        socket.on('error', reject);
      }),
  );
};

const ageError = () =>
  thrownBy(async () => {
    const [encrypter, decrypter] = [new Encrypter(), new Decrypter()];
    encrypter.setPassphrase(SECRET);
    encrypter.setScryptWorkFactor(1);
    decrypter.addPassphrase(`${SECRET}!`);
    await decrypter.decrypt(await encrypter.encrypt(SECRET));
  });

const cyclic = () => {
  const error = new Error('around');
  return Object.assign(error, { cause: new AggregateError([error, error, error], 'again', { cause: error }) });
};

const hostile = () => {
  const refuse = () => {
    throw new Error(SECRET);
  };
  return Object.defineProperties(new Error('hostile'), {
    code: { get: refuse },
    cause: { get: refuse },
    stack: { get: refuse },
    client: { enumerable: true, get: refuse },
  });
};

describe('an error in the log', () => {
  test.each([
    ['of the database', () => databaseError({ client, detail: `Key (token)=(${SECRET}) already exists.`, where: SQL })],
    [
      'of the database about a value',
      () => databaseError({ code: '22P02', message: `invalid input syntax for type uuid: "${SECRET}"` }),
    ],
    [
      'of a connection that was lost',
      () => Object.assign(new Error('terminating connection'), { code: '57P01', client }),
    ],
    ['of the system', socketError],
    ['of HTTP', httpError],
    ['of HTTP/2', http2Error],
    ['of TLS', tlsError],
    ['of a mail server', mailError],
    ['of age', ageError],
    [
      'of ours around one of the database',
      () => new AppError('DATABASE_UNAVAILABLE', 'away', { retryable: true, cause: databaseError({ client }) }),
    ],
    [
      'of several',
      () =>
        new AggregateError(
          Array.from({ length: 500 }, () => databaseError({ client })),
          'all failed',
        ),
    ],
    ['that is its own cause', cyclic],
    [
      'with ten thousand causes',
      () =>
        Array.from({ length: 10_000 }).reduce<Error>((cause) => new Error('x', { cause }), databaseError({ client })),
    ],
    ['that throws when it is read', hostile],
    [
      'that can be read by nobody',
      () =>
        new Proxy(new Error('x'), {
          get: () => {
            throw new Error(SECRET);
          },
          getPrototypeOf: () => {
            throw new Error(SECRET);
          },
        }),
    ],
    [
      'with a very long message',
      () => Object.assign(new Error('x'.repeat(1_000_000)), { code: 'y'.repeat(1_000_000) }),
    ],
    ['that is none', () => ({ message: 'thrown as it is', client })],
    ['that is a text', () => 'thrown as it is'],
  ])('%s is short, and shows no secret, no statement and no value', async (_, make) => {
    // Detect a promise without accessing properties that may throw.
    const made: unknown = make();
    const { line } = lineOf(types.isPromise(made) ? await made : made);
    expect(line.length).toBeLessThan(6000);
    expect(line).not.toContain(SECRET);
    expect(line).not.toContain(SQL);
    expect(line).not.toContain('987654321');
  });

  test('tells what it is, where it comes from, and why', async () => {
    const { err } = lineOf(
      new AppError('DATABASE_UNAVAILABLE', 'away', { retryable: true, cause: databaseError({ client }) }),
    );
    expect(err).toMatchObject({ type: 'AppError', message: 'away', code: 'DATABASE_UNAVAILABLE', retryable: true });
    expect(err['stack']).toMatch(/^ +at .*error-fields\.test/);
    expect(err['cause']).toMatchObject({ code: '23505', table: 'invoices', routine: '_bt_check_unique' });
    expect(lineOf(await socketError()).err).toMatchObject({ code: 'ECONNREFUSED', syscall: 'connect', port: 1 });
    expect(lineOf(await http2Error()).err).toMatchObject({ code: 'ERR_HTTP2_STREAM_ERROR' });
    expect(lineOf(await tlsError()).err).toMatchObject({ code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
    expect(lineOf(await mailError()).err).toMatchObject({ code: 'EAUTH', message: expect.stringContaining('535') });
    expect(lineOf(await ageError()).err).toMatchObject({ type: 'Error', stack: expect.stringContaining('age') });
    expect(lineOf(new AggregateError([databaseError({})], 'all')).err).toMatchObject({ errors: [{ code: '23505' }] });
  });

  test('under any name, in a list, and deep down, is one', () => {
    const lines: string[] = [];
    const log = createLogger({ level: 'trace', destination: { write: (line: string) => void lines.push(line) } });
    log.warn(
      {
        failure: databaseError({ client }),
        all: [databaseError({ client })],
        a: { b: databaseError({ client }) },
        client,
      },
      'x',
    );
    const { failure, all, a, client: named } = JSON.parse(lines.join(''));
    for (const each of [failure, all[0], a.b]) expect(each).toMatchObject({ code: '23505', table: 'invoices' });
    expect(named).toBe('[Client]');
    expect(lines.join('')).not.toContain('parsedStatements');
  });
});
