import { availableParallelism } from 'node:os';
import { configDefaults, defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    // Minutes of every combination; `npm run test:long` runs them.
    exclude: [...configDefaults.exclude, 'test/long/**'],
    globalSetup: ['test/support/postgres-global-setup.ts'],
    // Processes, because tests start servers, child processes and browsers that a thread cannot be rid of.
    pool: 'forks',
    // Two workers help even on one core, for tests wait more than they compute; more than four crowd PostgreSQL's connections.
    maxWorkers: Math.min(4, Math.max(2, availableParallelism())),
    testTimeout: 30_000,
    hookTimeout: 30_000,
    teardownTimeout: 20_000,
  },
});
