import { createKeyRing, createMasterKey } from '../src/core/runtime/key-ring.ts';
import { createSeals } from '../src/core/store/db/seals.ts';

/** Seals the secrets of the endpoints of one benchmark run, in this process and in those that it starts. */
const key = createMasterKey();
export const BENCH_MASTER_KEY = key.bytes.toString('base64');
export const BENCH_KEY_RING = createKeyRing([key]);
/** What this process writes is sealed as the service does it. What a benchmark fills a table with has no seals, and is read all the same. */
export const benchSeals = () => createSeals({ mode: 'warn', onProblem: () => undefined }, async () => BENCH_KEY_RING);
