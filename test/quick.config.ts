import { configDefaults, defineConfig } from 'vitest/config';
import base from '../vitest.config.ts';

/** `npm run test:quick`, for daily work: the unit tests and the contract of the API. */
export default defineConfig({
  test: { ...base.test, include: ['src/**/*.test.ts', 'test/contract/**/*.test.ts'], exclude: configDefaults.exclude },
});
