import { configDefaults, defineConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

/** `npm run test:long`: every kind of fault at every place, every pair of kinds, simulated days, processes that are killed, and what takes long. Each file can be run alone. */
export default defineConfig({
  test: {
    ...base.test,
    include: [
      'test/long/**/*.test.ts',
      'test/ha/**/*.test.ts',
      'test/simulation/seeds-*.test.ts',
      'test/browser/accessibility.test.ts',
      'test/store/upgrade.test.ts',
      'test/tampering/lifecycle.test.ts',
    ],
    exclude: configDefaults.exclude,
    provide: { simulatedMinutes: 60, simulatedWorlds: 25, everyCase: true },
    // They wait more than they compute.
    maxConcurrency: 3,
    testTimeout: 180_000,
  },
});
