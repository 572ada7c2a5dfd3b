import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import type { BenchResult } from '../bench-context.ts';
import { descendants, proportionalBytes } from '../proc.ts';
import { quantile } from '../quantile.ts';
import { type Target, table } from '../targets.ts';

const START_LIMIT_MS = 60_000;
const SETTLE_MS = 20_000;

/** The real service on the embedded database. Nothing calls the node's URL: without a cursor, the watcher only retries. */
const SERVICE = {
  QUITTANCE_PUBLIC_URL: 'http://127.0.0.1',
  QUITTANCE_METRICS_PORT: '0',
  QUITTANCE_DEVNET_NODES: 'http://127.0.0.1:9',
  QUITTANCE_DEVNET_USDT: 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t',
};

type Row = { name: string; limitMs: number | null; times: number[] };

/**
 * Measures how long starts and short commands take, and the memory of an idle service with its PostgreSQL. The baseline is a Node.js
 * process that loads `pg` and ends. Within a round, all rows are measured one after the other, and every other round in reverse order.
 */
export async function runStart({
  program,
  isQuick,
  onProgress,
}: {
  /** The release's bin/quittance.js. */
  program: string;
  isQuick: boolean;
  onProgress(text: string): void;
}): Promise<BenchResult> {
  const folder = await mkdtemp(join(tmpdir(), 'quittance-start-'));
  // As root, PostgreSQL runs as another user, which must be able to pass through.
  await chmod(folder, 0o711);
  try {
    const kept = join(folder, 'kept');
    const sandbox = join(folder, 'sandbox');
    await timeStart(program, kept, SERVICE);
    await timeStart(program, sandbox, {});
    const rows: (Row & { once(): Promise<number> })[] = [
      row('Node.js and pg, the baseline', null, () => timeExit(['--eval', "require('pg')"])),
      row('quittance --version', null, () => timeExit([program, '--version'])),
      row('quittance --help', null, () => timeExit([program, '--help'])),
      row('service, existing database', 500, () => timeStart(program, kept, SERVICE)),
      row('sandbox, existing data', 1500, () => timeStart(program, sandbox, {})),
      row('sandbox, from nothing', 1500, async () => {
        const fresh = await mkdtemp(join(folder, 'fresh-'));
        await chmod(fresh, 0o711);
        return timeStart(program, fresh, {}).finally(() => rm(fresh, { recursive: true, force: true, maxRetries: 10 }));
      }),
    ];
    const rounds = isQuick ? 1 : 9;
    for (let round = 1; round <= rounds; round += 1) {
      onProgress(`round ${round} of ${rounds}`);
      for (const each of round % 2 === 1 ? rows : rows.toReversed()) each.times.push(await each.once());
    }
    onProgress('memory at rest');
    const memory = await measureRest(program, kept);
    return report(rows, memory);
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  }
}

const row = (name: string, limitMs: number | null, once: () => Promise<number>) => ({ name, limitMs, times: [], once });

/** Returns the milliseconds until a process has ended. It runs in this checkout, whose packages it finds. */
async function timeExit(args: string[]): Promise<number> {
  const startMs = performance.now();
  const child = spawn(process.execPath, args, { cwd: join(import.meta.dirname, '../..'), stdio: 'ignore' });
  const [code] = await once(child, 'exit');
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}`);
  return performance.now() - startMs;
}

/** Starts, waits until the process says that it's ready, and stops it. Returns the milliseconds until it was ready. */
async function timeStart(program: string, dataDir: string, env: Record<string, string>): Promise<number> {
  const startMs = performance.now();
  const child = start(program, dataDir, env);
  await untilReady(child);
  const elapsedMs = performance.now() - startMs;
  await stop(child);
  return elapsedMs;
}

/** Returns the proportional memory of the idle service, and of the processes that it started, in bytes. */
async function measureRest(program: string, dataDir: string): Promise<{ service: number; helpers: number }> {
  const child = start(program, dataDir, SERVICE);
  await untilReady(child);
  await delay(SETTLE_MS);
  const pid = child.pid ?? 0;
  const service = await proportionalBytes(pid);
  const helpers = await Promise.all((await descendants(pid)).map(proportionalBytes));
  await stop(child);
  return { service, helpers: helpers.reduce((sum, bytes) => sum + bytes, 0) };
}

function start(program: string, dataDir: string, env: Record<string, string>): ChildProcess {
  return spawn(process.execPath, [program, 'start'], {
    stdio: ['ignore', 'pipe', 'ignore'],
    env: {
      PATH: process.env['PATH'],
      npm_lifecycle_event: 'bench',
      QUITTANCE_PORT: '0',
      QUITTANCE_DATA_DIR: dataDir,
      ...env,
    },
  });
}

async function untilReady(child: ChildProcess): Promise<void> {
  if (child.stdout === null) throw new Error('the output is not piped');
  const timer = setTimeout(() => child.kill('SIGKILL'), START_LIMIT_MS);
  let isReady = false;
  for await (const line of createInterface(child.stdout)) {
    isReady = /"msg":"(sandbox )?ready"/.test(line);
    if (isReady) break;
  }
  clearTimeout(timer);
  if (!isReady) throw new Error(`the process ended, or wasn't ready within ${START_LIMIT_MS / 1000} s`);
  child.stdout.resume();
}

async function stop(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  await ended;
}

function report(rows: readonly Row[], memory: { service: number; helpers: number }): BenchResult {
  const median = ({ times }: Row) => quantile(times, 0.5);
  const [first] = rows;
  const baseline = first === undefined ? NaN : median(first);
  const markdown = table(
    ['start', 'ms, median', 'least', 'most', 'of the baseline'],
    rows.map((each) => [
      each.name,
      median(each).toFixed(0),
      Math.min(...each.times).toFixed(0),
      Math.max(...each.times).toFixed(0),
      (median(each) / baseline).toFixed(1),
    ]),
  );
  const targets: Target[] = rows.flatMap(({ name, limitMs, times }) =>
    limitMs === null
      ? []
      : [
          {
            name: `${name}, ms`,
            reach: `≤ ${limitMs}`,
            measured: quantile(times, 0.5),
            isReached: quantile(times, 0.5) <= limitMs,
          },
        ],
  );
  const [service, helpers] = [memory.service / 1e6, memory.helpers / 1e6];
  targets.push({ name: 'service at rest, PSS MB', reach: '≤ 80', measured: service, isReached: service <= 80 });
  const rest = `\n\nAt rest, the service uses ${service.toFixed(0)} MB, and its PostgreSQL ${helpers.toFixed(0)} MB (PSS).`;
  return {
    markdown: markdown + rest,
    targets,
    record: { rows: rows.map(({ name, times }) => ({ name, times })), memory },
  };
}
