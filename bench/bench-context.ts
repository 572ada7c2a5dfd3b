import type { PostgresConnection } from '../src/core/store/embedded/connection.ts';

import type { Target } from './targets.ts';

/** The input of each benchmark. */
export type BenchContext = {
  /** The release's bin/quittance.js. */
  command: string;
  postgres: PostgresConnection;
  /** The folder of the results. */
  results: string;
  flags: { quick: boolean; full: boolean; day: boolean; profile: boolean; 'without-logs': boolean; grpc: boolean };
  /** The cleanup functions, called at the end in reverse order. */
  onStart(child: { stop(): Promise<void> }): void;
  onProgress(text: string): void;
};

/** The tables to print, the targets printed below them, and the data of the run to store with both. */
export type BenchResult = { markdown: string; targets?: Target[]; record: object };
