import { configDefaults, defineConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

/** `npm run test:deb` builds the Debian package and installs it with apt in a bare Debian. Needs root, the network and some minutes. */
export default defineConfig({
  ...base,
  test: {
    ...base.test,
    include: ['test/deb/**/*.test.ts'],
    exclude: configDefaults.exclude,
    testTimeout: 3_600_000,
  },
});
