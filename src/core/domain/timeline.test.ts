import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { unixMs } from './time.ts';
import { orderTimeline, TIMELINE_KINDS, type TimelineEntry } from './timeline.ts';

const entry = (at: number, kind: TimelineEntry['kind'], text = ''): TimelineEntry => {
  return { at: unixMs(at), kind, text, details: [], data: {} };
};

describe('a timeline', () => {
  test('has the earlier first, and of the same moment the cause before its effect', () => {
    const request = entry(5, 'requested');
    const match = entry(7, 'matched');
    const event = entry(7, 'event');
    expect(orderTimeline([event, match, request])).toEqual([request, match, event]);
  });

  test('keeps the given order of what is equal in time and kind', () => {
    const texts = orderTimeline([entry(1, 'event', 'a'), entry(1, 'event', 'b'), entry(0, 'event', 'c')]);
    expect(texts.map(({ text }) => text)).toEqual(['c', 'a', 'b']);
  });

  test('is the same however its entries were read, and loses none', () => {
    const any = fc.record({ at: fc.nat(3), kind: fc.constantFrom(...TIMELINE_KINDS) });
    const entries = fc.uniqueArray(any, { selector: ({ at, kind }) => `${at} ${kind}` });
    fc.assert(
      fc.property(entries, (list) => {
        const built = list.map(({ at, kind }) => entry(at, kind));
        expect(orderTimeline(built.toReversed())).toEqual(orderTimeline(built));
        expect(orderTimeline(built)).toHaveLength(built.length);
      }),
    );
  });
});
