import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { configDefaults, defineConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

const TEST = join(import.meta.dirname, '..');

/** Files that try in `npm test` only some of their cases. */
const shortened = readdirSync(TEST, { recursive: true, encoding: 'utf8' }).filter(
  (path) =>
    path.endsWith('.test.ts') && /everyCase|someCases|withVariants/.test(readFileSync(join(TEST, path), 'utf8')),
);

/** `npm run test:long`: every kind of fault at every place, every pair of kinds, simulated days, processes that are killed, and what takes long. Each file can be run alone. */
export default defineConfig({
  ...base,
  test: {
    ...base.test,
    include: [
      'test/long/**/*.test.ts',
      'test/ha/**/*.test.ts',
      'test/simulation/seeds-*.test.ts',
      ...shortened.map((path) => `test/${path}`),
    ],
    exclude: configDefaults.exclude,
    provide: { simulatedMinutes: 60, simulatedWorlds: 25, everyCase: true },
    // They wait more than they compute.
    maxConcurrency: 3,
    testTimeout: 180_000,
  },
});
