import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { configDefaults, defineConfig } from 'vitest/config';
import { LongestFirst } from './test/support/longest-first.ts';
import { PATIENCE_MS } from './test/support/patience.ts';

/** Every view, language, width and wallet in Chromium: `npm run test:browser`. `npm test` keeps the payer's way from the page to `PAID`. */
export const BROWSER_TESTS = [
  'test/browser/!(copy-and-scan|embed|pay|without-javascript).test.ts',
  'test/console/{answered-screens,live,screens}.test.ts',
];

export default defineConfig({
  // Tests run the sources of the packages beside src/, and not what was built of them.
  resolve: {
    alias: [
      { find: /^@quittance\/(tron|devnet)$/, replacement: join(import.meta.dirname, 'packages/$1/src/index.ts') },
      { find: /^@quittance\/(tron|devnet)\/(.+)$/, replacement: join(import.meta.dirname, 'packages/$1/src/$2.ts') },
    ],
  },
  test: {
    include: ['{src,packages}/**/*.test.ts', 'test/**/*.test.ts'],
    // Minutes of every combination, database servers that die, a Debian that is installed, generators of the network, and shop systems: commands of their own run them, and `npm run test:long` runs what `longTest` declares.
    exclude: [
      ...configDefaults.exclude,
      ...BROWSER_TESTS,
      'test/long/**',
      'test/ha/**',
      'test/image/**',
      'test/deb/**',
      'test/clients/**',
      'test/plugins/**',
    ],
    // An invoice lives for 15 minutes there. `npm run test:long` gives more worlds an hour each, and takes every case of large tables.
    provide: { simulatedMinutes: 15, simulatedWorlds: 2, everyCase: false },
    globalSetup: ['build/test-packages.js', 'test/support/postgres-global-setup.ts'].map((path) =>
      join(import.meta.dirname, path),
    ),
    // Processes, because tests start servers, child processes and browsers that a thread cannot be rid of.
    pool: 'forks',
    // To load the service anew for each of three hundred files takes a third of the time of all tests. A test that changes what is shared
    // gives it back.
    isolate: false,
    // Two more than there are cores: beside two that simulate, others mostly wait. More than four crowd PostgreSQL's connections.
    maxWorkers: Math.min(6, availableParallelism() + 4),
    sequence: { sequencer: LongestFirst },
    // Ends what hangs; the longest take ten seconds, and beside other work on a machine many times that.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: PATIENCE_MS } },
    teardownTimeout: 20_000,
  },
});
