import { defineConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

/** Records what the migrations make: see schema-record.ts. */
export default defineConfig({ ...base, test: { ...base.test, include: ['test/store/schema-record.ts'] } });
