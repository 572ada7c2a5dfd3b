import { expect } from 'vitest';
import { resolveAlarms } from '../../src/core/store/chain/alarms.ts';
import { findProducerSets } from '../../src/core/store/chain/producer-sets.ts';
import { eventually } from '../support/service.ts';
import { type Attempt, tryGroup, World } from './world.ts';

const world = new World();
const LEASE = `update leases set holder = 'thief', epoch = epoch + 1, expires_at = now() + interval '10 minutes'`;

/** Changes nothing harmful: an order is created and paid afterwards. */
const harmless =
  (text: string): Attempt =>
  async (as) => {
    await as(text);
    return { holds: () => world.expectWell() };
  };

const producersInserted: Attempt = async (as) => {
  await as(
    `insert into producer_sets (network, chain_time, replaced_after, reason, producers, nodes)
     select network, now(), now(), 'operator', producers, nodes from producer_sets where mac is not null limit 1`,
  );
  return {
    named: 'row-changed producer_sets',
    holds: () => expect(findProducerSets(world.service.db, 'devnet', 3)).rejects.toMatchObject({ code: 'ROW_CHANGED' }),
    undo: `delete from producer_sets where mac is null; update alarms set resolved_at = now() where kind = 'row-changed'`,
  };
};

const producersDeleted: Attempt = async (as, rights) => {
  if (rights === 'plain') await as('delete from producer_sets');
  await world.service.stopService();
  await as('delete from producer_sets');
  await world.service.restart();
  return { holds: () => world.expectWell() };
};

const cursorMoved: Attempt = async (as) => {
  // The previous attempt's alarm must not count for this one.
  await world.lookAgain();
  // A process that read the row before it was restored may raise an alarm at this moment.
  await eventually(
    async () => {
      await resolveAlarms(world.service.db, 'devnet', 'row-changed');
      return (await world.alarms()).filter((alarm) => alarm.includes('chain_cursors'));
    },
    ({ length }) => length === 0,
  );
  // This is the furthest that's possible while a process follows the network, and only together with the examined blocks: the database
  // refuses the rest.
  await as(`begin; select from chain_cursors c, forget_head_blocks_up_to(c.network, c.solid_number + 1000) for update of c;
    update chain_cursors set solid_number = solid_number + 1000; commit`);
  return { named: 'chain_cursors', undo: 'update chain_cursors set solid_number = solid_number - 1000' };
};

tryGroup(
  world,
  'chain',
  { shops: 0, prepare: () => world.expectWell() },
  {
    // The next process that follows the network reads it.
    34: harmless(`update chain_status set status = '{}'; ${LEASE}`),
    35: harmless(LEASE),
    38: harmless('update allocation_hints set position = 900, epoch = 900'),
    39: producersInserted,
    40: producersDeleted,
    42: cursorMoved,
  },
);
