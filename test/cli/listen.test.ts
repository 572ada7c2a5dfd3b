import { createHmac, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { formatApiKey } from '../../src/core/domain/api-key.ts';
import { uuidV7 } from '../../src/core/domain/ids.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import type { ListenOptions } from '../../src/developer/listen/listen.ts';
import { revokeApiKey } from '../../src/faces/operator/subjects/keys.ts';
import { createTestProject, eventually, startTestService, type TestService } from '../support/service.ts';
import {
  type Answering,
  type ListenPlace,
  type Recorded,
  recordEvents,
  runListen,
  startReceiver,
  stateFiles,
} from './listen-run.ts';
import { newDirectory, runCli, startProcess } from './run-cli.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ config: { roles: ['api'] } });
});
afterAll(() => service.stop());

const record = (project: { id: string }, count: number, type?: 'invoice.paid') =>
  recordEvents(service.db, project, count, type);
const startListen = (apiKey: string, options: ListenOptions, place: Partial<ListenPlace> = {}) =>
  runListen(apiKey, options, { server: service.url, ...place });

const expectIds = (receiver: { ids(): string[] }, recorded: Recorded[]) =>
  eventually(receiver.ids, (ids) => ids.length >= recorded.length).then((ids) =>
    expect(ids).toEqual(recorded.map(({ id }) => id)),
  );

describe('what arrives', () => {
  test('is each event from now on, once, in order, with the stored bytes and the headers of a webhook, and verifies with the secret shown', async () => {
    const project = await createTestProject(service.db);
    const receiver = await startReceiver();
    await record(project, 3);
    const running = startListen(project.apiKey, { forwardTo: receiver.url });
    await running.ready();
    const recorded = await record(project, 130);
    await expectIds(receiver, recorded);
    await running.stop();
    const verifier = new Webhook(running.secret());
    for (const [index, { headers, body }] of receiver.arrivals.entries()) {
      expect(body).toBe(recorded[index]?.body);
      expect(headers).toMatchObject({
        'content-type': 'application/json',
        'webhook-protocol': 'v2',
        'user-agent': 'Quittance-Webhooks/2',
      });
      verifier.verify(body, headers as Record<string, string>);
    }
    expect(running.lines().join('')).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    const [listening, ...shown] = running.records();
    expect(listening).toMatchObject({ kind: 'listening', server: service.url, forwardTo: receiver.url });
    expect(shown).toHaveLength(130);
    expect(shown[5]).toMatchObject({
      kind: 'event',
      id: recorded[5]?.id,
      before: recorded[4]?.id,
      type: 'ping',
      status: 200,
    });
  });

  test('after a pause is what came meanwhile, told beforehand, and nothing again', async () => {
    const project = await createTestProject(service.db);
    const receiver = await startReceiver();
    const first = startListen(project.apiKey, { forwardTo: receiver.url });
    await first.ready();
    const before = await record(project, 2);
    await expectIds(receiver, before);
    await first.stop();
    const missed = await record(project, 2);
    const second = startListen(project.apiKey, { forwardTo: receiver.url }, { home: first.home });
    await expectIds(receiver, [...before, ...missed]);
    expect(second.notes).toContainEqual(expect.stringMatching(/^2 events arrived while this command was not running/));
    expect(second.secret()).toBe(first.secret());
    await second.stop();
    const third = startListen(project.apiKey, { forwardTo: receiver.url }, { home: first.home });
    await expectIds(receiver, [...before, ...missed, ...(await record(project, 1))]);
    await third.stop();
  });

  test('begins where --after says, and is of the types of --events only', async () => {
    const project = await createTestProject(service.db);
    const recorded = [
      ...(await record(project, 2)),
      ...(await record(project, 1, 'invoice.paid')),
      ...(await record(project, 2)),
    ];
    const run = async (options: ListenOptions, expected: Recorded[], home = newDirectory()) => {
      const receiver = await startReceiver();
      const running = startListen(project.apiKey, { forwardTo: receiver.url, ...options }, { home });
      await expectIds(receiver, expected);
      await eventually(
        () => stateFiles(running.home).map((file) => JSON.parse(readFileSync(file, 'utf8')).cursor),
        ([cursor]) => cursor === recorded.at(-1)?.id,
      );
      await running.stop();
    };
    await run({ after: 'beginning' }, recorded);
    await run({ after: recorded[2]?.id ?? '' }, recorded.slice(3));
    await run({ after: 'latest' }, []);
    await run({ after: 'beginning', events: ['invoice.paid', 'invoice.expired'] }, recorded.slice(2, 3));
  });
});

describe('an answer', () => {
  test('that is no success is shown with its first line, and the event after it is forwarded', async () => {
    const project = await createTestProject(service.db);
    const [first, second, third] = await record(project, 3);
    const diagnosis = {
      error: 'webhook_verification_failed',
      code: 'SIGNATURE_MISMATCH',
      message: 'the secret is another one',
      diagnosis: { receivedAt: 1, bodySha256: null, bodyBytes: null, secretCheck: null },
    };
    const receiver = await startReceiver(({ id }, response) => {
      if (id === first?.id) response.writeHead(500).end('\n  TypeError: x is \u001b[31mundefined\n  at line 2');
      else if (id === second?.id) response.writeHead(302, { location: `${receiver.url}/there` }).end();
      else response.writeHead(400).end(JSON.stringify(diagnosis));
    });
    const running = startListen(project.apiKey, { forwardTo: receiver.url, after: 'beginning' }, { json: false });
    await expectIds(receiver, [first, second, third] as Recorded[]);
    await eventually(running.lines, (lines) => lines.length === 5);
    await running.stop();
    const [, , failed, redirected, refused] = running.lines();
    expect(failed).toMatch(
      new RegExp(
        `^\\d\\d:\\d\\d:\\d\\d  ping +  ${first?.id}  inv_0 Zoë[^]*\u001b\\[31m→ 500 in \\d+ ms  TypeError: x is [^]*undefined\u001b\\[39m$`,
      ),
    );
    // No text from the server or the receiver can control the terminal.
    expect(failed?.split('\u001b')).toHaveLength(3);
    expect(redirected).toMatch(/→ 302 in \d+ ms/);
    expect(refused).toContain('SIGNATURE_MISMATCH: the secret is another one');
    expect(running.notes).toContain('  to receive this event again, start with --after beginning');
    expect(running.notes).toContain(`  to receive this event again, start with --after ${first?.id}`);
  });

  test('that does not come lets the same event wait, which is told once', async () => {
    const project = await createTestProject(service.db);
    const recorded = await record(project, 2);
    const receiver = await startReceiver((_arrival, response) => response.socket?.destroy());
    const running = startListen(project.apiKey, { forwardTo: receiver.url, after: 'beginning' });
    await eventually(
      () => receiver.ids(),
      (ids) => ids.length >= 3,
    );
    receiver.answering = (_arrival, response) => response.end();
    await eventually(
      () => running.records().filter(({ kind }) => kind === 'event').length,
      (count) => count === 2,
    );
    await running.stop();
    expect(new Set(receiver.ids().slice(0, -1))).toEqual(new Set([recorded[0]?.id]));
    expect(running.notes.filter((note) => note.includes('waits until it responds'))).toHaveLength(1);
    expect(running.notes).toContain(`${receiver.url} responds again`);
  });

  test('under way when it is stopped is waited for, so that the event does not come again', async () => {
    const project = await createTestProject(service.db);
    const recorded = await record(project, 2);
    const receiver = await startReceiver(() => undefined);
    let answer: () => void = () => undefined;
    receiver.answering = (_arrival, response) => {
      answer = () => response.end();
    };
    const first = startListen(project.apiKey, { forwardTo: receiver.url, after: 'beginning' });
    await expectIds(receiver, recorded.slice(0, 1));
    first.abort();
    answer();
    expect(await first.failure).toBeNull();
    receiver.answering = (_arrival, response) => response.end();
    const second = startListen(project.apiKey, { forwardTo: receiver.url }, { home: first.home });
    await expectIds(receiver, recorded);
    await second.stop();
  });
});

describe('it ends and says what to do', () => {
  test('when the key is revoked', async () => {
    const project = await createTestProject(service.db);
    const running = startListen(project.apiKey, { forwardTo: 'http://127.0.0.1:1/' });
    await running.ready();
    await revokeApiKey(service.db, project.keyId, unixMs(Date.now()));
    expect(await running.failure).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(/does not accept the API key.*revoked/),
    });
  });

  test('when the server no longer knows where it stood, and --after goes on', async () => {
    const [project, other] = [await createTestProject(service.db), await createTestProject(service.db)];
    const [foreign] = await record(other, 1);
    const receiver = await startReceiver();
    const running = startListen(project.apiKey, { forwardTo: receiver.url, after: foreign?.id ?? '' });
    expect(await running.failure).toMatchObject({
      code: 'NOT_FOUND',
      message: expect.stringMatching(/has no event evt_.*--after latest.*--after beginning/),
    });
    expect(stateFiles(running.home)).toEqual([]);
  });

  test('when its state is damaged, which --after mends; the state is for its owner only', async () => {
    const project = await createTestProject(service.db);
    const receiver = await startReceiver();
    const options = { forwardTo: receiver.url };
    const first = startListen(project.apiKey, options);
    const [file = ''] = await first.ready();
    await first.stop();
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(statSync(`${first.home}/quittance/listen`).mode & 0o777).toBe(0o700);
    const whole = readFileSync(file, 'utf8');
    expect(whole).not.toContain(project.apiKey);
    for (const damaged of [
      '',
      '{"version":1',
      'null',
      whole.replace(/"cursor":.*/, '"cursor":"evt_1"}'),
      whole.replace('key_', 'key_x'),
    ]) {
      writeFileSync(file, damaged);
      expect(await startListen(project.apiKey, options, { home: first.home }).failure).toMatchObject({
        message: expect.stringContaining(`${file} is damaged, so the position in the feed is unknown`),
      });
    }
    const mended = startListen(project.apiKey, { ...options, after: 'latest' }, { home: first.home });
    await eventually(
      () => readFileSync(file, 'utf8'),
      (text) => text === whole,
    );
    await mended.stop();
  });

  test('when another one forwards the same to the same place', async () => {
    const project = await createTestProject(service.db);
    const receiver = await startReceiver();
    const first = startListen(project.apiKey, { forwardTo: receiver.url });
    await first.ready();
    const second = startListen(project.apiKey, { forwardTo: receiver.url }, { home: first.home });
    expect(await second.failure).toMatchObject({
      code: 'CONFLICT',
      message: `process ${process.pid} already forwards this key's events to ${receiver.url}: stop it, or forward to another URL`,
    });
    const elsewhere = startListen(project.apiKey, { forwardTo: `${receiver.url}2` }, { home: first.home });
    await eventually(
      () => stateFiles(first.home),
      (files) => files.length === 2,
    );
    await Promise.all([first.stop(), elsewhere.stop()]);
  });

  test('before any request, when the key, the server or an option is not one for it', async () => {
    const live = formatApiKey('mainnet', uuidV7(1, randomBytes(10)), randomBytes(32));
    const receiver = await startReceiver();
    const { apiKey } = service.project;
    const forwardTo = receiver.url;
    const refused: [ListenOptions, RegExp][] = [
      [{ forwardTo, apiKey: live }, /^the key is a live key/],
      [
        { forwardTo, apiKey: `${apiKey.slice(0, -1)}!` },
        /^the API key \(83 characters, not shown\) is not a Quittance key/,
      ],
      [{ forwardTo, server: 'http://pay.example.com' }, /so anyone on the network path could read the API key/],
      [
        { forwardTo, server: 'https://u:p@pay.example.com' },
        /^the server contains a user name or a password \(not shown\)/,
      ],
      [{ forwardTo, server: 'https://pay.example.com/?a' }, /has a query or a fragment/],
      [{ forwardTo, server: 'pay.example.com' }, /starts with http/],
      [{ forwardTo: 'ftp://localhost' }, /^--forward-to is "ftp:\/\/localhost"/],
      [{ forwardTo: 'http://u:secret@localhost/' }, /^--forward-to contains a user name or a password \(not shown\)/],
      [{}, /^--forward-to is missing/],
      [
        { forwardTo, events: ['invoice.payed'] },
        /^--events has the unknown type "invoice.payed": choose from invoice.pending/,
      ],
      [{ forwardTo, after: 'evt_1' }, /^--after is "evt_1"/],
    ];
    for (const [options, message] of refused) {
      const error = await startListen(apiKey, options, { server: receiver.url }).failure;
      expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(message) });
      expect(error?.message).not.toContain(options.apiKey ?? apiKey);
    }
    expect(receiver.arrivals).toEqual([]);
  });

  test('when the server answers with anything but a feed', async () => {
    const answers: [Answering, RegExp][] = [
      [
        (_, response) => response.writeHead(302, { location: service.url }).end(),
        /returned 302, but Quittance does not follow redirects/,
      ],
      [(_, response) => response.end('<html>\u001b[2J'), /returned 200, but not a page of events: <html>.\[2J$/],
      [(_, response) => response.writeHead(404).end('{"detail":"nothing here"}'), /returned 404: nothing here$/],
      [(_, response) => response.end(Buffer.alloc(5_000_000, 0x20)), /has more than 4194304 bytes/],
      [
        (_, response) => response.end('{"data":[{"id":"evt_1"}],"hasMore":false,"latest":null}'),
        /contains an entry that is not an event/,
      ],
      [
        (_, response) => response.end('{"data":[],"hasMore":true,"latest":null}'),
        /its feed returned a page that does not advance past the requested position$/,
      ],
    ];
    for (const [answering, message] of answers) {
      const stranger = await startReceiver(answering);
      const server = stranger.url.replace('/hook', '');
      const running = startListen(service.project.apiKey, { forwardTo: stranger.url }, { server });
      expect(await running.failure).toMatchObject({ message: expect.stringMatching(message) });
    }
  });
});

test('a server that is away is waited for as long as it asks, which is told once', async () => {
  const asked: number[] = [];
  const stranger = await startReceiver((_, response) => {
    asked.push(performance.now());
    if (asked.length > 1) response.end('{"data":[],"hasMore":false,"latest":null}');
    else response.writeHead(503, { 'retry-after': '2' }).end();
  });
  const server = stranger.url.replace('/hook', '');
  const running = startListen(service.project.apiKey, { forwardTo: stranger.url }, { server });
  await running.ready();
  await running.stop();
  expect((asked[1] ?? 0) - (asked[0] ?? 0)).toBeGreaterThan(1990);
  expect(running.notes.slice(0, 2)).toEqual([
    `cannot read the feed of ${server}: it returned 503; retrying until it responds`,
    `${server} responds again`,
  ]);
});

test('killed, restarted and with its server restarted, it has every event answered exactly once, in order', async () => {
  const project = await createTestProject(service.db);
  const env = { XDG_STATE_HOME: newDirectory(), QUITTANCE_API_KEY: project.apiKey, QUITTANCE_URL: service.url };
  const answered: string[] = [];
  const receiver = await startReceiver(({ id }, response) => {
    answered.push(id);
    response.end();
  });
  const cursor = () => {
    const [file] = stateFiles(env.XDG_STATE_HOME);
    return file === undefined ? undefined : JSON.parse(readFileSync(file, 'utf8')).cursor;
  };
  const start = () => {
    const child = startProcess(['listen', '--forward-to', receiver.url, '--json'], { env });
    child.stdout.resume();
    child.stderr.resume();
    const end = async (signal: NodeJS.Signals) => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill(signal);
      await once(child, 'exit');
    };
    onTestFinished(() => end('SIGKILL'));
    return { child, end };
  };
  const first = start();
  await eventually(cursor, (seen) => seen !== undefined);
  // It's killed while the receiver hasn't answered an event yet.
  const recorded = await record(project, 60);
  const normal = receiver.answering;
  const killed = new Promise<void>((resolve) => {
    receiver.answering = (arrival, response) => {
      if (answered.length < 30) return normal(arrival, response);
      receiver.answering = normal;
      void first.end('SIGKILL').then(resolve);
    };
  });
  await killed;
  const second = start();
  const until = (wanted: Recorded[]) => eventually(cursor, (seen) => seen === wanted.at(-1)?.id);
  await until(recorded);
  await service.stopService();
  await service.restart();
  recorded.push(...(await record(project, 20)));
  await until(recorded);
  // Killed between two events, it has nothing to repeat.
  await second.end('SIGKILL');
  recorded.push(...(await record(project, 20)));
  const third = start();
  await until(recorded);
  await third.end('SIGINT');
  expect(third.child.exitCode).toBe(0);
  expect(answered).toEqual(recorded.map(({ id }) => id));
});

test('--print-secret prints the secret of the key without a request', async () => {
  const env = { QUITTANCE_API_KEY: service.project.apiKey };
  const [text, live] = await Promise.all([
    runCli(['listen', '--print-secret'], { env }),
    runCli(['listen', '--print-secret', '--json', '--api-key', 'qt_live_x']),
  ]);
  const derived = createHmac('sha256', env.QUITTANCE_API_KEY).update('quittance listen v1').digest('base64');
  expect(text).toMatchObject({ code: 0, stdout: `whsec_${derived}\n` });
  expect(live).toMatchObject({ code: 2, json: { error: { code: 'INVALID_ARGUMENT' } } });
});
