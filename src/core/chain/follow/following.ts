import type { AlarmKind } from '../../domain/alarm-kinds.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { HeldBack } from '../../payments/expire-invoices.ts';
import type { RequestShare } from '../../runtime/concurrency.ts';
import type { Logger } from '../../runtime/log.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import type { Database, Sql } from '../../store/db/database.ts';
import type { NodePool } from '../nodes/node-pool.ts';
import type { ReadDeps } from '../verify/read-block.ts';

/** The input of every module that follows a network: the network's settings and nodes, the database, and the alarms. */
export type FollowDeps = ReadDeps & {
  db: Database;
  pool: NodePool;
  /** The network's block time, which is 3,000 ms on real networks. */
  blockMs: number;
  publicUrl: string;
  now(): UnixMs;
  random(bytes: number): Uint8Array;
  log: Logger;
  metrics: Metrics;
  /** Receives how long each recording took, and whether Quittance is catching up. Set only in a process that also serves requests. */
  requestShare?: Pick<RequestShare, 'onWork' | 'onBehind'>;
  alarms: Alarms;
  /** Orders that can't expire at the moment. */
  held?: HeldBack;
};

export type Alarms = {
  /** Sets the metric from the alarms that any process has raised, and caches which kinds are open. */
  refresh(): Promise<void>;
  /**
   * Opens an alarm, or counts another occurrence if it's already open. People read `detail` long afterwards, so it must contain times
   * instead of ages and remaining durations. Runs in the transaction `tx` if one is given. Only a new alarm is logged.
   */
  raise(kind: AlarmKind, subject: string, detail: string, tx?: Sql): Promise<void>;
  /** Closes all alarms of this kind. Sends no query if none is open. */
  resolve(kind: AlarmKind): Promise<void>;
};
