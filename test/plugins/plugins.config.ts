import { configDefaults, defineConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

/** `npm run test:plugins`: plugins for shop systems, each in its own system, against a real sandbox. Takes minutes. */
export default defineConfig({
  test: { ...base.test, include: ['test/plugins/**/*.test.ts'], exclude: configDefaults.exclude },
});
