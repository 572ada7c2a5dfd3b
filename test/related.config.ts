import { join } from 'node:path';
import { configDefaults, defineConfig } from 'vitest/config';
import base from '../vitest.config.ts';
import { changedFiles, relatedTests } from './rules/related.ts';

const root = join(import.meta.dirname, '..');

/**
 * `npm run related` runs the tests that cover the uncommitted changes, or else the last commit; `SINCE=main npm run related` after a
 * commit.
 */
export default defineConfig({
  ...base,
  test: {
    ...base.test,
    include: relatedTests(root, changedFiles(root, process.env['SINCE'])),
    exclude: configDefaults.exclude,
  },
});
