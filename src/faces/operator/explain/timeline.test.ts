import { expect, test } from 'vitest';
import { unixMs } from '../../../core/domain/time.ts';
import type { ExplainedDelivery, ExplainedEvent } from './statements.ts';
import { describeDelivery, describeOutcome, isInProgress } from './timeline.ts';

const AT = unixMs(1_790_000_000_000);
const ID = '01999999-9999-7999-8999-999999999999';
const delivery = {
  ...{ eventId: ID, endpointId: ID, url: 'https://shop.example/hook', status: 'pending', attemptCount: 2 },
  ...{ finishedAt: null, lastStatus: 503, lastError: 'http_503: no', nextAttemptAt: AT, endpointDisabled: null },
} as unknown as ExplainedDelivery;
const event = { type: 'invoice.paid' } as ExplainedEvent;
const attempt = (number: number) => ({ attempt: number, at: AT, status: 503, error: 'http_503: no' }) as never;

test('an attempt that has begun is in progress, and not due', () => {
  const attempts = [attempt(1)];
  expect(isInProgress({ delivery, attempts })).toBe(true);
  const last = describeDelivery(event, { delivery, attempts }).at(-1)?.text;
  expect(last).toContain('attempt 2 is in progress');
  expect(last).not.toContain('is due');
});

test('after its outcome the next one is due', () => {
  const attempts = [attempt(1), attempt(2)];
  expect(isInProgress({ delivery, attempts })).toBe(false);
  expect(describeDelivery(event, { delivery, attempts }).at(-1)?.text).toContain('attempt 3 is due');
});

test('a callback that was no longer needed has no HTTP status', () => {
  expect(describeOutcome({ status: 204, error: null })).toBe('delivered, HTTP 204');
  expect(describeOutcome({ status: null, error: null })).toBe('not sent, because the order was paid in the meantime');
});
