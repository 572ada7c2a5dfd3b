import { defineConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

/** Records this release's statements to PostgreSQL: see upgrade-record.ts. */
export default defineConfig({ ...base, test: { ...base.test, include: ['test/store/upgrade-record.ts'] } });
