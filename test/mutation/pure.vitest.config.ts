import { defineConfig } from 'vitest/config';
import { LoadFailures } from './load-failures.ts';
import { OwnTests } from './own-tests.ts';

/** The tests of code that needs neither a database nor a service, in the changing of one thing after the other. */
export default defineConfig({
  test: {
    include: [
      'src/{domain,tron}/**/*.test.ts',
      'src/webhooks/{sign,target,target-connector,ip-ranges}.test.ts',
      'src/runtime/key-ring.test.ts',
      'src/api/read-create-input.test.ts',
      'src/web/json-body.test.ts',
    ],
    reporters: [new LoadFailures()],
    setupFiles: ['test/mutation/no-shrinking.ts'],
    sequence: { sequencer: OwnTests },
    testTimeout: 30_000,
  },
});
