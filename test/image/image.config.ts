import { configDefaults, defineConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

/**
 * `npm run test:image` builds the images with buildah and runs the services of compose.yaml in containers. Needs root, the network and some
 * minutes.
 */
export default defineConfig({
  ...base,
  test: {
    ...base.test,
    include: ['test/image/**/*.test.ts'],
    exclude: configDefaults.exclude,
    testTimeout: 3_600_000,
  },
});
