import fc from 'fast-check';
import { expect, test } from 'vitest';
import { encodeId, timeOfId, uuidV7 } from '../../core/domain/ids.ts';
import { unixMs } from '../../core/domain/time.ts';
import { createRequestBuffer, type Loss, MAX_WAITING, TOGETHER, TURNED_AWAY_A_MINUTE } from './request-log.ts';

const P = { id: 'key p', projectId: 'p' };
const Q = { id: 'key q', projectId: 'p' };

let serial = 0;
const requestAt = (ms: number) => {
  serial += 1;
  const random = new Uint8Array(10);
  new DataView(random.buffer).setUint32(6, serial);
  return { id: encodeId('req', uuidV7(ms, random)), method: 'GET', status: 200, took_ms: 1 };
};

function newBuffer(clock = { ms: 0 }) {
  const lost: Record<Loss, number> = { flood: 0, full: 0, failed: 0 };
  const buffer = createRequestBuffer(
    (why, count) => {
      lost[why] += count;
    },
    () => unixMs(clock.ms),
  );
  const takeAll = () => {
    const ids: string[] = [];
    for (let batches = buffer.take(); batches.length > 0; batches = buffer.take()) {
      ids.push(...batches.flatMap(({ requests }) => requests.map(({ id }) => id)));
    }
    return ids;
  };
  return { buffer, lost, takeAll };
}

test('what does not fit goes, the oldest first, and is counted: there are never more than so many', () => {
  const { buffer, lost, takeAll } = newBuffer();
  const ids = Array.from({ length: 3 * MAX_WAITING }, (_, n) => {
    const request = requestAt(n);
    buffer.add({ key: P, isAdmitted: true, request });
    expect(buffer.size()).toBeLessThanOrEqual(MAX_WAITING);
    return request.id;
  });
  const kept = takeAll();
  expect(kept.length).toBeGreaterThan(MAX_WAITING - TOGETHER);
  expect(kept).toEqual(ids.slice(-kept.length));
  expect(lost).toEqual({ flood: 0, full: ids.length - kept.length, failed: 0 });
});

test('a batch holds requests with one key of one second, each request stands in one, and one write takes at most 500', () => {
  const added = fc.record({ at: fc.integer({ min: 0, max: 5000 }), key: fc.constantFrom(P, Q, null) });
  fc.assert(
    fc.property(fc.array(added, { minLength: 1, maxLength: 1200 }), (all) => {
      const { buffer } = newBuffer();
      const expected = all.map(({ at, key }) => {
        const request = requestAt(at);
        buffer.add({ key, isAdmitted: true, request });
        return `${key?.id} ${request.id}`;
      });
      const found: string[] = [];
      for (let batches = buffer.take(); batches.length > 0; batches = buffer.take()) {
        expect(batches.reduce((sum, { requests }) => sum + requests.length, 0)).toBeLessThanOrEqual(TOGETHER);
        for (const { key, requests } of batches) {
          expect(new Set(requests.map(({ id }) => Math.floor(timeOfId(id) / 1000))).size).toBe(1);
          found.push(...requests.map(({ id }) => `${key?.id} ${id}`));
        }
      }
      expect(found.sort()).toEqual(expected.sort());
    }),
    { numRuns: 50 },
  );
});

test('those that were turned away are kept so often in a minute, strangers and known keys apart, and again in the next', () => {
  const clock = { ms: 0 };
  const { buffer, lost, takeAll } = newBuffer(clock);
  for (const minute of [1, 2]) {
    clock.ms = minute * 60_000;
    for (const key of [null, P]) {
      for (let n = 0; n < TURNED_AWAY_A_MINUTE + 50; n += 1) {
        buffer.add({ key, isAdmitted: false, request: requestAt(clock.ms) });
      }
    }
    buffer.add({ key: P, isAdmitted: true, request: requestAt(clock.ms) });
    expect(takeAll()).toHaveLength(2 * TURNED_AWAY_A_MINUTE + 1);
    expect(lost.flood).toBe(minute * 100);
  }
});
