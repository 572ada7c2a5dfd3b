import { configDefaults, defineConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

/** `npm run test:browser` runs everything that needs Chromium. */
export default defineConfig({
  ...base,
  test: {
    ...base.test,
    include: ['test/browser/**/*.test.ts', 'test/console/{answered-screens,live,screens}.test.ts'],
    exclude: configDefaults.exclude,
  },
});
