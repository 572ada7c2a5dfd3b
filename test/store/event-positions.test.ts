import { randomBytes, randomUUID } from 'node:crypto';
import pg from 'pg';
import { expect, test } from 'vitest';
import { encodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { migrate, readMigrations } from '../../src/core/store/db/migrate.ts';
import { findFeedPage, recordEvents } from '../../src/core/store/outbox/events.ts';
import { databaseOfFile, databaseOfTest } from '../support/postgres.ts';
import { createTestProject, eventually, type TestProject } from '../support/service.ts';

const NOW = unixMs(Date.now());

const { database, db, client: watching } = await databaseOfFile(20);

/** Creates an event whose id is this many milliseconds newer: processes differ in when they create ids, and in their clocks. */
function event(projectId: string, madeAfterMs = 0) {
  const id = uuidV7(NOW + madeAfterMs, randomBytes(10));
  const body = JSON.stringify({ id: encodeId('evt', id), note: 'Grüße ₮ \u2028 𝄞' });
  return { id, projectId, type: 'ping' as const, invoiceId: null, transferId: null, sequence: 1, body };
}
type Event = ReturnType<typeof event>;

/** Starts a transaction that has written events, or waits to, and ends on request. */
function write(...events: Event[]) {
  let end: (how: 'commit' | 'roll back') => void = () => undefined;
  const reported = new Promise<'commit' | 'roll back'>((resolve) => {
    end = resolve;
  });
  let hasWritten = false;
  const ended = db
    .transaction(async (tx) => {
      // The test decides how long a transaction stays open, however busy the machine is.
      await tx.script(
        'set local idle_in_transaction_session_timeout = 0; set local statement_timeout = 0; set local lock_timeout = 0',
      );
      await recordEvents(tx, 'devnet', events, NOW);
      hasWritten = true;
      if ((await reported) === 'roll back') throw new Error('rolled back');
    })
    .catch((error: Error) => {
      if (error.message !== 'rolled back') throw error;
    });
  return {
    written: () => eventually(() => hasWritten, Boolean),
    commit: () => {
      end('commit');
      return ended;
    },
    rollBack: () => {
      end('roll back');
      return ended;
    },
  };
}

/** Waits until this many transactions wait for a lock. */
async function untilWaiting(count: number) {
  await eventually(
    async () => {
      const text = `select count(*)::int as count from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
      return (await watching.query(text)).rows[0].count as number;
    },
    (waiting) => waiting === count,
  );
}

/** Continues with the id of the last event like a receiver, and separately like a receiver that mistakes ids for the order. */
function createReader({ keyId }: TestProject) {
  const seen: string[] = [];
  const seenById: string[] = [];
  return {
    seen,
    seenById,
    read: async (limit = 2) => {
      for (let hasMore = true; hasMore; ) {
        const page = await findFeedPage(db, { keyId, after: seen.at(-1) ?? null, limit }, NOW);
        if (page.kind !== 'page') throw new Error(page.kind);
        for (const body of page.bodies) seen.push(uuidOf(body));
        hasMore = page.hasMore;
      }
      const text =
        'select id from events where project_id = (select project_id from api_keys where id = $1) and ($2::uuid is null or id > $2) order by id';
      for (const { id } of (await watching.query(text, [keyId, seenById.at(-1) ?? null])).rows) seenById.push(id);
    },
  };
}

const uuids = new Map<string, string>();
function uuidOf(body: string): string {
  return uuids.get(JSON.parse(body).id) ?? expect.fail(`never written: ${body}`);
}
function known<const Events extends Event[]>(...events: Events): Events {
  for (const { id } of events) uuids.set(encodeId('evt', id), id);
  return events;
}

async function positionsOf(projectId: string): Promise<[string, number][]> {
  const text = 'select id, position::int as position from events where project_id = $1 order by position';
  return (await watching.query(text, [projectId])).rows.map(({ id, position }) => [id, position]);
}

test('an event that commits late is not skipped, although its id is older than the last that was read', async () => {
  const project = await createTestProject(db);
  const reader = createReader(project);
  const [first, second, third] = known(event(project.id, 3), event(project.id, 2), event(project.id, 1));
  const a = write(first);
  await a.written();
  const b = write(second);
  await untilWaiting(1);
  await reader.read();
  expect(reader.seen).toEqual([]);

  await a.commit();
  await b.written();
  const c = write(third);
  await untilWaiting(1);
  await reader.read();
  expect(reader.seen).toEqual([first.id]);

  await b.commit();
  await c.commit();
  await reader.read();
  expect(reader.seen).toEqual([first.id, second.id, third.id]);
  // A receiver that mistakes ids for the feed's order would miss two of them.
  expect(reader.seenById).toEqual([first.id]);
});

test('a transaction that is rolled back leaves no gap: who waited for it takes its positions', async () => {
  const project = await createTestProject(db);
  const [lost, alsoLost, kept, last] = known(...[1, 2, 3, 4].map((ms) => event(project.id, ms))) as Event[];
  if (!lost || !alsoLost || !kept || !last) throw new Error('four were made');
  // A project's first event is special, because there is no row yet to lock.
  const a = write(lost, alsoLost);
  await a.written();
  const b = write(kept);
  await untilWaiting(1);
  await a.rollBack();
  await b.written();
  const c = write(last);
  await untilWaiting(1);
  await b.commit();
  await c.commit();
  expect(await positionsOf(project.id)).toEqual([
    [kept.id, 1],
    [last.id, 2],
  ]);
});

test('projects do not wait for each other', async () => {
  const [one, other] = [await createTestProject(db), await createTestProject(db)];
  const a = write(...known(event(one.id)));
  await a.written();
  const b = write(...known(event(other.id)));
  await b.written();
  await b.commit();
  await a.commit();
  expect([await positionsOf(one.id), await positionsOf(other.id)].map(({ length }) => length)).toEqual([1, 1]);
});

test('two batches over the same projects in opposite order do not deadlock', async () => {
  const [low = '', high = ''] = [(await createTestProject(db)).id, (await createTestProject(db)).id].sort();
  // Transactions get an existing row in the order in which they started to wait for it.
  await write(...known(event(low), event(high))).commit();
  const holding = write(...known(event(low)));
  await holding.written();
  // Both wait for the first project. If they locked in their own order, the second would by now hold the other project, which the first
  // needs next.
  const forth = write(...known(event(low), event(high)));
  await untilWaiting(1);
  const back = write(...known(event(high), event(low)));
  await untilWaiting(2);
  await holding.commit();
  await Promise.all([forth.commit(), back.commit()]);
  expect([await positionsOf(low), await positionsOf(high)].map((all) => all.map(([, position]) => position))).toEqual([
    [1, 2, 3, 4],
    [1, 2, 3],
  ]);
});

test('a batch keeps its order, whatever the ids', async () => {
  const [one, other] = [await createTestProject(db), await createTestProject(db)];
  const events = known(...[5, 1, 4, 2, 3, 0].map((ms, index) => event((index % 2 ? one : other).id, ms)));
  await write(...events).commit();
  for (const { id } of [one, other]) {
    const expected = events.filter(({ projectId }) => projectId === id).map((each, index) => [each.id, index + 1]);
    expect(await positionsOf(id)).toEqual(expected);
  }
});

/** The previous release's statement. Its processes may still run when the first ones of this release start. */
const FORMER_INSERT = `insert into events (id, project_id, network, type, invoice_id, transfer_id, sequence, body, created_at)
  select (e->>'id')::uuid, (e->>'projectId')::uuid, $1, e->>'type', (e->>'invoiceId')::uuid, (e->>'transferId')::uuid,
    (e->>'sequence')::int4, e->>'body', $3
  from jsonb_array_elements($2::text::jsonb) e`;

test('with 10 writers of this and the former release, commits and rollbacks, a reader sees each committed event once, in order', async () => {
  const projects = [await createTestProject(db), await createTestProject(db)] as const;
  const readers = projects.map(createReader);
  const committed = new Set<string>();
  let madeCount = 0;
  const writer = async (index: number) => {
    for (let round = 0; round < 12; round++) {
      madeCount += 1;
      const both = (index + round) % 3 === 0;
      // One writer's clock is ahead.
      const made = known(
        ...(both ? projects : [projects[index % 2 ? 1 : 0]]).flatMap(({ id }) => [
          event(id, madeCount + (index === 0 ? 60_000 : 0)),
          event(id, madeCount),
        ]),
      );
      const isRolledBack = (index * 7 + round) % 5 === 0;
      const client = new pg.Client(database.owner);
      await client.connect();
      try {
        await client.query('begin');
        // Sometimes runs other statements in between, so that commits overlap in new ways.
        for (let i = 0; i < (index + round) % 4; i++) await client.query('select 1');
        if (index % 5 === 4) {
          // It locks the rows of streams in the order of its batch, which is by project id in all of ours.
          const ordered = made.toSorted((x, y) => (x.projectId < y.projectId ? -1 : 1));
          await client.query(FORMER_INSERT, ['devnet', JSON.stringify(ordered), new Date(NOW)]);
        } else {
          await recordEvents(onClient(client), 'devnet', made, NOW);
        }
        for (let i = 0; i < (index * 3 + round) % 5; i++) await client.query('select 1');
        await client.query(isRolledBack ? 'rollback' : 'commit');
      } finally {
        await client.end();
      }
      if (!isRolledBack) for (const { id } of made) committed.add(id);
    }
  };
  let isWriting = true;
  const reading = readers.map(async (reader) => {
    do await reader.read(3);
    while (isWriting);
    await reader.read(3);
  });
  await Promise.all(Array.from({ length: 10 }, (_, index) => writer(index))).finally(() => {
    isWriting = false;
  });
  await Promise.all(reading);

  for (const [index, { seen, seenById }] of readers.entries()) {
    const all = await positionsOf(projects[index]?.id ?? '');
    expect(all.length).toBeGreaterThan(50);
    expect(all.map(([, position]) => position)).toEqual(all.map((_, place) => place + 1));
    expect(seen).toEqual(all.map(([id]) => id));
    expect(seenById.length, 'the same run would have cost a reader by ids some events').toBeLessThan(seen.length);
  }
  expect(new Set(readers.flatMap(({ seen }) => seen))).toEqual(committed);
});

/** Runs our statements on a connection of the test. */
function onClient(client: pg.Client): Parameters<typeof recordEvents>[0] {
  return {
    run: async ({ name, text }, values) => (await client.query({ name, text, values: [...values] })).rows,
    script: async (text) => void (await client.query(text)),
    sealer: async () => null,
  };
}

test('the migration numbers the events there are by time, sequence and id, and they cannot be changed afterwards', async () => {
  const { db: olderDb, client } = await databaseOfTest(1, 'owner');
  await client.query('drop schema public cascade; create schema public');
  const migrations = await readMigrations();
  await migrate(olderDb, { migrations: migrations.slice(0, 3) });
  const [one, other, empty] = [randomUUID(), randomUUID(), randomUUID()];
  for (const id of [one, other, empty]) {
    await client.query(`insert into projects (id, name, network) values ($1, 'shop', 'devnet')`, [id]);
  }
  const insert = async (id: string, projectId: string, second: number, sequence: number) => {
    const at = new Date(NOW + second * 1000);
    const values = [id, projectId, sequence, `{"id":"${id}"}`, at];
    await client.query(
      `insert into events (id, project_id, network, type, sequence, body, created_at) values ($1, $2, 'devnet', 'ping', $3, $4, $5)`,
      values,
    );
  };
  const ids = Array.from({ length: 7 }, () => randomUUID()).sort() as [
    string,
    string,
    string,
    string,
    string,
    string,
    string,
  ];
  // In no particular order: [id, project, second, sequence].
  await insert(ids[5], one, 3, 1);
  await insert(ids[4], one, 1, 2);
  await insert(ids[0], other, 2, 1);
  await insert(ids[6], one, 1, 1);
  await insert(ids[2], one, 2, 1);
  await insert(ids[1], one, 2, 1);
  await insert(ids[3], other, 1, 9);
  await migrate(olderDb, { migrations: migrations.slice(0, 4) });

  const positions = async (projectId: string) =>
    (
      await client.query('select id, position::int as position from events where project_id = $1 order by position', [
        projectId,
      ])
    ).rows.map(({ id, position }) => [id, position]);
  const expected = [ids[6], ids[4], ids[1], ids[2], ids[5]].map((id, index) => [id, index + 1]);
  expect(await positions(one)).toEqual(expected);
  expect(await positions(other)).toEqual([
    [ids[3], 1],
    [ids[0], 2],
  ]);
  const last = 'select project_id, last_position::int as last_position from event_streams order by last_position';
  expect((await client.query(last)).rows).toEqual([
    { project_id: other, last_position: 2 },
    { project_id: one, last_position: 5 },
  ]);
  for (const text of ['update events set position = position + 100', 'delete from events', 'truncate events cascade']) {
    await expect(client.query(text), text).rejects.toThrow(/kept|never/);
  }
  // This release, which has more columns, writes the events.
  await migrate(olderDb);
  const next = event(one);
  await olderDb.transaction((tx) => recordEvents(tx, 'devnet', [next], NOW));
  expect((await positions(one)).at(-1)).toEqual([next.id, 6]);
  await insert(randomUUID(), other, 0, 1);
  expect((await positions(other)).at(-1)?.[1]).toBe(3);
  await insert(randomUUID(), empty, 0, 1);
  expect((await positions(empty)).map(([, position]) => position)).toEqual([1]);
});
