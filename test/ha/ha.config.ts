import { configDefaults, defineConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

/**
 * `npm run test:ha` tests a replicated PostgreSQL that loses its primary under load, in every way. Takes about a minute for each failure.
 */
export default defineConfig({
  ...base,
  test: {
    ...base.test,
    include: ['test/ha/**/*.test.ts'],
    exclude: configDefaults.exclude,
  },
});
