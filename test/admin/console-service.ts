import { onTestFinished } from 'vitest';
import { createLogger } from '../../src/core/runtime/log.ts';
import type { Role } from '../../src/faces/operator/actor.ts';
import type { ServiceOptions } from '../../src/server/context.ts';
import { startService } from '../../src/server/service.ts';
import { runCli } from '../cli/run-cli.ts';
import { TEST_KEY_RING } from '../support/key-ring.ts';
import { findSteadyPort } from '../support/steady-port.ts';

export const MASTER_KEY = 'A'.repeat(43).concat('=');

type Options = {
  networks?: ServiceOptions['config']['networks'];
  url?: string | null;
  clock?: { now(): number };
  sandboxToken?: string;
  /** Registers a cleanup. By default, it runs at the end of the test. */
  onEnd?: (stop: () => Promise<void>) => void;
};

/** Starts a process with only the role `console` on a database. */
export async function startConsoleOver(
  connection: string,
  options: Options = {},
): Promise<{ url: string; port: number; stop(): Promise<void> }> {
  const { networks = {}, url = null, clock, sandboxToken, onEnd = onTestFinished } = options;
  const port = await findSteadyPort();
  const webhooks = { localTargets: true, retentionDays: 90 };
  const service = await startService({
    config: {
      ...{ host: '127.0.0.1', port: 0, publicUrl: null, databasePoolSize: 2, roles: ['console'], networks, webhooks },
      ...{ metrics: null, trustProxy: [], rateLimit: { perSecond: 1000, burst: 1000 } },
    },
    console: {
      ...{ host: '127.0.0.1', port, url },
      ...(sandboxToken === undefined ? {} : { sandboxToken }),
      config: {
        ...{ masterKeys: [MASTER_KEY], databaseUrl: connection, dataDir: '/nonexistent' },
        ...{ sandbox: false, webhooks, networks, settings: [], warnings: [], backups: null, addressManifest: null },
        ...{ host: '127.0.0.1', port: 0, publicUrl: null, databasePoolSize: 2, roles: ['console'], trustProxy: [] },
        ...{ rowMacs: 'warn', metrics: null },
      },
    },
    ...{ connection, keyRing: TEST_KEY_RING, log: createLogger({ level: 'silent' }) },
    ...(clock === undefined ? {} : { clock }),
  });
  let stopped: Promise<void> | undefined;
  const stop = () => {
    stopped ??= service.stop();
    return stopped;
  };
  onEnd(stop);
  return { url: (await service.startConsole()) ?? '', port, stop };
}

/** Creates an admin key with the command. */
export async function newAdminKey(
  env: NodeJS.ProcessEnv,
  role: Role,
  ...options: string[]
): Promise<{ adminKeyId: string; adminKey: string }> {
  const made = await runCli(['admin-key', 'create', '--name', `a ${role}`, '--role', role, ...options, '--json'], {
    env,
  });
  if (made.code !== 0) throw new Error(made.stdout);
  return made.json;
}
