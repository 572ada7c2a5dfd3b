import { defineConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

/** The tests of what only a database can decide, in the changing of one thing after the other. */
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
