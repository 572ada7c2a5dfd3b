import { configDefaults, defineConfig } from 'vitest/config';
import base, { BROWSER_TESTS } from '../../vitest.config.ts';

/** `npm run test:browser` runs every test of the pages in Chromium, including those of `npm test`. */
export default defineConfig({
  ...base,
  test: {
    ...base.test,
    include: ['test/browser/**/*.test.ts', ...BROWSER_TESTS],
    exclude: configDefaults.exclude,
  },
});
