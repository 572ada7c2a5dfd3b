import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  hadPayment,
  INVOICE_STATUSES,
  type InvoiceChange,
  type InvoiceStatus,
  isLate,
  matchTransfer,
  transition,
} from './invoice.ts';
import { unixMs } from './time.ts';

const DEADLINE = unixMs(1_000_000);
const BEFORE = unixMs(999_999);
const AFTER = unixMs(1_000_001);

const clock = fc.integer({ min: 999_990, max: 1_000_010 }).map(unixMs);
const status = fc.constantFrom(...INVOICE_STATUSES);
const change: fc.Arbitrary<InvoiceChange> = fc.oneof(
  fc.constant<InvoiceChange>({ kind: 'sighted' }),
  fc.constant<InvoiceChange>({ kind: 'paid' }),
  clock.map((at): InvoiceChange => ({ kind: 'orphaned', clock: at })),
  clock.map((at): InvoiceChange => ({ kind: 'clock-passed', clock: at })),
);

describe('transition', () => {
  const rows: [InvoiceStatus, InvoiceChange, InvoiceStatus | null][] = [
    ['PENDING', { kind: 'sighted' }, 'CONFIRMING'],
    ['PENDING', { kind: 'paid' }, 'PAID'],
    ['PENDING', { kind: 'orphaned', clock: AFTER }, null],
    ['PENDING', { kind: 'clock-passed', clock: BEFORE }, null],
    ['PENDING', { kind: 'clock-passed', clock: DEADLINE }, 'EXPIRED'],
    ['PENDING', { kind: 'clock-passed', clock: AFTER }, 'EXPIRED'],
    ['CONFIRMING', { kind: 'sighted' }, null],
    ['CONFIRMING', { kind: 'paid' }, 'PAID'],
    ['CONFIRMING', { kind: 'orphaned', clock: BEFORE }, 'PENDING'],
    ['CONFIRMING', { kind: 'orphaned', clock: DEADLINE }, 'EXPIRED'],
    ['CONFIRMING', { kind: 'orphaned', clock: AFTER }, 'EXPIRED'],
    ['CONFIRMING', { kind: 'clock-passed', clock: AFTER }, null],
    ['EXPIRED', { kind: 'sighted' }, 'CONFIRMING'],
    ['EXPIRED', { kind: 'paid' }, 'PAID'],
    ['EXPIRED', { kind: 'orphaned', clock: BEFORE }, null],
    ['EXPIRED', { kind: 'clock-passed', clock: AFTER }, null],
    ['PAID', { kind: 'sighted' }, null],
    ['PAID', { kind: 'paid' }, null],
    ['PAID', { kind: 'orphaned', clock: AFTER }, null],
    ['PAID', { kind: 'clock-passed', clock: AFTER }, null],
  ];
  test.each(rows)('%s on %o becomes %s', (from, on, to) => {
    expect(transition({ status: from, expiresAt: DEADLINE }, on)).toBe(to);
  });

  test('any non-paid state becomes PAID on one exact transfer', () => {
    fc.assert(
      fc.property(
        status.filter((each) => each !== 'PAID'),
        (from) => transition({ status: from, expiresAt: DEADLINE }, { kind: 'paid' }) === 'PAID',
      ),
    );
  });

  test('PAID is never left, and nothing but an irreversible transfer reaches it', () => {
    fc.assert(
      fc.property(status, fc.array(change), (start, changes) => {
        let now: InvoiceStatus = start;
        for (const each of changes) {
          const next: InvoiceStatus | null = transition({ status: now, expiresAt: DEADLINE }, each);
          if (now === 'PAID') expect(next).toBeNull();
          if (next === 'PAID') expect(each.kind).toBe('paid');
          now = next ?? now;
        }
      }),
    );
  });

  test('a change is told once: the same again changes nothing', () => {
    fc.assert(
      fc.property(status, change, (from, on) => {
        const to = transition({ status: from, expiresAt: DEADLINE }, on);
        if (to !== null) expect(transition({ status: to, expiresAt: DEADLINE }, on)).toBeNull();
      }),
    );
  });

  test('nothing becomes EXPIRED before the chain’s clock has reached expiresAt', () => {
    fc.assert(
      fc.property(status, change, (from, on) => {
        const to = transition({ status: from, expiresAt: DEADLINE }, on);
        if (to === 'EXPIRED') expect('clock' in on && on.clock >= DEADLINE).toBe(true);
      }),
    );
  });
});

test('a transfer is late only after expiresAt', () => {
  expect([BEFORE, DEADLINE, AFTER].map((time) => isLate(time, DEADLINE))).toEqual([false, false, true]);
});

test('an invoice that waits had a payment exactly if it was CONFIRMING before, whatever happened to it', () => {
  const deadline = unixMs(1000);
  const changes = fc.array(
    fc.oneof(
      fc.constant({ kind: 'sighted' } as const),
      fc.record({ kind: fc.constantFrom('orphaned' as const, 'clock-passed' as const), at: fc.nat(2000) }),
    ),
  );
  fc.assert(
    fc.property(changes, (all) => {
      let [status, eventCount, wasConfirming]: [InvoiceStatus, number, boolean] = ['PENDING', 0, false];
      for (const change of all) {
        const clock = unixMs('at' in change ? change.at : 0);
        const to = transition({ status, expiresAt: deadline }, { ...change, clock } as InvoiceChange);
        if (to === null) continue;
        [status, eventCount, wasConfirming] = [to, eventCount + 1, wasConfirming || to === 'CONFIRMING'];
      }
      if (status !== 'CONFIRMING') expect(hadPayment(status, eventCount)).toBe(wasConfirming);
    }),
  );
  // These wait for nothing: a payment is on its way, or came.
  expect([hadPayment('CONFIRMING', 3), hadPayment('PAID', 4)]).toEqual([false, false]);
});

test('a transfer that no invoice reserves is unmatched', () => {
  expect(matchTransfer(null)).toBe('unmatched');
});

test.each(['PENDING', 'CONFIRMING', 'EXPIRED'] as const)('a transfer of a %s invoice’s amount pays it', (status) => {
  expect(matchTransfer(status)).toBe('matched');
});

test('a second transfer of a paid invoice’s amount is a duplicate', () => {
  expect(matchTransfer('PAID')).toBe('duplicate');
});
