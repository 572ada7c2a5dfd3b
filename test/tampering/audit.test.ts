import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterEach, describe, expect, test } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { recordActions } from '../../src/faces/operator/record-actions.ts';
import { listAudit, readAuditFilter, verifyAudit } from '../../src/faces/operator/subjects/audit.ts';
import { acknowledgeAlarms } from '../../src/faces/operator/subjects/chain.ts';
import { runSql } from '../contract/sql.ts';
import { eventually, startTestService, type TestService } from '../support/service.ts';
import { someCases } from '../support/some-cases.ts';

/** Changes by an attacker without the master key to the audit log (26). */
const MINUTE_MS = 60_000;
const ANNA = commandActor('anna', 'a host');

let service: TestService;
let dataDir: string;
afterEach(async () => {
  await service.stop();
  await rm(dataDir, { recursive: true, force: true });
});

async function start(rowMacs: 'warn' | 'require'): Promise<void> {
  dataDir = await mkdtemp(join(tmpdir(), 'quittance-audit-'));
  service = await startTestService({ config: { rowMacs, dataDir } });
}

/** Starts with five entries that the watcher has seen. */
async function startWithLog(rowMacs: 'warn' | 'require'): Promise<void> {
  await start(rowMacs);
  await act(5);
  await untilSeen(5);
}

const act = (count: number) =>
  service.db.transaction((tx) => {
    const detail = { z: 1, note: 'Grüße: 12:', nested: { b: null, a: [null, true, 1.5] } };
    const done = { projectId: service.project.id, action: 'project.changed', subject: 'prj', detail } as const;
    return recordActions(tx, ANNA, unixMs(Date.now()), Array(count).fill(done));
  });

/** Waits until the watcher has found the log intact up to an entry. */
async function untilSeen(seq: number): Promise<void> {
  await eventually(
    () => {
      service.clock.advance(MINUTE_MS);
      return readFile(join(dataDir, 'audit-head.json'), 'utf8').catch(() => '{}');
    },
    (text) => JSON.parse(text).seq === seq,
  );
}

async function alarms(): Promise<Record<string, string>> {
  const rows = await runSql(
    service,
    `select subject, detail from alarms where kind = 'audit-broken' and (resolved_at is null or needs_closing and closed_mac is null) order by subject`,
  );
  return Object.fromEntries(rows.map(({ subject, detail }) => [subject, detail]));
}

/** Waits for an alarm within a minute. */
async function foundSoon(text: string | RegExp): Promise<Record<string, string>> {
  service.clock.advance(MINUTE_MS);
  return eventually(alarms, (found) => Object.values(found).some((detail) => detail.match(text) !== null));
}

const untilOver = () =>
  eventually(
    async () => {
      service.clock.advance(MINUTE_MS);
      return alarms();
    },
    (found) => Object.keys(found).length === 0,
  );

/** Acts as the tables' owner, bypassing every guard, and then makes every hash match. */
async function asOwner(text: string): Promise<void> {
  await runSql(
    service,
    `alter table operator_actions disable trigger user; ${text};
     do $$ declare a operator_actions; b bytea := decode(repeat('00', 32), 'hex'); begin
       for a in select * from operator_actions order by seq loop
         b := sha256(b || operator_action_content(a)); update operator_actions set hash = b where id = a.id;
       end loop; end $$;
     alter table operator_actions enable trigger user`,
  );
}

/** Acts as the service's own user. */
async function asService(text: string): Promise<void> {
  const client = new pg.Client({ connectionString: service.connectionString });
  await client.connect();
  await client.query(text).finally(() => client.end());
}

const COLUMNS = 'project_id, action, subject, detail, acted_by, acted_at, actor_kind, actor_id, origin, request_id';
const verify = () => verifyAudit.run({ db: service.db }, ANNA, { kept: null });
const list = async () => (await listAudit.run({ db: service.db }, ANNA, readAuditFilter({}))).data;

test('what people did is sealed, and nobody finds fault with it', async () => {
  await startWithLog('require');
  await act(3);
  await untilSeen(8);
  expect(await verify()).toMatchObject({ good: true, entries: 8, accepted: [], unsealed: 0 });
  expect((await list()).map(({ sound }) => sound)).toEqual(Array(8).fill(true));
  expect(await runSql(service, 'select seq from operator_actions where mac is null')).toEqual([]);
  expect(await alarms()).toEqual({});
});

describe.each(someCases(['require', 'warn'] as const, 2))('with seals in the mode %s', (rowMacs) => {
  test.each([
    ['makes up an action', `'key.created', 'key_thief', '{}', 'anna', now()`, 'entry 6 has no seal'],
    ['tells one again', null, 'the seal of entry 6 is wrong'],
  ])('who has the service’s rights and %s is found within a minute', async (_, row, found) => {
    await startWithLog(rowMacs);
    await asService(
      row === null
        ? `insert into operator_actions (${COLUMNS}, mac) select ${COLUMNS}, mac from operator_actions where seq = 2`
        : `insert into operator_actions (action, subject, detail, acted_by, acted_at) values (${row})`,
    );
    expect(Object.keys(await foundSoon(found))).toEqual([expect.stringMatching(/^entry 6 [0-9a-f]{16}$/)]);
    expect((await verify()).problem).toMatchObject({ seq: 6 });
    expect((await list())[0]).toMatchObject({ seq: 6, sound: rowMacs === 'warn' });
  });

  test.each([
    ['rewrites one', `update operator_actions set acted_by = 'eve' where seq = 3`, 'the seal of entry 3 is wrong'],
    [
      'leaves one out and gives the others its number',
      'delete from operator_actions where seq = 3; update operator_actions set seq = seq - 1 where seq > 3',
      'the seal of entry 3 is wrong',
    ],
    ['erases all', 'delete from operator_actions', 'entry 5 existed in an earlier check, but the log is empty'],
    [
      'cuts the end off',
      'delete from operator_actions where seq > 3',
      'entry 5 .* the log ends at entry 3: the end of the log was removed',
    ],
    [
      'writes all anew',
      `update operator_actions set acted_by = 'eve', mac = null`,
      'entry 5 had a different hash in an earlier check',
    ],
  ])('who owns the tables and %s, with every hash made to fit, is found within a minute', async (_, text, found) => {
    await startWithLog(rowMacs);
    await asOwner(text);
    await foundSoon(found);
  });
});

test('what was done while no service ran is found at its start', async () => {
  await startWithLog('require');
  await service.stopService();
  await asOwner(`delete from operator_actions where seq > 4`);
  await service.restart();
  expect(Object.keys(await foundSoon('the log ends at entry 4'))).toEqual([expect.stringMatching(/^end 5 /)]);
});

test('the alarm ends by itself when the log is again as it was', async () => {
  await startWithLog('require');
  await asOwner(`update operator_actions set subject = 'other' where seq = 2`);
  await foundSoon('the seal of entry 2 is wrong');
  await asOwner(`update operator_actions set subject = 'prj' where seq = 2`);
  await untilOver();
});

test('what an operator has acknowledged is told no more, by nobody; what comes after it is', async () => {
  await startWithLog('require');
  await asOwner(
    `update operator_actions set subject = 'other' where seq = 2; delete from operator_actions where seq = 5`,
  );
  await foundSoon('the seal of entry 2 is wrong');
  // Each raises its own alarm, one after the other.
  await expect
    .poll(async () => Object.keys(await alarms()))
    .toEqual([expect.stringMatching(/^end 5 /), expect.stringMatching(/^entry 2 /)]);
  const deps = { db: service.db, now: () => unixMs(Date.now()), networks: ['devnet'] as const };
  await acknowledgeAlarms.run(deps, ANNA, { network: 'devnet', kind: 'audit-broken', subject: null });
  await untilSeen(5);
  expect(await alarms()).toEqual({});
  expect(await verify()).toMatchObject({ good: true, entries: 5, accepted: [{ seq: 2 }] });
  await asOwner(`update operator_actions set subject = 'third' where seq = 2`);
  await foundSoon('the seal of entry 2 is wrong');
  expect((await verify()).problem).toMatchObject({ seq: 2 });
});

test('whoever says in the log that somebody has acknowledged it has nothing hidden by that', async () => {
  await startWithLog('warn');
  await asOwner(`update operator_actions set subject = 'other' where seq = 2`);
  const [name = ''] = Object.keys(await foundSoon('the seal of entry 2 is wrong'));
  await asService(
    `insert into operator_actions (action, subject, detail, acted_by, acted_at)
     values ('alarm.acknowledged', 'devnet', '{"kind": "audit-broken", "accepted": ["${name}"]}', 'anna', now())`,
  );
  expect(Object.keys(await foundSoon('entry 6 has no seal'))).toContain(name);
});

test('entries that are older than the seals are told as other rows are, until they are sealed', async () => {
  await start('warn');
  await asService(
    `insert into operator_actions (action, subject, detail, acted_by, acted_at) values ('chain.resumed', 'nile', '{}', 'anna', now())`,
  );
  await act(1);
  await untilSeen(2);
  const unsealed = () =>
    runSql(service, `select detail from alarms where kind = 'row-unsealed' and subject = 'operator_actions'`);
  const [row] = await eventually(unsealed, ({ length }) => length > 0);
  expect(row).toEqual({ detail: expect.stringContaining('a row in operator_actions (1 to 1) has no seal') });
  expect(await alarms()).toEqual({});
  expect(await verify()).toMatchObject({ good: true, unsealed: 1 });
});
