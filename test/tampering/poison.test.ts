import { afterAll, beforeAll, expect, test } from 'vitest';
import { casesOf, PoisonWorld, PROMISED_MS } from './poison.ts';
import { tellStatus } from './world.ts';

const world = new PoisonWorld();
beforeAll(() => world.open('require'));
afterAll(() => world.close());

const REFUSED: readonly (readonly [what: string, statement: string, by: RegExp])[] = [
  [
    'a lease that nobody takes over any more',
    `update leases set epoch = 9223372036854775807, holder = 'x', expires_at = now() + interval '1 hour'`,
    /^leases_(end_soon|epoch_rises)$/,
  ],
  ['a lease that lasts for an hour', `update leases set expires_at = now() + interval '1 hour'`, /^leases_end_soon$/],
  [
    'the last position',
    'update event_streams set last_position = 9223372036854775806 where project_id = $1',
    /^event_streams_rise$/,
  ],
  [
    'the last count of events',
    'update invoices set event_count = 2147483647 where id = $2',
    /with 2147483647 more events: each change of its status is one event$/,
  ],
  [
    'a count of events without an event',
    'update invoices set event_count = 1 where id = $2',
    /with 1 more events: each change of its status is one event$/,
  ],
  [
    'a cursor that is moved on',
    `update chain_cursors set solid_number = solid_number + 1 where network = 'devnet'`,
    /^chain_cursors_move_whole$/,
  ],
  [
    'a cursor of later',
    `update chain_cursors set solid_time = now() + interval '1 day' where network = 'devnet'`,
    /^chain_cursors_move_whole$/,
  ],
  [
    'a ledger that is marked as the one of another database',
    'update ledger_identity set database_oid = database_oid + 1',
    /^ledger_identity_is_of_here$/,
  ],
];

test.each(REFUSED)('%s is refused, and orders of another project go on', async (_what, statement, by) => {
  const victim = await world.victim();
  const values = [victim.id, victim.open].slice(0, (statement.match(/\$\d/g) ?? []).length === 0 ? 0 : 2);
  // Mentions each parameter, whatever the statement needs.
  const text = values.length === 0 ? statement : `with given as (select $1::uuid, $2::uuid) ${statement}`;
  expect(await world.refusalOf(text, values)).toMatch(by);
  await world.expectOtherGoesOn([victim]);
});

test('a status that somebody wrote stops no order of another project, and a channel is told of it within a minute', async () => {
  const victim = await world.victim();
  const sinceMs = performance.now();
  expect(await world.refusalOf(`begin; ${tellStatus(victim.open, 'EXPIRED', 1)}; commit`)).toBeNull();
  await world.expectOtherGoesOn([victim]);
  expect(await world.untilTold(victim.names, sinceMs)).toBeLessThan(PROMISED_MS);
});

// By now every table has a row, notifications too.
test('every number and time that the service may write has bounds in the database', async () => {
  const columns = await world.columns();
  expect(columns.length).toBeGreaterThan(60);
  const open: string[] = [];
  for (const { table, column, value, sql } of casesOf(columns).filter(({ value }) =>
    /^(min|max|first|last)$/.test(value),
  )) {
    await world.owner.query('begin');
    // The bounds are checked whatever other guards say about the row.
    await world.owner.query('set local session_replication_role = replica');
    const refusedBy = await world.refusalOf(`update ${table} set ${column} = ${sql}`, [], world.owner);
    await world.owner.query('rollback');
    if (refusedBy === null) open.push(`${table}.${column} ${value}`);
  }
  expect(open).toEqual([]);
});
