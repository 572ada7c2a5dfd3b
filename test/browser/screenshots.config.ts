import { defineConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

/** `npx vitest run --config test/browser/screenshots.config.ts` draws the pictures of the documentation. */
export default defineConfig({
  ...base,
  test: {
    ...base.test,
    include: ['test/browser/screenshots.ts', 'test/console/screenshots.ts', 'test/notify/screenshots.ts'],
  },
});
