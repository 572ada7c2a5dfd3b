import type { SandboxControls } from '../api/sandbox.ts';
import type { Config } from '../config/config.ts';
import type { ConfiguredProcess } from '../operator/doctor/check.ts';
import type { OperationDeps } from '../operator/operation.ts';
import type { Clock } from '../runtime/clock.ts';
import type { KeyRing } from '../runtime/key-ring.ts';
import type { Logger } from '../runtime/log.ts';
import type { Connection } from '../store/db/database.ts';

/** The options that start one process of the service. */
export type ServiceOptions = {
  config: Pick<
    Config,
    | 'host'
    | 'port'
    | 'publicUrl'
    | 'databasePoolSize'
    | 'roles'
    | 'networks'
    | 'metrics'
    | 'trustProxy'
    | 'rateLimit'
    | 'webhooks'
  > &
    Partial<
      Pick<
        Config,
        | 'consoleUrl'
        | 'lookupsPerMinute'
        | 'requestLog'
        | 'requestLines'
        | 'rowMacs'
        | 'addressManifest'
        | 'dataDir'
        | 'backups'
      >
    >;
  connection: Connection;
  /** Brings the schema up to this release. Without it `connection` does, if it may; the service itself needs no such right. */
  owner?: Connection;
  /** Opens what is sealed in the database. With `null` receipts are not signed, and the role `webhooks` does not start. */
  keyRing: KeyRing | null;
  /** Where the role `console` listens, and what its use cases know of the configuration; absent or `null`: it does not.
   * `url` is the origin that operators see, `null` where it listens.
   * `sandboxToken`: whoever has it is the owner. */
  console?:
    | (NonNullable<Config['console']> & {
        url: string | null;
        config: OperationDeps['config'] & ConfiguredProcess & Pick<Config, 'settings'>;
        sandboxToken?: string;
      })
    | null;
  /** What only a sandbox can do; else its routes are not there. */
  sandbox?: SandboxControls;
  log: Logger;
  clock?: Clock;
  /** Whether the clock is held against those of the database and the chain; by default that of the system is, and a given one is not. */
  comparesClocks?: boolean;
  /** The block time of the networks, for a local one that is faster than the real 3,000 ms. */
  blockMs?: number;
  /** How long new events wait for the event loop, in milliseconds; measured by default. For a service that shares its process. */
  lagMs?(): number;
};
