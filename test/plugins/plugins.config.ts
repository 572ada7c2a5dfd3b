import { configDefaults, defineConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

/** `npm run test:plugins` tests the plugins in their shops, each installed from the network. Takes minutes. */
export default defineConfig({
  ...base,
  test: {
    ...base.test,
    include: ['test/plugins/**/*.test.ts'],
    exclude: configDefaults.exclude,
    fileParallelism: false,
    testTimeout: 600_000,
    hookTimeout: 900_000,
  },
});
