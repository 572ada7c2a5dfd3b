import { expect, test } from 'vitest';
import { runKillLoop } from './kill-loop.ts';

// test/long/process-kill.test.ts is the long version, with every place.
test('killed at named places under load, the service loses no acknowledged invoice and does nothing twice', async () => {
  const { violations, deaths } = await runKillLoop({
    seed: 1,
    lives: [
      { when: 'before', what: '201', nth: 3 },
      { when: 'during', what: 'commit', having: 'transfer-insert' },
      { when: 'after', what: 'webhook' },
    ],
    honestEvery: 0,
    postgresEvery: 2,
    hurriesInvoices: true,
  });
  expect(violations).toEqual([]);
  expect([...deaths.keys()]).toEqual(
    expect.arrayContaining(['before 201', 'during commit with transfer-insert', 'after webhook']),
  );
});
