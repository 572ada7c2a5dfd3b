import { configDefaults, defineConfig } from 'vitest/config';
import base from '../vitest.config.ts';

/** `npm run test:quick`, for daily work: the unit tests and the contract of the API. */
export default defineConfig({
  ...base,
  test: {
    ...base.test,
    include: ['{src,packages}/**/*.test.ts', 'test/contract/**/*.test.ts'],
    exclude: configDefaults.exclude,
  },
});
