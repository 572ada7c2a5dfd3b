import { once } from 'node:events';
import { join } from 'node:path';
import type { Devnet } from '@quittance/devnet';
import { AppError, type FieldProblem } from '../../core/domain/errors.ts';
import { lockDataDir } from '../../core/runtime/instance-lock.ts';
import { clip, fieldProblem } from '../../faces/operator/input/problems.ts';
import type { Config } from '../../server/config/config.ts';

export type DevnetInput = {
  port: string;
  host: string;
  blockMs?: string | undefined;
  producers?: string | undefined;
  dir?: string | undefined;
  inMemory?: true | undefined;
};

/**
 * Reads the network's settings and reports all problems at once. The bounds are the same as for the environment variables with these names.
 */
export function readDevnetSettings(input: DevnetInput, { devnet, dataDir }: Config) {
  const problems: FieldProblem[] = [];
  const whole = (field: keyof DevnetInput, least: number, most: number, fallback: number) => {
    const text = input[field];
    if (typeof text !== 'string') return fallback;
    const value = /^\d{1,9}$/.test(text) ? Number(text) : -1;
    if (value >= least && value <= most) return value;
    problems.push(fieldProblem(field, `is ${clip(text)}: use a whole number from ${least} to ${most}`));
    return fallback;
  };
  const settings = {
    host: input.host,
    port: whole('port', 0, 65_532, 0),
    blockMs: whole('blockMs', 100, 60_000, devnet.blockMs),
    producers: whole('producers', 1, 27, devnet.producers),
    /** Where the chain is stored, or `null` to keep it in memory. */
    dataDir: input.inMemory ? null : (input.dir ?? join(dataDir, 'devnet-alone')),
  };
  if (problems.length > 0) throw new AppError('INVALID_ARGUMENT', 'the devnet was not started', { problems });
  return settings;
}

type DevnetSettings = ReturnType<typeof readDevnetSettings>;

/**
 * Runs only the local TRON network until the signal aborts. Its chain is stored on disk unless `dataDir` is `null`. Throws `PORT_IN_USE`.
 */
export async function runDevnet(
  settings: DevnetSettings,
  signal: AbortSignal,
  onReady: (devnet: ReturnType<typeof showDevnet>) => void,
): Promise<void> {
  const { dataDir, port } = settings;
  const lock = dataDir === null ? null : await lockDataDir(dataDir);
  // Like java-tron, the devnet serves each API on its own port: the next three ports, or any free ones.
  const ports = port === 0 ? {} : { solidityPort: port + 1, grpcPort: port + 2, grpcSolidityPort: port + 3 };
  try {
    const { startDevnet } = await import('@quittance/devnet');
    const devnet = await startDevnet({ ...settings, ...ports, separatePorts: true }).catch((error: unknown) => {
      throw explain(error, settings);
    });
    try {
      onReady(showDevnet(devnet, dataDir));
      if (!signal.aborted) await once(signal, 'abort');
    } finally {
      await devnet.stop();
    }
  } finally {
    await lock?.release();
  }
}

function showDevnet({ url, solidityUrl, grpcUrl, grpcSolidityUrl, ...devnet }: Devnet, dataDir: string | null) {
  const { usdtContract, fakeUsdtContract, multisendContract, payer } = devnet;
  return {
    ...{ url, solidityUrl, grpcUrl, grpcSolidityUrl },
    ...{ usdtContract, fakeUsdtContract, multisendContract, payer, dataDir },
  };
}

function explain(error: unknown, { host, port }: DevnetSettings): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code !== 'EADDRINUSE') return error;
  const message = `port ${port} on ${host}, or one of the next three ports, is in use: stop the program that listens there, or use another port (--port 0 uses any free one)`;
  return new AppError('PORT_IN_USE', message, { cause: error });
}
