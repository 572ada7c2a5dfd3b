import { configDefaults, defineConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

/** An hour is for a machine with cold caches: a generator's compilers and libraries are hundreds of megabytes. */
const TIMEOUT_MS = 3_600_000;

/**
 * `npm run test:clients` tests clients in other languages, which public generators create from /openapi.json, and judges the document and
 * the service by public tools. Needs the network and takes minutes.
 */
export default defineConfig({
  ...base,
  test: {
    ...base.test,
    include: ['test/clients/**/*.test.ts'],
    exclude: configDefaults.exclude,
    testTimeout: TIMEOUT_MS,
    hookTimeout: TIMEOUT_MS,
  },
});
