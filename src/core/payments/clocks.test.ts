import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { judgeClocks, MOST_MS } from './clocks.ts';

const NOW = Date.UTC(2026, 10, 24);
const HOUR = 3_600_000;
const AGE = 5000;

/** The chain's newest block is some seconds old. */
const judge = (process: number, database: number, chain: number | null, isLive = true) =>
  judgeClocks({
    ...{ process: NOW + process, database: NOW + database },
    chain: chain === null ? null : { time: NOW + chain - AGE, isLive },
  });

describe('clocks', () => {
  test.each([0, 1000, -1000, 20_000, -20_000])('that differ by %i ms are right', (ms) => {
    expect(judge(ms, 0, 0)).toEqual({ kind: 'right' });
    expect(judge(0, ms, 0)).toEqual({ kind: 'right' });
  });

  test.each([MOST_MS, -MOST_MS, HOUR, -HOUR, 91 * 24 * HOUR, -91 * 24 * HOUR])(
    'one that is off by %i ms is named: the two others agree',
    (byMs) => {
      expect(judge(byMs, 0, 0)).toEqual({ kind: 'process', byMs });
      expect(judge(0, byMs, 0)).toEqual({ kind: 'database', byMs });
    },
  );

  test('one that is behind a verified block is wrong, however old that block is', () => {
    expect(judge(-HOUR, 0, -HOUR / 2, false)).toEqual({ kind: 'process', byMs: -HOUR });
    expect(judge(0, -HOUR, -HOUR / 2, false)).toEqual({ kind: 'database', byMs: -HOUR });
    expect(judge(-HOUR, -HOUR, 0, false)).toEqual({ kind: 'both', byMs: AGE - HOUR });
    expect(judge(-2 * HOUR, -HOUR, 0, false)).toEqual({ kind: 'both', byMs: AGE - HOUR });
  });

  test('it is said where it cannot be told', () => {
    // Nothing is seen of a chain, or only what is old.
    expect(judge(HOUR, 0, null)).toMatchObject({ kind: 'unclear', process: HOUR });
    expect(judge(HOUR, 0, -2 * HOUR, false)).toMatchObject({ kind: 'unclear', process: HOUR });
    // Three say three things.
    expect(judge(2 * HOUR, HOUR, 0)).toMatchObject({ kind: 'unclear', process: HOUR });
    // A machine with both is ahead, or all nodes show what is old.
    expect(judge(HOUR, HOUR, 0)).toEqual({ kind: 'unclear', process: HOUR + AGE, database: HOUR + AGE });
  });

  test('an old chain contradicts nobody: a watcher catches up, or sees nothing', () => {
    expect(judge(0, 0, -HOUR, false)).toEqual({ kind: 'right' });
  });

  test('with one wrong clock of three, the right ones are never named', () => {
    const off = fc.integer({ min: -1e12, max: 1e12 }).filter((ms) => Math.abs(ms) >= MOST_MS + 20_000);
    const small = fc.integer({ min: -5000, max: 5000 });
    fc.assert(
      fc.property(off, small, fc.boolean(), (byMs, jitter, isProcess) => {
        const verdict = isProcess ? judge(byMs, jitter, 0) : judge(jitter, byMs, 0);
        expect(verdict.kind).toBe(isProcess ? 'process' : 'database');
      }),
    );
  });
});
