import { expect, test } from 'vitest';
import { AppError } from '../../../core/domain/errors.ts';
import { unixMs } from '../../../core/domain/time.ts';
import { commandActor } from '../actor.ts';
import { type Check, type DoctorDeps, failed, good, skipped, warning, worstOf } from './check.ts';
import { CHECKS, runDoctor } from './run-doctor.ts';

const deps: DoctorDeps = {
  settings: {
    masterKeys: null,
    databaseUrl: null,
    dataDir: '/nonexistent',
    warnings: [],
    networks: [],
    networkProblem: null,
    localUrl: null,
    metricsUrl: null,
    publicUrl: null,
    databasePoolSize: 10,
    trustProxy: [],
    rowMacs: 'warn',
    backups: null,
    addressManifest: null,
  },
  database: { problem: 'none' },
  now: () => unixMs(Date.UTC(2026, 10, 24)),
  random: (bytes: number) => new Uint8Array(bytes),
  nodeVersion: '24.9.0',
  describeError: String,
};

const run = (checks: readonly Check[]) => runDoctor(deps, commandActor('test'), { checks, limitMs: 50 });

test('a check that hangs has failed in time, and holds up no other', async () => {
  const view = await run([
    { name: 'well', look: async () => good('all is well') },
    { name: 'hangs', look: () => new Promise(() => undefined) },
  ]);
  expect(view.checks).toMatchObject([
    { name: 'hangs', state: 'failed', says: 'did not finish within 0.05 s' },
    { name: 'well', state: 'good', says: 'all is well', fix: null },
  ]);
  expect(view).toMatchObject({ good: false, counts: { failed: 1, warning: 0, good: 1, skipped: 0 } });
});

test('a check that throws has failed, with its words', async () => {
  const { checks } = await run([
    {
      name: 'throws',
      look: async () => {
        throw new AppError('NOT_FOUND', 'a file is not there');
      },
    },
  ]);
  expect(checks).toMatchObject([{ state: 'failed', says: 'the check failed to run: a file is not there' }]);
});

test('warnings alone are good enough', async () => {
  expect(await run([{ name: 'warns', look: async () => warning('soon', 'do it') }])).toMatchObject({ good: true });
});

test('with nothing at all every check says something, and those that have failed say what to do', async () => {
  const { checks } = await runDoctor(deps, commandActor('test'));
  expect(checks).toHaveLength(CHECKS.length);
  for (const { name, says, state, fix } of checks) {
    expect(String(says), name).not.toBe('');
    if (state === 'failed' || state === 'warning') expect(fix, name).not.toBeNull();
  }
});

test('of several findings the worst are told, and no more than a few', () => {
  const none = skipped('none');
  expect(worstOf([], none)).toBe(none);
  expect(worstOf([good('a'), warning('b', 'fix b'), skipped('c')], none)).toMatchObject({ says: 'b', fix: 'fix b' });
  const many = Array.from({ length: 7 }, (_, index) => failed(`f${index}`, 'fix'));
  expect(worstOf(many, none).says).toBe('f0; f1; f2; f3; f4; and 2 more');
});
