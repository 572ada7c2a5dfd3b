import { configDefaults, defineConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

/**
 * `npm run test:clients` tests clients in other languages, which public generators create from /openapi.json. Needs the network and takes
 * minutes.
 */
export default defineConfig({
  ...base,
  test: { ...base.test, include: ['test/clients/**/*.test.ts'], exclude: configDefaults.exclude },
});
