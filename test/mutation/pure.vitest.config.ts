import { defineConfig } from 'vitest/config';
import base from '../../vitest.config.ts';
import { LoadFailures } from './load-failures.ts';
import { OwnTests } from './own-tests.ts';

const { resolve = {} } = base;

/** The mutation tests of code that needs neither a database nor a service. */
export default defineConfig({
  resolve,
  test: {
    include: [
      '{src/core/domain,packages/tron/src}/**/*.test.ts',
      'src/core/webhooks/{sign,target}.test.ts',
      'src/core/runtime/key-ring.test.ts',
      'src/faces/api/read-create-input.test.ts',
      'src/faces/web/json-body.test.ts',
    ],
    reporters: [new LoadFailures()],
    setupFiles: ['test/mutation/no-shrinking.ts'],
    sequence: { sequencer: OwnTests },
    testTimeout: 30_000,
  },
});
