import type { PostgresConnection } from '../src/core/store/embedded/connection.ts';

import type { Target } from './targets.ts';

/** What each benchmark gets. */
export type BenchContext = {
  /** The release's bin/quittance.js. */
  command: string;
  postgres: PostgresConnection;
  /** The folder of the results. */
  results: string;
  flags: { quick: boolean; full: boolean; day: boolean; profile: boolean; 'without-logs': boolean; grpc: boolean };
  /** Stops are called at the end, in the opposite order. */
  onStart(child: { stop(): Promise<void> }): void;
  onProgress(text: string): void;
};

/** Tables to be printed, targets that are printed below them, and what is kept of the run beside these. */
export type BenchResult = { markdown: string; targets?: Target[]; record: object };
