import { configDefaults, defineConfig } from 'vitest/config';
import base from '../vitest.config.ts';

/** `npm run test:quick`, for daily work, runs the unit tests and the API's contract tests. */
export default defineConfig({
  ...base,
  test: {
    ...base.test,
    include: ['{src,packages}/**/*.test.ts', 'test/contract/**/*.test.ts'],
    exclude: configDefaults.exclude,
  },
});
