import { expect } from 'vitest';
import { eventually, judge, startReceiver, type World } from './fixture.ts';

/** Twice as long as our slowest machine needs for 100,000. */
const LIMIT_MS = 170_000;

/**
 * This many events are due at once, two for each invoice, and as many at a failing endpoint, half of which wait for the other half. Two
 * dispatchers deliver the first ones once and in order, and the others use up no attempts meanwhile.
 */
export async function deliverBacklog(world: World, count: number): Promise<void> {
  const healthy = await startReceiver(world);
  const failing = await startReceiver(world, (response) => response.writeHead(500).end());
  const [endpoint, broken] = [await world.addEndpoint(healthy.url), await world.addEndpoint(failing.url)];
  await world.addBacklog([endpoint, broken], count / 2, 2);
  let receivedBefore = 0;
  const fresh = await startReceiver(world, (response) => {
    receivedBefore = healthy.received.length;
    response.writeHead(204).end();
  });
  const urgent = await world.addEvent([await world.addEndpoint(fresh.url)]);
  for (let number = 0; number < 2; number++) world.startDispatcher();
  await eventually(async () => expect(await world.delivery(urgent)).toMatchObject({ status: 'delivered' }));
  expect(receivedBefore).toBeLessThan(count);
  let before = 0;
  await eventually(() => {
    // A delivery that waited long and is returned is due a millisecond later, which the world's clock must reach.
    if (healthy.received.length === before) world.clock.advance(1);
    before = healthy.received.length;
    expect(before).toBeGreaterThanOrEqual(count);
  }, LIMIT_MS);
  expect(new Set(healthy.received.map(({ id }) => id)).size).toBe(count);
  expect(healthy.received).toHaveLength(count);
  for (const received of healthy.received) expect(() => judge(world, endpoint.secret, received)).not.toThrow();
  const lastOf = new Map<string, number>();
  for (const { body } of healthy.received) {
    const { invoice, sequence } = JSON.parse(body.toString());
    expect(sequence).toBe((lastOf.get(invoice) ?? 0) + 1);
    lastOf.set(invoice, sequence);
  }
  await eventually(async () => {
    const left = await world.sql(
      `select w.id, count(*) filter (where d.status = 'delivered')::int as delivered, max(d.attempt_count) as attempts
       from webhook_endpoints w join deliveries d on d.endpoint_id = w.id where w.id in ($1, $2) group by w.id order by w.id = $2`,
      [endpoint.id, broken.id],
    );
    expect(left).toMatchObject([
      { delivered: count, attempts: 1 },
      { delivered: 0, attempts: 1 },
    ]);
  });
}
