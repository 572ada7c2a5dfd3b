import { afterAll, beforeAll, expect, test } from 'vitest';
import { PoisonWorld, PROMISED_MS } from './poison.ts';

const world = new PoisonWorld();
beforeAll(() => world.open('require'));
afterAll(() => world.close());

test('where no lease can be taken or renewed any more, every process says so, and a channel is told within a minute', async () => {
  const sinceMs = performance.now();
  await world.owner.query('alter table leases add constraint nobody check (false) not valid');
  expect(await world.untilTold(['watch-stalled'], sinceMs)).toBeLessThan(PROMISED_MS);
  await world.owner.query('alter table leases drop constraint nobody');
  await world.expectOtherGoesOn();
});
