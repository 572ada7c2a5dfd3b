import { defineConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

/** The mutation tests of code that needs a database. */
export default defineConfig({
  ...base,
  test: {
    ...base.test,
    include: [
      'test/contract/{idempotency,concurrency,create,read,isolation}.test.ts',
      'test/flows/{allocation,creation-rounds}.test.ts',
      'test/store/{statements,read-invoices}.test.ts',
    ],
    sequence: {},
  },
});
