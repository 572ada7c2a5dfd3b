import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { uuidV7 } from '../../src/core/domain/ids.ts';
import { MAX_ATTEMPTS, retryDelayMs } from '../../src/core/domain/retry.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { insertEvents } from '../../src/core/store/outbox/events.ts';
import { replayDeliveries } from '../../src/faces/operator/subjects/delivery-replay.ts';
import { expediteDeliveries } from '../../src/faces/operator/subjects/webhook-sending.ts';
import { createWorld } from './fixture.ts';

const HOUR_MS = 3_600_000;
const chances = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), {
  minLength: MAX_ATTEMPTS,
  maxLength: MAX_ATTEMPTS,
});
const retryAfters = fc.array(fc.option(fc.integer({ min: 0, max: 1e12 })), {
  minLength: MAX_ATTEMPTS,
  maxLength: MAX_ATTEMPTS,
});

test('12 attempts span at least 75 hours and at most 16 days, whatever the jitter and the receiver ask for', () => {
  fc.assert(
    fc.property(chances, retryAfters, (randoms, asked) => {
      const delays = randoms.map((random, index) => retryDelayMs(index + 1, random, asked[index] ?? null));
      expect(MAX_ATTEMPTS).toBe(12);
      expect(delays.at(-1)).toBeNull();
      const spanMs = delays.reduce<number>((sum, delay) => sum + (delay ?? 0), 0);
      expect(spanMs).toBeGreaterThanOrEqual(75 * HOUR_MS);
      expect(spanMs).toBeLessThanOrEqual(16 * 24 * HOUR_MS);
      expect(delays.slice(0, -1).every((delay) => Number.isSafeInteger(delay))).toBe(true);
    }),
  );
});

test('the wait is never shorter than the Retry-After, up to a day', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: MAX_ATTEMPTS - 1 }), fc.nat(30 * HOUR_MS), (attempt, retryAfterMs) => {
      expect(retryDelayMs(attempt, 0, retryAfterMs)).toBeGreaterThanOrEqual(Math.min(retryAfterMs, 24 * HOUR_MS));
    }),
  );
});

test('news, a replay and what is hurried are due at once by the database, however wrong the clock of the writer is', async () => {
  const world = await createWorld();
  try {
    // These events don't correspond to a change of the invoice.
    await world.sql('alter table events disable trigger events_tell_of_their_invoice');
    const db = world.openDatabase();
    const endpoint = await world.addEndpoint('https://shop.example/');
    const invoiceId = await world.addInvoice();
    const record = async (sequence: number, writerMs: number) => {
      const id = uuidV7(writerMs, randomBytes(10));
      const news = { id, projectId: world.projectId, type: 'invoice.expired', transferId: null, body: '{}' } as const;
      const event = { ...news, invoiceId, sequence };
      await db.transaction((tx) => insertEvents(tx, 'devnet', [event], unixMs(writerMs)));
      return id;
    };
    const waiting = async () =>
      (await world.sql('select event_id from deliveries where next_attempt_at > now() order by sequence')).map(
        (row) => row['event_id'],
      );
    let sequence = 0;
    for (const aheadMs of [-HOUR_MS, 0, 1000, HOUR_MS, 24 * HOUR_MS]) {
      const writerMs = Date.now() + aheadMs;
      const postpone = (id: string) =>
        world.sql(
          `update deliveries set next_attempt_at = now() + interval '59 minutes', attempt_count = 0 where event_id = $1`,
          [id],
        );
      sequence += 1;
      const earlier = await record(sequence, writerMs);
      expect(await waiting(), `news of a clock ${aheadMs} ms ahead`).toEqual([]);
      await postpone(earlier);
      sequence += 1;
      const later = await record(sequence, writerMs);
      expect(await waiting(), `news behind a retry, ${aheadMs} ms ahead`).toEqual([]);
      await world.sql(`update deliveries set status = 'dead' where event_id = $1`, [later]);
      const eventIds = [later];
      await replayDeliveries(db, { endpointId: endpoint.id, eventIds, now: unixMs(writerMs) });
      expect(await waiting(), `a replay, ${aheadMs} ms ahead`).toEqual([]);
      await world.sql(`update deliveries set next_attempt_at = now() + interval '3 days' where event_id = $1`, [later]);
      await expediteDeliveries(db, endpoint.id, unixMs(writerMs), {
        after: '00000000-0000-0000-0000-000000000000',
        limit: 100,
      });
      expect(await waiting(), `what is hurried, ${aheadMs} ms ahead`).toEqual([]);
    }
  } finally {
    await world.end();
  }
});
