import { configDefaults, defineConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

/** `npm run test:clients`: clients in other languages, generated from /openapi.json by generators of the network. Takes minutes. */
export default defineConfig({
  test: { ...base.test, include: ['test/clients/**/*.test.ts'], exclude: configDefaults.exclude },
});
