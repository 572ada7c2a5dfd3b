import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { decodeId, encodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import { type UnixMs, unixMs } from '../../src/core/domain/time.ts';
import { listOperatorActions } from '../../src/core/store/access/audit-log.ts';
import { findOpenAlarms, raiseAlarm } from '../../src/core/store/chain/alarms.ts';
import { LEASE_MS } from '../../src/core/store/outbox/deliveries.ts';
import { DELIVERIES_CHANNEL, insertEvents, type NewEvent } from '../../src/core/store/outbox/events.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { enableEndpoint } from '../../src/faces/operator/subjects/webhook-sending.ts';
import { withClient } from '../support/postgres-template.ts';
import { eventually } from '../support/service.ts';
import { whileWaiting } from '../support/while-waiting.ts';
import { type CliOutput, openLedger, runCli } from './run-cli.ts';

const ledger = await openLedger();
const { database, db, query, newProject } = ledger;

const env = {
  ...ledger.env,
  QUITTANCE_MASTER_KEY: randomBytes(32).toString('base64'),
  QUITTANCE_WEBHOOK_LOCAL_TARGETS: 'allow',
};

function cli(...args: string[]): Promise<CliOutput> {
  return runCli(args, { env });
}

/** Returns the result of a command that must succeed. */
async function json(...args: string[]) {
  const { code, json: result, stderr } = await runCli([...args, '--json'], { env });
  expect({ code, stderr, error: result?.error }).toEqual({ code: 0, stderr: '', error: undefined });
  return result;
}

let urlCount = 0;
/** Adds an endpoint to a project with the command. */
async function newEndpoint(projectId: string, ...args: string[]): Promise<{ id: string; whe: string; secret: string }> {
  urlCount += 1;
  const url = `http://localhost:3000/hook/${urlCount}`;
  const { endpointId, secret } = await json('webhook', 'add', '--project', projectId, '--url', url, ...args);
  return { id: decodeId('whe', endpointId) ?? '', whe: endpointId, secret };
}

/** Writes an event and its deliveries, as a status change does. */
async function newEvent(project: { id: string }, at: number, type: NewEvent['type'] = 'transfer.unmatched') {
  const id = uuidV7(at, randomBytes(10));
  const event = { id, projectId: project.id, type, invoiceId: null, transferId: null, sequence: 1, body: '{}' };
  await insertEvents(db, 'nile', [event], at as UnixMs);
  return { id, evt: encodeId('evt', id) };
}

/** Sets the state of a delivery. */
async function setDelivery(
  event: { id: string },
  status: 'pending' | 'delivered' | 'dead',
  nextAttemptAt = Date.now(),
) {
  const error = status === 'delivered' ? null : 'http_500: the endpoint returned 500';
  await query(
    `update deliveries set status = $2, attempt_count = 12, next_attempt_at = $3, last_error = $4,
       finished_at = case when $2 = 'pending' then null else now() end where event_id = $1`,
    [event.id, status, new Date(nextAttemptAt), error],
  );
}

const DAY = 86_400_000;
const iso = (time: number) => new Date(time).toISOString();

describe('webhook add', () => {
  test('takes a filter, a description and a secret from standard input, which it does not repeat', async () => {
    const { projectId } = await newProject();
    const secret = `whsec_${randomBytes(64).toString('base64')}`;
    const args = [
      'webhook',
      'add',
      '--project',
      projectId,
      '--url',
      'http://localhost:3000/a',
      '--secret',
      '-',
      '--json',
    ];
    const added = await runCli([...args, '--events', 'invoice.paid,ping', '--description', ' Küche '], {
      env,
      stdin: `${secret}\n`,
    });
    expect(added.json).toEqual({
      endpointId: expect.stringMatching(/^whe_/),
      projectId,
      network: 'nile',
      url: 'http://localhost:3000/a',
      description: 'Küche',
      eventTypes: ['invoice.paid', 'ping'],
      secret: null,
    });
    const { data } = await json('webhook', 'list', '--project', projectId);
    expect(data).toMatchObject([
      {
        status: 'active',
        eventTypes: ['invoice.paid', 'ping'],
        description: 'Küche',
        undelivered: 0,
        lastAttempt: null,
      },
    ]);
    expect(data[0].secrets).toEqual([{ createdAt: expect.any(String), endsAt: null }]);
    expect(JSON.stringify(data)).not.toContain('whsec_');
  });

  test('a secret that was typed is used and not repeated, with a word about the history of the shell', async () => {
    const { projectId } = await newProject();
    const secret = `whsec_${randomBytes(24).toString('base64')}`;
    const args = ['webhook', 'add', '--project', projectId, '--url', 'https://shop.example.com/', '--secret', secret];
    const { stdout, stderr } = await cli(...args);
    expect(stdout).toContain('as given, not shown');
    expect(stderr).toContain('shell history');
    expect(stdout + stderr).not.toContain(secret);
    const endpointId = /whe_\w+/.exec(stdout)?.[0] ?? '';
    const same = await cli('webhook', 'rotate', endpointId, '--secret', secret);
    expect(same).toMatchObject({ code: 4, stderr: expect.stringContaining('already signs with this secret') });
    const other = `whsec_${randomBytes(24).toString('base64')}`;
    const rotated = await cli('webhook', 'rotate', endpointId, '--secret', other);
    expect(rotated).toMatchObject({ code: 0, stdout: expect.stringContaining('not shown') });
    expect(rotated.stdout + rotated.stderr).not.toContain(other);
  });

  test('refuses what cannot be, says how to do it, and repeats no secret', async () => {
    const { projectId } = await newProject('mainnet');
    const add = (...args: string[]) => cli('webhook', 'add', '--project', projectId, ...args);
    const url = ['--url', 'https://shop.example.com/hook'];
    const short = `whsec_${Buffer.alloc(23, 1).toString('base64')}`;
    expect(await add(...url, '--secret', short)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/--secret \(\d+ characters, not shown\) is not .*24 to 64 bytes/),
    });
    expect((await add(...url, '--secret', short)).stderr).not.toContain(short);
    const endless = await runCli(['webhook', 'add', '--project', projectId, ...url, '--secret', '-'], {
      env,
      stdin: 'x'.repeat(5000),
    });
    expect(endless).toMatchObject({ code: 2, stderr: expect.stringContaining('more than one secret') });
    expect(await add(...url, '--events', 'invoice.paid,invoice.payed')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/"invoice.payed".*invoice.paid, .*transfer.duplicate/),
    });
    expect(await add(...url, '--events', '')).toMatchObject({ code: 2 });
    expect(await add(...url, '--description', 'a\u001b[2Jb')).toMatchObject({ code: 2 });
    const pasted = await add(...url, '--description', `till, ${short}`);
    expect(pasted).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/--description: this looks like a Quittance secret/),
    });
    expect(pasted.stderr).not.toContain(short);
    for (const target of ['http://shop.example.com/', 'https://127.0.0.1/', 'https://[::ffff:10.0.0.1]/']) {
      expect(await add('--url', target)).toMatchObject({ code: 2 });
    }
    expect((await json('webhook', 'list', '--project', projectId)).data).toEqual([]);
    expect((await add(...url)).code).toBe(0);
    expect(await add(...url, '--events', 'invoice.paid')).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('webhook update whe_'),
    });
  });

  test('with a database elsewhere and without a master key it says how to make one', async () => {
    const { projectId } = await newProject();
    const args = ['webhook', 'add', '--project', projectId, '--url', 'https://shop.example.com/'];
    const { code, stderr } = await runCli(args, { env: { DATABASE_URL: database.connectionString } });
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('QUITTANCE_MASTER_KEY') });
  });
});

describe('webhook list', () => {
  test('says of each endpoint whether it works', async () => {
    const project = await newProject();
    const [active, failing, paused, disabled] = [
      await newEndpoint(project.projectId),
      await newEndpoint(project.projectId),
      await newEndpoint(project.projectId),
      await newEndpoint(project.projectId),
    ];
    const event = await newEvent(project, Date.now());
    await query(`update webhook_endpoints set failing_since = '2026-09-01T10:00:00Z' where id = any($1)`, [
      [failing.id, paused.id],
    ]);
    const until = new Date(Date.now() + 5 * 60_000).toISOString();
    await query('update webhook_endpoints set open_until = $2, consecutive_failures = 5 where id = $1', [
      paused.id,
      until,
    ]);
    await query(
      `insert into delivery_attempts (event_id, endpoint_id, attempt, attempted_at, status, error, latency_ms)
       values ($1, $2, 1, '2026-09-01T10:00:00Z', 500, 'http_500: no', 12), ($1, $2, 2, '2026-09-01T10:01:00Z', 503, 'http_503: no', 3)`,
      [event.id, failing.id],
    );
    await cli('webhook', 'disable', disabled.whe, '--reason', 'moves house', '--by', 'ada');
    const { data } = await json('webhook', 'list', '--project', project.projectId);
    expect(data).toMatchObject([
      { endpointId: active.whe, status: 'active', failingSince: null, pausedUntil: null, undelivered: 1 },
      {
        endpointId: failing.whe,
        status: 'failing',
        failingSince: '2026-09-01T10:00:00.000Z',
        lastAttempt: { attemptedAt: '2026-09-01T10:01:00.000Z', status: 503, error: 'http_503: no', latencyMs: 3 },
      },
      { endpointId: paused.whe, status: 'paused', pausedUntil: until },
      { endpointId: disabled.whe, status: 'disabled', disabledReason: 'moves house (by ada)' },
    ]);
    const { stdout, stderr } = await cli('webhook', 'list', '--project', project.projectId);
    expect(stdout).toContain('failing since 2026-09-01 10:00');
    expect(stdout).toContain(`paused until ${until.slice(0, 19).replace('T', ' ')}, failing since`);
    expect(stdout).toContain('2026-09-01 10:01, http_503');
    expect(stdout).toContain('disabled: moves house (by ada)');
    expect(stderr).toContain(`webhook test ${disabled.whe}`);
  });
});

test('webhook update changes what is given and nothing else', async () => {
  const { projectId } = await newProject();
  const [one, other] = [await newEndpoint(projectId, '--description', 'till'), await newEndpoint(projectId)];
  const update = (...args: string[]) => cli('webhook', 'update', one.whe, ...args);
  expect(await update('--events', 'invoice.paid', '--events', 'invoice.expired')).toMatchObject({ code: 0 });
  expect(await update('--url', 'http://localhost:3000/new')).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('new URL'),
  });
  const [shown] = (await json('webhook', 'list', '--project', projectId)).data;
  expect(shown).toMatchObject({
    url: 'http://localhost:3000/new',
    description: 'till',
    eventTypes: ['invoice.paid', 'invoice.expired'],
  });
  expect(await json('webhook', 'update', one.whe, '--events', 'all', '--description', '')).toMatchObject({
    eventTypes: null,
    description: '',
    url: 'http://localhost:3000/new',
  });
  const taken = `http://localhost:3000/hook/${urlCount}`;
  expect(await update('--url', taken)).toMatchObject({ code: 4, stderr: expect.stringContaining(other.whe) });
  expect(await update('--url', 'ftp://localhost/')).toMatchObject({ code: 2 });
  expect(await update()).toMatchObject({ code: 2, stderr: expect.stringContaining('--url') });
  const unknown = encodeId('whe', uuidV7(0, randomBytes(10)));
  expect(await cli('webhook', 'update', unknown, '--events', 'all')).toMatchObject({ code: 3 });
  expect(await cli('webhook', 'update', 'whe_x\u001b', '--events', 'all')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('\\u001b'),
  });
});

describe('webhook rotate', () => {
  const secretsOf = async (endpoint: { id: string }) =>
    query('select ends_at from webhook_secrets where endpoint_id = $1 order by created_at, id', [endpoint.id]);

  test('lets the former secret sign until the end of the overlap, and refuses a third meanwhile', async () => {
    const { projectId } = await newProject();
    const endpoint = await newEndpoint(projectId);
    const begun = Date.now();
    const rotated = await json('webhook', 'rotate', endpoint.whe, '--overlap', '2h');
    expect(rotated).toMatchObject({ endpointId: endpoint.whe, secret: expect.stringMatching(/^whsec_/) });
    expect(rotated.secret).not.toBe(endpoint.secret);
    const endsAt = Date.parse(rotated.formerSecretEndsAt);
    expect(endsAt).toBeGreaterThanOrEqual(begun + 2 * 3_600_000);
    expect(await secretsOf(endpoint)).toEqual([{ ends_at: new Date(endsAt) }, { ends_at: null }]);
    const [listed] = (await json('webhook', 'list', '--project', projectId)).data;
    expect(listed.secrets.map((each: { endsAt: string | null }) => each.endsAt)).toEqual([null, iso(endsAt)]);

    const refused = await cli('webhook', 'rotate', endpoint.whe);
    expect(refused).toMatchObject({ code: 4, stderr: expect.stringContaining(iso(endsAt)) });
    expect(refused.stderr).toContain('--overlap 0');
    expect(await secretsOf(endpoint)).toHaveLength(2);

    const last = await json('webhook', 'rotate', endpoint.whe, '--overlap', '0');
    const [listedLast] = (await json('webhook', 'list', '--project', projectId)).data;
    expect(listedLast.secrets).toHaveLength(1);
    expect(new Set([endpoint.secret, rotated.secret, last.secret]).size).toBe(3);
  });

  test('refuses the secret that signs already, and an overlap out of bounds', async () => {
    const { projectId } = await newProject();
    const endpoint = await newEndpoint(projectId);
    expect(await cli('webhook', 'rotate', endpoint.whe, '--secret', endpoint.secret)).toMatchObject({ code: 4 });
    for (const overlap of ['31d', '-1h', 'soon', '24']) {
      expect(await cli('webhook', 'rotate', endpoint.whe, `--overlap=${overlap}`)).toMatchObject({ code: 2 });
    }
    expect(await secretsOf(endpoint)).toEqual([{ ends_at: null }]);
  });

  test('heals an endpoint whose master key is lost', async () => {
    const { projectId } = await newProject();
    const endpoint = await newEndpoint(projectId);
    const other = { ...env, QUITTANCE_MASTER_KEY: randomBytes(32).toString('hex') };
    const { code, json: rotated } = await runCli(['webhook', 'rotate', endpoint.whe, '--key-is-lost', '--json'], {
      env: other,
    });
    expect({ code, rotated }).toMatchObject({ code: 0, rotated: { isFormerSecretLost: true } });
    expect(Date.parse(rotated.formerSecretEndsAt)).toBeLessThanOrEqual(Date.now());
    await json('webhook', 'rotate', endpoint.whe, '--key-is-lost');
  });

  test('is refused with another key than the service has, and so is a new endpoint', async () => {
    const { projectId } = await newProject();
    const endpoint = await newEndpoint(projectId);
    const before = await secretsOf(endpoint);
    const other = { ...env, QUITTANCE_MASTER_KEY: randomBytes(32).toString('hex') };
    const add = ['webhook', 'add', '--project', projectId, '--url', 'https://added.example.com/'];
    for (const args of [add, ['webhook', 'rotate', endpoint.whe]]) {
      const { code, stderr } = await runCli(args, { env: other });
      expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('cannot be decrypted here') });
    }
    expect(await secretsOf(endpoint)).toEqual(before);
    expect((await json('webhook', 'list', '--project', projectId)).data).toHaveLength(1);
  });
});

describe('webhook disable and enable', () => {
  test('enabling closes the alarm, makes what waits due, and says how to send what was missed', async () => {
    const project = await newProject();
    const endpoint = await newEndpoint(project.projectId, '--events', 'transfer.unmatched');
    const [late, leased] = [await newEvent(project, Date.now() - 3000), await newEvent(project, Date.now() - 2000)];
    await setDelivery(late, 'pending', Date.now() + DAY);
    await setDelivery(leased, 'pending', Date.now() + LEASE_MS / 2);
    expect(await cli('webhook', 'disable', endpoint.whe)).toMatchObject({ code: 0 });
    expect(await cli('webhook', 'disable', endpoint.whe)).toMatchObject({ code: 4 });
    const subject = endpoint.whe;
    await raiseAlarm(db, 'nile', { id: uuidV7(0, randomBytes(10)), kind: 'webhook-disabled', subject, detail: 'x' });
    const missed = await newEvent(project, Date.now());
    await newEvent(project, Date.now(), 'transfer.duplicate');

    const begun = Date.now();
    const enabled = await json('webhook', 'enable', endpoint.whe);
    expect(enabled).toMatchObject({ status: 'active', hastened: 1, missed: 1, isMissedMore: false });
    expect((await findOpenAlarms(db, 'nile')).filter((alarm) => alarm.subject === subject)).toEqual([]);
    const rows = await query('select event_id, next_attempt_at, created_at from deliveries where endpoint_id = $1', [
      endpoint.id,
    ]);
    const due = (event: { id: string }) => rows.find((row) => row['event_id'] === event.id) as Record<string, Date>;
    expect(due(late)['next_attempt_at']?.getTime()).toBeLessThanOrEqual(Date.now());
    // It counts as planned now, so that events of its invoice wait for it.
    expect(due(late)['created_at']?.getTime()).toBeGreaterThanOrEqual(begun);
    expect(due(leased)['next_attempt_at']?.getTime()).toBeGreaterThan(Date.now());

    // The printed command works.
    const words: string[] = enabled.replay.split(' ').slice(1);
    expect(await json(...words)).toMatchObject({ found: { total: 1, missing: 1 }, replayed: 1 });
    expect(await query('select 1 from deliveries where event_id = $1', [missed.id])).toHaveLength(1);
    expect(await json('webhook', 'enable', endpoint.whe)).toMatchObject({ hastened: 0, missed: 0, replay: null });
    expect(await cli('webhook', 'enable', encodeId('whe', missed.id))).toMatchObject({ code: 3 });
  });
});

test('events on both sides of the gap that a restore leaves are listed, counted and sent again', async () => {
  const project = await newProject();
  const endpoint = await newEndpoint(project.projectId);
  const from = Date.now() - DAY;
  const [early, before] = [await newEvent(project, from - DAY), await newEvent(project, from)];
  await query(
    `alter table event_streams disable trigger event_streams_rise;
     update event_streams set last_position = ${Date.now()} where project_id = '${project.id}';
     alter table event_streams enable trigger event_streams_rise`,
  );
  const behind = await newEvent(project, from + 1000);
  for (const event of [early, before, behind]) await setDelivery(event, 'dead');
  const listed = async (...args: string[]) =>
    (await json('deliveries', 'list', '--project', project.projectId, ...args)).data.map(
      ({ eventId }: { eventId: string }) => eventId,
    );
  expect(await listed()).toEqual([behind.evt, before.evt, early.evt]);
  expect(await listed('--from', iso(from))).toEqual([behind.evt, before.evt]);
  expect(await listed('--to', iso(from + 500))).toEqual([before.evt, early.evt]);
  expect(await listed('--before', behind.evt)).toEqual([before.evt, early.evt]);
  expect(await json('deliveries', 'replay', '--endpoint', endpoint.whe, '--from', iso(from))).toMatchObject({
    found: { total: 2, dead: 2 },
    replayed: 2,
  });
  await json('webhook', 'disable', endpoint.whe);
  await newEvent(project, Date.now());
  expect(await json('webhook', 'enable', endpoint.whe)).toMatchObject({ missed: 1 });
});

test.each([
  ['an event', true],
  ['a project’s first event', false],
])('%s whose transaction ends while its endpoint is being enabled counts as missed', async (_, hasEarlier) => {
  const project = await newProject();
  const endpoint = await newEndpoint(project.projectId);
  if (hasEarlier) await newEvent(project, Date.now());
  await json('webhook', 'disable', endpoint.whe);
  const enabled = await withClient(database.owner, async (client) => {
    await client.query('begin');
    const values = [uuidV7(Date.now(), randomBytes(10)), project.id];
    const insert = `insert into events (id, project_id, network, type, sequence, body) values ($1, $2, 'nile', 'invoice.paid', 1, '{}')`;
    await client.query(insert, values);
    let isOver = false;
    const deps = { db, now: () => unixMs(Date.now()) };
    const enabling = enableEndpoint.run(deps, commandActor('ann'), { endpointId: endpoint.whe }).finally(() => {
      isOver = true;
    });
    const isWaiting = async () => (await query('select from pg_locks where not granted')).length > 0;
    await eventually(async () => isOver || (await isWaiting()), Boolean);
    await client.query('commit');
    return enabling;
  });
  expect(enabled).toMatchObject({ missed: 1 });
});

test('events that were given up before the endpoint was disabled are listed, counted, and sent again by the printed command', async () => {
  const project = await newProject();
  const endpoint = await newEndpoint(project.projectId);
  const since = Date.now() - 5 * DAY;
  // The receiver refused this event long before it began to fail.
  const refused = await newEvent(project, since - 10 * DAY);
  const lost = await newEvent(project, since + 1000);
  for (const event of [lost, refused]) await setDelivery(event, 'dead', since + DAY);
  await query(
    `update webhook_endpoints set failing_since = $2, disabled_at = now() - interval '2 hours', disabled_reason = 'failed' where id = $1`,
    [endpoint.id, new Date(since + 2000)],
  );
  await newEvent(project, Date.now() - 3_600_000);
  const list = ['webhook', 'list', '--project', project.projectId];
  expect((await json(...list)).data).toMatchObject([{ undelivered: 0, dead: 2 }]);
  expect((await cli(...list)).stderr).toContain('deliveries list --status dead');
  const enabled = await json('webhook', 'enable', endpoint.whe);
  expect(enabled).toMatchObject({ dead: 2, missed: 1 });
  const commands: string[][] = enabled.replay.split('\n').map((line: string) => line.split(' ').slice(1));
  const sent = [];
  for (const words of commands) sent.push(await json(...words));
  expect(sent).toMatchObject([
    { found: { total: 2, dead: 2 }, replayed: 2 },
    { found: { total: 1, missing: 1 }, replayed: 1 },
  ]);
  expect((await json(...list)).data).toMatchObject([{ undelivered: 3, dead: 0 }]);
});

describe('deliveries', () => {
  test('list shows the newest first, page by page and by every filter', async () => {
    const project = await newProject();
    const [all, paid] = [
      await newEndpoint(project.projectId),
      await newEndpoint(project.projectId, '--events', 'invoice.paid'),
    ];
    const at = Date.UTC(2026, 8, 1, 12);
    const old = await newEvent(project, at);
    const dead = await newEvent(project, at + DAY);
    const done = await newEvent(project, at + 2 * DAY);
    const both = await newEvent(project, at + 3 * DAY, 'invoice.paid');
    await setDelivery(dead, 'dead');
    await setDelivery(done, 'delivered');
    await setDelivery(old, 'pending');
    const list = async (...args: string[]) => {
      const { data, nextBefore } = await json('deliveries', 'list', '--project', project.projectId, ...args);
      return { events: data.map((each: { eventId: string }) => each.eventId), nextBefore };
    };
    const none = { nextBefore: null };
    expect(await list()).toEqual({ events: [both.evt, both.evt, done.evt, dead.evt, old.evt], ...none });
    expect(await list('--endpoint', paid.whe)).toEqual({ events: [both.evt], ...none });
    expect(await list('--status', 'dead')).toEqual({ events: [dead.evt], ...none });
    expect(await list('--status', 'delivered')).toEqual({ events: [done.evt], ...none });
    expect(await list('--status', 'failing')).toEqual({ events: [old.evt], ...none });
    expect(await list('--status', 'pending', '--endpoint', all.whe)).toEqual({ events: [both.evt, old.evt], ...none });
    expect(await list('--type', 'invoice.paid')).toEqual({ events: [both.evt, both.evt], ...none });
    expect(await list('--event', dead.evt)).toEqual({ events: [dead.evt], ...none });
    expect(await list('--from', '2026-09-02', '--to', '2026-09-03')).toEqual({ events: [done.evt, dead.evt], ...none });
    expect(await list('--to', '2026-08-31')).toEqual({ events: [], ...none });
    const test = await newEvent(project, at + 4 * DAY, 'ping');
    await setDelivery(test, 'dead');
    expect(await list('--status', 'dead')).toEqual({ events: [dead.evt], ...none });
    expect(await list('--status', 'dead', '--type', 'ping')).toEqual({ events: [test.evt], ...none });
    await query('delete from deliveries where event_id = $1', [test.id]);
    // A page ends between events, even if an event is delivered to two endpoints.
    expect(await list('--limit', '3')).toEqual({ events: [both.evt, both.evt, done.evt], nextBefore: done.evt });
    expect(await list('--limit', '3', '--before', done.evt)).toEqual({ events: [dead.evt, old.evt], ...none });
    expect(await list('--limit', '1')).toEqual({ events: [both.evt], nextBefore: null });
    const { stdout, stderr } = await cli('deliveries', 'list', '--project', project.projectId, '--limit', '4');
    expect(stdout).toMatch(/^EVENT +TYPE +CREATED/);
    expect(stderr).toContain(`--before ${dead.evt}`);
    for (const args of [
      ['--status', 'lost'],
      ['--type', 'x'],
      ['--limit', '501'],
      ['--from', 'noon'],
      ['--event', 'inv_1'],
    ]) {
      expect(await cli('deliveries', 'list', '--project', project.projectId, ...args)).toMatchObject({ code: 2 });
    }
    expect(await cli('deliveries', 'list', '--project', project.projectId, '--invoice', 'order-1')).toMatchObject({
      code: 3,
    });
  });

  test('list looks through so many events at once and says where to go on', async () => {
    const project = await newProject();
    await newEndpoint(project.projectId, '--events', 'invoice.paid');
    const first = await newEvent(project, Date.UTC(2026, 8, 1), 'invoice.paid');
    await setDelivery(first, 'delivered');
    // Sets the positions too, because reserving one costs as much as an event.
    await query(
      `insert into events (id, project_id, network, type, sequence, body, created_at, position)
       select gen_random_uuid(), $1, 'nile', 'transfer.unmatched', 1, '{}', '2026-09-02', 1 + n from generate_series(1, 10000) n`,
      [project.id],
    );
    await query('update event_streams set last_position = 10001 where project_id = $1', [project.id]);
    const list = (...args: string[]) => json('deliveries', 'list', '--project', project.projectId, ...args);
    const page = await list('--status', 'delivered');
    expect(page).toEqual({ data: [], nextBefore: expect.stringMatching(/^evt_/) });
    expect(await list('--before', page.nextBefore)).toMatchObject({ data: [{ eventId: first.evt }], nextBefore: null });
  });

  test('show tells every attempt, the plan, and what is wrong, and lets an answer do nothing to the terminal', async () => {
    const project = await newProject();
    const endpoint = await newEndpoint(project.projectId);
    const event = await newEvent(project, Date.now());
    await setDelivery(event, 'pending', Date.now() + DAY);
    await query('update deliveries set attempt_count = 2 where event_id = $1', [event.id]);
    await query(
      `insert into delivery_attempts (event_id, endpoint_id, attempt, attempted_at, status, error, latency_ms, answer)
       values ($1, $2, 1, now(), null, 'dns: the endpoint host name does not resolve (ENOTFOUND)', 5, null),
         ($1, $2, 2, now(), 404, 'http_404: the endpoint returned 404, but only 2xx counts as delivered', 7, $3)`,
      [event.id, endpoint.id, 'no \u202e\u0007such page'],
    );
    const shown = await json('deliveries', 'show', event.evt);
    expect(shown).toMatchObject({
      eventId: event.evt,
      type: 'transfer.unmatched',
      deliveries: [
        {
          endpointId: endpoint.whe,
          status: 'pending',
          attemptsLeft: 10,
          attempts: [
            { attempt: 1, status: null, latencyMs: 5 },
            { attempt: 2, status: 404 },
          ],
          diagnosis: [{ code: 'not-found' }],
        },
      ],
    });
    const { stdout } = await cli('deliveries', 'show', event.evt);
    expect(stdout).toContain('"no \\u202e\\u0007such page"');
    expect(stdout).toMatch(/plan +next attempt 20.*, 10 attempts left/);
    expect(stdout).toContain('1. not-found, likely');
    // Showing needs no keys.
    const noKey = await runCli(['deliveries', 'show', event.evt], {
      env: { DATABASE_URL: database.connectionString },
    });
    expect(noKey).toMatchObject({ code: 0, stdout });
    await cli('webhook', 'disable', endpoint.whe);
    expect((await cli('deliveries', 'show', event.evt)).stdout).toContain('none until the endpoint is enabled');
    expect((await cli('deliveries', 'list', '--endpoint', endpoint.whe)).stdout).toContain('endpoint disabled');
    const moved = await cli('webhook', 'update', endpoint.whe, '--url', 'https://moved.example.com/');
    expect(moved.stderr).toContain('the endpoint stays disabled');
    const unplanned = await newEvent(project, Date.now());
    expect(await cli('deliveries', 'show', unplanned.evt)).toMatchObject({
      code: 0,
      stderr: expect.stringContaining(`deliveries replay ${unplanned.evt} --endpoint`),
    });
    expect(await cli('deliveries', 'show', encodeId('evt', endpoint.id))).toMatchObject({ code: 3 });
  });
});

test('deliveries show tells one moment, also while the outcome of an attempt is being recorded', async () => {
  const project = await newProject();
  await newEndpoint(project.projectId);
  const event = await newEvent(project, Date.now());
  const shown = await whileWaiting(
    database.owner,
    'delivery_attempts',
    () => json('deliveries', 'show', event.evt),
    (client) =>
      client.query(
        `with attempted as (
           insert into delivery_attempts (event_id, endpoint_id, attempt, attempted_at, status, latency_ms)
           select event_id, endpoint_id, 1, now(), 204, 5 from deliveries where event_id = $1)
         update deliveries set status = 'delivered', attempt_count = 1, finished_at = now() where event_id = $1`,
        [event.id],
      ),
  );
  expect(shown.deliveries).toMatchObject([{ status: 'pending', attempts: [] }]);
  const after = await json('deliveries', 'show', event.evt);
  expect(after.deliveries).toMatchObject([{ status: 'delivered', attempts: [{ attempt: 1, status: 204 }] }]);
});

const replaysOf = async ({ whe }: { whe: string }) =>
  (await listOperatorActions(db, whe)).filter(({ action }) => action === 'deliveries.replayed');

describe('deliveries replay', () => {
  const rowOf = async (event: { id: string }, endpoint: { id: string }) =>
    (
      await query(
        `select status, attempt_count, max_attempts, finished_at, next_attempt_at <= now() as is_due
         from deliveries where event_id = $1 and endpoint_id = $2`,
        [event.id, endpoint.id],
      )
    )[0];
  const fresh = { status: 'pending', finished_at: null, is_due: true };

  test('sends named events again, each with a whole schedule, and records who asked', async () => {
    const project = await newProject();
    const [one, other] = [await newEndpoint(project.projectId), await newEndpoint(project.projectId)];
    const [dead, done] = [await newEvent(project, Date.now()), await newEvent(project, Date.now())];
    await setDelivery(dead, 'dead');
    await setDelivery(done, 'delivered');
    expect(await json('deliveries', 'replay', dead.evt, '--dry-run')).toMatchObject({ isDryRun: true });
    expect(await rowOf(dead, one)).toMatchObject({ status: 'dead' });
    const { data } = await json('deliveries', 'replay', dead.evt, done.evt, dead.evt, '--by', 'ada');
    expect(data).toHaveLength(4);
    expect(data).toContainEqual({ eventId: done.evt, endpointId: other.whe, was: 'delivered', outcome: 'replayed' });
    for (const event of [dead, done]) {
      for (const endpoint of [one, other]) {
        expect(await rowOf(event, endpoint)).toEqual({ ...fresh, attempt_count: 12, max_attempts: 24 });
      }
    }
    expect(await replaysOf(one)).toMatchObject([
      { action: 'deliveries.replayed', actedBy: 'ada', detail: { events: [dead.evt, done.evt] } },
    ]);
    // A delivery that is due anyway may be in progress.
    expect((await json('deliveries', 'replay', dead.evt, '--endpoint', one.whe)).data).toMatchObject([
      { outcome: 'due' },
    ]);
  });

  test('tells the dispatchers, as enabling does', async () => {
    const project = await newProject();
    const endpoint = await newEndpoint(project.projectId);
    const event = await newEvent(project, Date.now());
    await setDelivery(event, 'dead');
    let reported = 0;
    db.listen(DELIVERIES_CHANNEL, () => {
      reported += 1;
    });
    const untilTold = (times: number) =>
      eventually(
        () => reported,
        (seen) => seen >= times,
      );
    // Once after it has connected.
    await untilTold(1);
    await json('deliveries', 'replay', event.evt);
    await untilTold(2);
    await json('webhook', 'enable', endpoint.whe);
    await untilTold(3);
  });

  test('plans a named event for an endpoint that never had it, but not one of another project', async () => {
    const [project, foreign] = [await newProject(), await newProject()];
    const event = await newEvent(project, Date.now());
    const [endpoint, stranger] = [await newEndpoint(project.projectId), await newEndpoint(foreign.projectId)];
    const refused = await cli('deliveries', 'replay', event.evt);
    expect(refused).toMatchObject({ code: 3, stderr: expect.stringContaining('--endpoint') });
    expect(await cli('deliveries', 'replay', event.evt, '--endpoint', stranger.whe)).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('a different project'),
    });
    expect((await json('deliveries', 'replay', event.evt, '--endpoint', endpoint.whe)).data).toMatchObject([
      { was: 'missing', outcome: 'replayed' },
    ]);
    expect(await rowOf(event, endpoint)).toEqual({ ...fresh, attempt_count: 0, max_attempts: 12 });
    await query('update deliveries set attempt_count = 1000, status = $2, finished_at = now() where event_id = $1', [
      event.id,
      'dead',
    ]);
    expect(await cli('deliveries', 'replay', event.evt)).toMatchObject({
      stderr: expect.stringContaining('1000 attempts'),
    });
    expect(await rowOf(event, endpoint)).toMatchObject({ status: 'dead' });
  });

  test('by time sends what is dead or missing, in the order of the events, and no pings', async () => {
    const project = await newProject();
    const before = await newEvent(project, Date.now() - 3 * DAY);
    const endpoint = await newEndpoint(project.projectId, '--events', 'transfer.unmatched,ping');
    const from = Date.now() - 2 * DAY;
    const early = await newEvent(project, from - 1);
    const [dead, done, failing, ping] = [
      await newEvent(project, from),
      await newEvent(project, from + 1000),
      await newEvent(project, from + 2000),
      await newEvent(project, from + 3000, 'ping'),
    ];
    await newEvent(project, from + 4000, 'invoice.paid');
    await query('delete from deliveries where event_id = $1', [early.id]);
    const missing = await newEvent(project, from + 5000);
    await query('delete from deliveries where event_id = $1', [missing.id]);
    for (const event of [dead, ping]) await setDelivery(event, 'dead');
    await setDelivery(done, 'delivered');
    await setDelivery(failing, 'pending', Date.now() + DAY);
    const replay = (...args: string[]) =>
      json('deliveries', 'replay', '--endpoint', endpoint.whe, '--from', iso(from), ...args);
    const found = { dead: 1, missing: 1, pending: 0, delivered: 0, total: 2 };
    expect(await replay('--dry-run')).toMatchObject({ isDryRun: true, found });
    expect(await replay('--dry-run', '--to', iso(from + 500))).toMatchObject({ found: { total: 1, dead: 1 } });
    expect(await replay('--dry-run', '--status', 'failing')).toMatchObject({ found: { total: 1, pending: 1 } });
    expect(await replay('--dry-run', '--status', 'dead,delivered')).toMatchObject({
      found: { total: 2, delivered: 1 },
    });
    expect(await replay('--dry-run', '--status', 'all')).toMatchObject({ found: { total: 4 } });
    expect(await replay('--dry-run', '--type', 'ping')).toMatchObject({ found: { total: 1, dead: 1 } });
    expect(await replaysOf(endpoint)).toEqual([]);

    expect(await replay('--by', 'ada')).toMatchObject({ found, replayed: 2, due: 0, exhausted: 0 });
    const order = await query(
      `select event_id from deliveries where endpoint_id = $1 and status = 'pending' and created_at > now() - interval '1 minute'
       order by next_attempt_at, created_at`,
      [endpoint.id],
    );
    expect(order.map((row) => row['event_id'])).toEqual([dead.id, missing.id]);
    for (const event of [done, failing, ping]) expect((await rowOf(event, endpoint))?.['max_attempts']).toBe(12);
    expect(await rowOf(before, endpoint)).toBeUndefined();
    expect(await replaysOf(endpoint)).toMatchObject([
      { action: 'deliveries.replayed', actedBy: 'ada', detail: { statuses: ['dead', 'missing'] } },
    ]);
  });

  test('asks before it sends many, and sends thousands', async () => {
    const project = await newProject();
    const at = Date.now() - DAY;
    await query(
      `insert into events (id, project_id, network, type, sequence, body, created_at)
       select gen_random_uuid(), $1, 'nile', 'transfer.unmatched', 1, '{}', $2::timestamptz + n * interval '1 second'
       from generate_series(1, 2600) n order by n`,
      [project.id, iso(at)],
    );
    const endpoint = await newEndpoint(project.projectId);
    await cli('webhook', 'disable', endpoint.whe);
    const args = ['deliveries', 'replay', '--endpoint', endpoint.whe, '--from', iso(at)];
    expect(await cli(...args)).toMatchObject({ code: 2, stderr: expect.stringMatching(/2600 .*--dry-run.*--yes/) });
    const { code, stdout, stderr } = await cli(...args, '--yes');
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: expect.stringMatching(/due now +2600/),
      stderr: expect.stringContaining(`webhook enable ${endpoint.whe}`),
    });
    const [order] = await query(
      `select count(*)::int as planned, bool_and(ordered) as ordered from (
         select e.position > lag(e.position, 1, 0) over (order by d.created_at) as ordered
         from deliveries d join events e on e.id = d.event_id where d.endpoint_id = $1) d`,
      [endpoint.id],
    );
    expect(order).toEqual({ planned: 2600, ordered: true });
    expect(await replaysOf(endpoint)).toHaveLength(1);
  });

  test('refuses what it cannot know or was not told', async () => {
    const project = await newProject();
    const endpoint = await newEndpoint(project.projectId);
    const event = await newEvent(project, Date.now());
    const replay = (...args: string[]) => cli('deliveries', 'replay', ...args);
    const old = ['--endpoint', endpoint.whe, '--from', iso(Date.now() - 91 * DAY)];
    expect(await replay(...old)).toMatchObject({ code: 2, stderr: expect.stringContaining('RETENTION_DAYS') });
    expect(await replay(...old, '--status', 'dead')).toMatchObject({ code: 0 });
    expect(await replay()).toMatchObject({ code: 2, stderr: expect.stringContaining('--endpoint and --from') });
    expect(await replay('--endpoint', endpoint.whe)).toMatchObject({ code: 2 });
    expect(await replay(event.evt, '--from', '2026-09-01')).toMatchObject({ code: 2 });
    expect(await replay(...old, '--status', 'lost')).toMatchObject({ code: 2 });
    expect(await replay(encodeId('evt', endpoint.id), event.evt)).toMatchObject({ code: 3 });
    expect(await replay('evt_1')).toMatchObject({ code: 2 });
  });
});
