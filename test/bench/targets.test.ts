import { expect, test } from 'vitest';
import { SIDES, TABLES } from '../../bench/databases.ts';
import { judge, summarize } from '../../bench/report.ts';
import { type Sample, WORKS } from '../../bench/rounds.ts';
import { targetTable } from '../../bench/targets.ts';

const MEMORY = { atStart: 0, settled: 1, helpers: 0 };

/** Four rounds at 64 connections, in which all sides do 1,000 a second unless `speedOf` says otherwise. */
function judged(speedOf: (sample: Pick<Sample, 'round' | 'side' | 'work'>) => number) {
  const samples = [1, 2, 3, 4].flatMap((round) =>
    WORKS.flatMap((work) =>
      TABLES.flatMap((tables) =>
        SIDES.map((side): Sample => {
          const times = { p50: 1, p99: 2, serverCpuUs: 100, postgresCpuUs: 100, loadCpuUs: 10, otherCores: 0 };
          return { round, work, tables, side, connections: 64, perSecond: speedOf({ round, side, work }), ...times };
        }),
      ),
    ),
  );
  const { lines, growth } = summarize(samples, [64]);
  return judge(lines, growth, MEMORY);
}

const readOfDefault = 'default: read on fresh tables, 64 connections, of bare';

test('a ratio is reached where both halves of the rounds reach it', () => {
  const target = judged(({ side }) => (side === 'default' ? 950 : 1000)).find(({ name }) => name === readOfDefault);
  expect(target).toMatchObject({ measured: 0.95, isReached: true });
});

test('a ratio that half of the rounds miss is not reached, whatever the median of all says', () => {
  const speed = ({ side, round }: Pick<Sample, 'round' | 'side'>) =>
    side !== 'default' ? 1000 : round % 2 === 0 ? 850 : 2000;
  const target = judged(speed).find(({ name }) => name === readOfDefault);
  expect(target?.measured).toBeGreaterThan(0.9);
  expect(target?.isReached).toBe(false);
});

test('missed targets stand first, and beside each what an older run measured', () => {
  const [reached, missed] = [
    { name: 'a', reach: '≥ 0.90', measured: 1, isReached: true },
    { name: 'b', reach: '≥ 0.90', measured: 0.8, isReached: false },
  ];
  const rows = targetTable([reached, missed], [{ ...missed, measured: 0.4 }]).split('\n');
  expect(rows[2]).toMatch(/^\| b .*NO .*0\.400, NO .*2\.00/);
  expect(rows[3]).toMatch(/^\| a .*yes .*– .*–/);
});
