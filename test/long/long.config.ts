import { configDefaults, defineConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

/** `npm run test:long`: every kind of fault at every place, and every pair of kinds. About ten minutes on two cores. */
export default defineConfig({
  test: {
    ...base.test,
    include: ['test/long/**/*.test.ts'],
    exclude: configDefaults.exclude,
    // They wait more than they compute.
    maxConcurrency: 3,
    testTimeout: 180_000,
  },
});
