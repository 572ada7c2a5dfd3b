import fc from 'fast-check';
import pg from 'pg';
import { expect, test } from 'vitest';
import { types } from './database.ts';

const TIMESTAMPTZ = 1184;
const read = types.getTypeParser(TIMESTAMPTZ, 'text') as (text: string) => number;

/** A time as PostgreSQL writes it: microseconds without trailing zeros, in any time zone. */
const written = fc
  .record({
    ms: fc.integer({ min: Date.UTC(1, 0, 1), max: Date.UTC(9999, 11, 31) }),
    micros: fc.integer({ min: 0, max: 999_999 }),
    zone: fc.constantFrom('+00', '+01', '-03:30', '+00 BC'),
  })
  .map(({ ms, micros, zone }) => {
    const fraction = micros === 0 ? '' : `.${String(micros).padStart(6, '0').replace(/0+$/, '')}`;
    return `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')}${fraction}${zone}`;
  });

test('a time is read as the driver reads it, to the millisecond', () => {
  fc.assert(
    fc.property(written, (text) => {
      expect(read(text)).toBe(Number(pg.types.getTypeParser(TIMESTAMPTZ)(text)));
    }),
  );
  for (const text of ['infinity', '294276-12-31 23:59:59.999999+00']) expect(read(text)).toBe(8_640_000_000_000_000);
  expect(read('-infinity')).toBe(-8_640_000_000_000_000);
});
