import { createKeyRing, createMasterKey } from '../src/core/runtime/key-ring.ts';
import { createSeals } from '../src/core/store/db/seals.ts';

/** Seals the endpoints' secrets of one benchmark run, in this process and in the processes that it starts. */
const key = createMasterKey();
export const BENCH_MASTER_KEY = key.bytes.toString('base64');
export const BENCH_KEY_RING = createKeyRing([key]);
/**
 * Rows that this process writes are sealed as the service does it. Rows with which a benchmark fills a table have no seals, but the service
 * reads them anyway.
 */
export const benchSeals = () => createSeals({ mode: 'warn', onProblem: () => undefined }, async () => BENCH_KEY_RING);
