import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { configDefaults, defineConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

const ROOT = join(import.meta.dirname, '../..');

/** Files that only run some of their tests in `npm test`. */
const shortened = ['src', 'test']
  .flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((path) => join(folder, path)),
  )
  .filter(
    (path) =>
      path.endsWith('.test.ts') &&
      !path.includes('node_modules') &&
      /everyCase|longTest|someCases|withVariants/.test(readFileSync(join(ROOT, path), 'utf8')),
  );

/**
 * `npm run test:long` runs every kind of fault in every place, every pair of kinds, simulated days, killed processes, and slow tests. Each
 * file can be run alone.
 */
export default defineConfig({
  ...base,
  test: {
    ...base.test,
    include: ['test/long/**/*.test.ts', 'test/ha/**/*.test.ts', 'test/simulation/seeds-*.test.ts', ...shortened],
    exclude: configDefaults.exclude,
    provide: { simulatedMinutes: 60, simulatedWorlds: 25, everyCase: true },
    // The tests wait more than they compute.
    maxConcurrency: 3,
    testTimeout: 180_000,
  },
});
