import { defineConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

/** Records the schema that the migrations create: see schema-record.ts. */
export default defineConfig({ ...base, test: { ...base.test, include: ['test/store/schema-record.ts'] } });
