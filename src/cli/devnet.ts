import { join } from 'node:path';
import type { Config } from '../config.ts';
import { lockDataDir } from '../runtime/instance-lock.ts';
import { whenParentDies } from '../runtime/parent-process.ts';
import { CliError, EXIT, type Problem } from './cli-error.ts';
import { clip } from './clip.ts';
import { loadConfig } from './load-config.ts';
import { formatFields, type Terminal } from './terminal.ts';

export type DevnetOptions = {
  port: string;
  host: string;
  blockMs?: string;
  producers?: string;
  dir?: string;
  inMemory?: boolean;
};

/** Runs the local TRON network alone until SIGINT or SIGTERM. Its chain is kept on disk unless told otherwise. */
export async function runDevnet(terminal: Terminal, options: DevnetOptions): Promise<void> {
  const config = loadConfig(terminal);
  const settings = readOptions(options, config);
  const dataDir = options.inMemory ? null : (options.dir ?? join(config.dataDir, 'devnet-alone'));
  const stopped = untilToldToStop();
  const lock = dataDir === null ? null : await lockDataDir(dataDir);
  try {
    const { startDevnet } = await import('../devnet/devnet.ts');
    const devnet = await startDevnet({ ...settings, ...furtherPorts(settings), separatePorts: true, dataDir }).catch(
      (error: unknown) => {
        throw explain(error, settings);
      },
    );
    try {
      const { url, solidityUrl, grpcUrl, grpcSolidityUrl } = devnet;
      const { usdtContract, fakeUsdtContract, multisendContract, payer } = devnet;
      terminal.print({
        data: {
          url,
          solidityUrl,
          grpcUrl,
          grpcSolidityUrl,
          usdtContract,
          fakeUsdtContract,
          multisendContract,
          payer,
          dataDir,
        },
        text: formatFields([
          ['gRPC', `${grpcUrl}, irreversible ${grpcSolidityUrl}`],
          ['HTTP', `${url}, irreversible ${solidityUrl}`],
          ['USDT', usdtContract],
          ['fake USDT', fakeUsdtContract],
          ['multisend', multisendContract],
          ['payer', payer.address],
          ['payer key', payer.privateKey],
          ['chain', dataDir ?? 'in memory'],
        ]),
        next: `to serve it: QUITTANCE_DEVNET_NODES='${grpcUrl}#solidity=${grpcSolidityUrl}' QUITTANCE_DEVNET_USDT=${usdtContract} ${startCommand()}`,
      });
      await stopped;
    } finally {
      await devnet.stop();
    }
  } finally {
    await lock?.release();
  }
}

/** As a java-tron, it serves each API at a port of its own: the three that follow, or any free ones. */
function furtherPorts({ port }: { port: number }) {
  return port === 0 ? {} : { solidityPort: port + 1, grpcPort: port + 2, grpcSolidityPort: port + 3 };
}

/** In a checkout there is no `quittance` on the path. */
function startCommand(): string {
  return process.env['npm_lifecycle_event'] === undefined ? 'quittance start' : 'npm start';
}

/** The first signal asks to stop; a second one ends the process at once. */
function untilToldToStop(): Promise<void> {
  return new Promise((resolve) => {
    let isTold = false;
    const tell = () => {
      if (isTold) process.exit(EXIT.failed);
      isTold = true;
      resolve();
    };
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, tell);
    whenParentDies(resolve);
  });
}

function explain(error: unknown, { host, port }: { host: string; port: number }): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code !== 'EADDRINUSE') return error;
  const message = `port ${port} on ${host}, or one of the three after it, is in use: stop what listens there, or give another one (--port 0 takes any)`;
  return new CliError('PORT_IN_USE', message, { cause: error });
}

/** The bounds are those of the variables of the same names. */
function readOptions(options: DevnetOptions, config: Config) {
  const problems: Problem[] = [];
  const whole = (subject: string, text: string | undefined, least: number, most: number, fallback: number) => {
    if (text === undefined) return fallback;
    const value = /^\d{1,9}$/.test(text) ? Number(text) : -1;
    if (value >= least && value <= most) return value;
    problems.push({
      subject,
      message: `${subject} is ${clip(text)}: it takes a whole number from ${least} to ${most}`,
    });
    return fallback;
  };
  const settings = {
    host: options.host,
    port: whole('--port', options.port, 0, 65_532, 0),
    blockMs: whole('--block-ms', options.blockMs, 100, 60_000, config.devnet.blockMs),
    producers: whole('--producers', options.producers, 1, 27, config.devnet.producers),
  };
  if (problems.length > 0) throw new CliError('INVALID_ARGUMENT', 'the devnet was not started', { problems });
  return settings;
}
