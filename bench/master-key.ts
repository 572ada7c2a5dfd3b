import { createMasterKey } from '../src/runtime/key-ring.ts';

/** Seals the secrets of the endpoints of one benchmark run, in this process and in those that it starts. */
export const BENCH_MASTER_KEY = createMasterKey().bytes.toString('base64');
