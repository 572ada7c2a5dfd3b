import { createKeyRing, createMasterKey } from '../src/runtime/key-ring.ts';
import { createSeals } from '../src/store/db/seals.ts';

/** Seals the secrets of the endpoints of one benchmark run, in this process and in those that it starts. */
const key = createMasterKey();
export const BENCH_MASTER_KEY = key.bytes.toString('base64');
export const BENCH_KEY_RING = createKeyRing([key]);
/** What this process writes is sealed as the service does it. */
export const benchSeals = () =>
  createSeals({ mode: 'require', onProblem: () => undefined }, async () => BENCH_KEY_RING);
