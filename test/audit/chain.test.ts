import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import { startLogWatch } from '../../src/core/payments/watch-audit-log.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { createMetrics } from '../../src/core/runtime/metrics.ts';
import type { AuditHead } from '../../src/core/store/access/audit-log.ts';
import type { Database } from '../../src/core/store/db/database.ts';
import { takeLedger } from '../../src/core/store/db/ledger-identity.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { type BackupHeader, checkAudit } from '../../src/faces/operator/backup/backup-format.ts';
import { recordActions } from '../../src/faces/operator/record-actions.ts';
import { verifyAudit, writeHead } from '../../src/faces/operator/subjects/audit.ts';
import { startAuditHead } from '../../src/server/service.ts';
import { createTestDatabase, openTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { eventually } from '../support/service.ts';

let database: TestDatabase;
let db: Database;
let owner: pg.Client;
beforeEach(async () => {
  database = await createTestDatabase();
  db = openTestDatabase(database, 8);
  owner = new pg.Client(database.owner);
  await owner.connect();
});
afterEach(async () => {
  await Promise.all([db.close(), owner.end()]);
  await database.drop();
});

const ANNA = { ...commandActor('anna ₮ 𝄞', 'a host'), id: randomUUID(), requestId: 'req_1' };
const NOW = unixMs(Date.UTC(2026, 10, 23, 14, 0, 0, 7));

/** Records actions in a transaction, which `end` may abort. */
const act = (count = 1, end: () => void = () => undefined) =>
  db.transaction(async (tx) => {
    const detail = { z: 1, note: 'Grüße: 12:', nested: { a: [null, true] } };
    const done = { projectId: null, action: 'chain.resumed', subject: 'nile', detail } as const;
    await recordActions(tx, ANNA, NOW, Array(count).fill(done));
    end();
  });
const verify = (kept: AuditHead | null = null) => verifyAudit.run({ db }, ANNA, { kept });
const seqs = async () =>
  (await owner.query('select seq::int from operator_actions order by seq')).rows.map(({ seq }) => seq);

/** Changes the log like an attacker who owns the tables. */
const tamper = (sql: string) =>
  owner.query(
    `alter table operator_actions disable trigger user; ${sql}; alter table operator_actions enable trigger user`,
  );

test('an empty log holds together and has no head', async () => {
  expect(await verify()).toEqual({
    ...{ good: true, entries: 0, head: null, problem: null },
    ...{ accepted: [], unsealed: 0 },
  });
});

test('entries are numbered in the order of their commits without a gap, whoever writes at the same time and whatever fails', async () => {
  const work = Array.from({ length: 60 }, (_, index) =>
    index % 5 === 0
      ? expect(
          act(2, () => {
            throw new Error('no');
          }),
        ).rejects.toThrow('no')
      : act(1 + (index % 3)),
  );
  await Promise.all(work);
  const found = await seqs();
  expect(found).toEqual(found.map((_, index) => index + 1));
  expect(await verify()).toMatchObject({
    good: true,
    entries: found.length,
    head: { seq: found.length },
    problem: null,
  });
});

test('a log longer than a page is walked to its end', async () => {
  await act(2500);
  expect(await verify()).toMatchObject({ good: true, entries: 2500 });
  await tamper("update operator_actions set subject = 'mainnet' where seq = 2400");
  expect(await verify()).toMatchObject({ good: false, entries: 2399, problem: { seq: 2400 } });
});

describe('somebody who owns the tables', () => {
  beforeEach(() => act(5));

  test.each([
    ['acted_at', "acted_at + interval '1 microsecond'"],
    ['actor_kind', "'admin'"],
    ['actor_id', 'null'],
    ['acted_by', "'eve'"],
    ['origin', 'null'],
    ['request_id', "'req_2'"],
    ['project_id', `'${randomUUID()}'`],
    ['action', "'key.created'"],
    ['subject', "'mainnet'"],
    ['detail', `'{"note": "other"}'`],
    ['hash', "decode(repeat('ab', 32), 'hex')"],
  ])('cannot change %s unseen', async (column, value) => {
    if (column === 'project_id') {
      await owner.query(`insert into projects (id, name, network) values (${value}, 'shop', 'nile')`);
    }
    await tamper(`update operator_actions set ${column} = ${value} where seq = 3`);
    expect(await verify()).toMatchObject({ good: false, entries: 2, problem: { seq: 3 } });
  });

  test('cannot leave one out, swap two, or put one in unseen', async () => {
    await tamper('delete from operator_actions where seq = 3');
    expect((await verify()).problem).toEqual({ seq: 4, message: 'entry 3 is missing: it was removed' });
    await tamper('update operator_actions set seq = seq - 1 where seq > 3');
    expect((await verify()).problem).toMatchObject({ seq: 3 });
  });

  test('cannot move a byte from one field to its neighbour unseen', async () => {
    await tamper("update operator_actions set acted_by = acted_by || 'a', origin = substr(origin, 2) where seq = 2");
    expect((await verify()).problem).toMatchObject({ seq: 2 });
  });

  test('can cut off the end or write all anew, and who kept a head sees it', async () => {
    const { head: kept } = await verify();
    if (kept === null) return expect.fail('there is no head');
    await act();
    expect(await verify(kept)).toMatchObject({ good: true, entries: 6 });
    await tamper('delete from operator_actions where seq >= 5');
    expect(await verify()).toMatchObject({ good: true, entries: 4 });
    expect(await verify(kept)).toMatchObject({ good: false, problem: { seq: 5 } });
    await tamper('delete from operator_actions');
    await act(7);
    await tamper("update operator_actions set acted_by = 'eve' where seq = 1");
    await tamper(`do $$ declare a operator_actions; b bytea := decode(repeat('00', 32), 'hex'); begin
      for a in select * from operator_actions order by seq loop
        b := sha256(b || operator_action_content(a)); update operator_actions set hash = b where seq = a.seq;
      end loop; end $$`);
    expect(await verify()).toMatchObject({ good: true, entries: 7 });
    expect(await verify(kept)).toMatchObject({ good: false, problem: { seq: 5 } });
  });
});

test('the service can neither give an entry its number and hash, nor change or delete one', async () => {
  await act();
  const runtime = new pg.Client(database.connection);
  await runtime.connect();
  const refused = async (sql: string, message: RegExp) => expect(runtime.query(sql)).rejects.toThrow(message);
  const row = "'chain.resumed', 'nile', '{}', 'eve', now()";
  await refused(
    `insert into operator_actions (action, subject, detail, acted_by, acted_at, seq, hash) values (${row}, 9, decode(repeat('ab', 32), 'hex'))`,
    /permission denied/,
  );
  await refused("update operator_actions set acted_by = 'eve'", /permission denied/);
  await refused('delete from operator_actions', /permission denied/);
  // The way the previous release writes one.
  await runtime.query(`insert into operator_actions (action, subject, detail, acted_by, acted_at) values (${row})`);
  await runtime.end();
  expect(await verify()).toMatchObject({ good: true, entries: 2 });
});

test('a log that was loaded from a backup must end where the backup says', async () => {
  await act(5);
  const { head } = await verify();
  const check = (auditHead: AuditHead | null | undefined) =>
    checkAudit({ db, sealer: null }, { ...({} as BackupHeader), ...(auditHead === undefined ? {} : { auditHead }) });
  expect(await check(head)).toEqual({ head, problem: null });
  // The previous release reports no head.
  expect(await check(undefined)).toEqual({ head, problem: null });
  const says = (said: number) =>
    `the audit log ends at entry 5, but according to the backup, it ended at entry ${said}`;
  const { rows } = await owner.query(`select encode(hash, 'hex') as hash from operator_actions where seq = 4`);
  expect(await check({ seq: 4, hash: rows[0].hash })).toEqual({ head, problem: says(4) });
  expect(await check(null)).toEqual({ head, problem: says(0) });
  expect((await check({ seq: 6, hash: 'ab'.repeat(32) })).problem).toMatch(
    /the log ends at entry 5: the end of the log was removed/,
  );
  expect((await check({ seq: 5, hash: 'ab'.repeat(32) })).problem).toMatch(/entry 5 had a different hash/);
});

test('the newest entry goes into the log and the metrics of a process, at its start and at its end', async () => {
  await act(2);
  const lines: unknown[] = [];
  const log = { info: ({ auditHead }: { auditHead: string }) => void lines.push(auditHead), warn: () => undefined };
  const metrics = createMetrics();
  const watch = startAuditHead({ db, metrics, log: log as never });
  const headNow = async () => writeHead((await verify()).head);
  const first = await headNow();
  await eventually(
    () => lines,
    (told) => told.length === 1,
  );
  await act(3);
  const last = await headNow();
  await watch.stop();
  expect(lines).toEqual([first, last]);
  expect(await metrics.registry.getSingleMetricAsString('quittance_audit_entries')).toMatch(
    /quittance_audit_entries 5$/m,
  );
});

test('in a long log what is new is looked at each minute, and all of it each day', async () => {
  await act(1500);
  let clock = Date.now();
  const seen: number[] = [];
  const headMark = { read: async () => null, write: async (_: object, { seq }: AuditHead) => void seen.push(seq) };
  await takeLedger(db, { id: randomUUID(), firstIndex: 0 }, 'none');
  const log = createLogger({ level: 'silent' });
  const watch = startLogWatch({
    ...{ db, network: 'devnet', log, seals: undefined, headMark, now: () => unixMs(clock), isLeader: () => true },
  });
  const found = async () =>
    (await owner.query(`select detail from alarms where kind = 'audit-broken'`)).rows
      .map(({ detail }) => detail)
      .join();
  try {
    await eventually(
      () => seen,
      (heads) => heads.includes(1500),
    );
    await act();
    await tamper("update operator_actions set subject = 'mainnet' where seq = 1501");
    clock += 60_000;
    await eventually(found, (text) => text.includes('entry 1501 or the previous entry was modified'));
    await tamper("update operator_actions set subject = 'nile' where seq = 1501");
    clock += 60_000;
    const open = async () => (await owner.query('select from alarms where resolved_at is null')).rowCount;
    await eventually(open, (count) => count === 0);
    await tamper("update operator_actions set subject = 'mainnet' where seq = 3");
    await act();
    clock += 60_000;
    await eventually(
      () => seen,
      (heads) => heads.at(-1) === 1502,
    );
    expect(await found()).not.toContain('entry 3 ');
    clock += 86_400_000;
    await eventually(found, (text) => text.includes('entry 3 or the previous entry was modified'));
  } finally {
    await watch.stop();
  }
});
