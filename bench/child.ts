import { type ChildProcess, type ForkOptions, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { PostgresConnection } from '../src/core/store/embedded/connection.ts';
import { BENCH_MASTER_KEY } from './master-key.ts';

/** A server under load, or the process that produces the load. `stop` waits until it has ended. */
export type Child = { process: ChildProcess; pid: number; stop(): Promise<void> };
export type Server = Child & { url: string };
export type ServiceServer = Server & { metricsUrl: string };

const START_LIMIT_MS = 30_000;
const STOP_LIMIT_MS = 10_000;
/** The default of QUITTANCE_DATABASE_POOL. */
const POOL_SIZE = 10;

/** The differences between two services: settings, and options of Node.js. */
export type ServiceSetup = { env?: Record<string, string>; execArgv?: string[] };

/** Runs a script of this folder, sends it an order if there is one, and waits for its first message. */
export async function startScript<Message>(
  name: string,
  env: Record<string, string>,
  { order, limitMs = START_LIMIT_MS }: { order?: object; limitMs?: number } = {},
): Promise<[Child, Message]> {
  // Uses the same --import as this process, so that it can run TypeScript.
  const options: ForkOptions = { env: { ...process.env, NODE_ENV: 'production', ...env } };
  const child = fork(fileURLToPath(new URL(name, import.meta.url)), [], options);
  if (order !== undefined) child.send(order);
  const started = within(Promise.race([once(child, 'message'), failure(child)]), `${name} does not start`, limitMs);
  const [message] = await started.catch((error: Error) => {
    // Nobody else knows this process yet, and it would keep the benchmark from ending.
    child.kill('SIGKILL');
    throw error;
  });
  return [toChild(child), message as Message];
}

export async function startBaseline(
  connection: PostgresConnection,
  shop: { projectId: string; addressIds: string[] },
  table: string,
): Promise<Server> {
  const [child, { url }] = await startScript<{ url: string }>('./baseline-server.ts', {
    BENCH_DATABASE: JSON.stringify(connection),
    BENCH_PROJECT: shop.projectId,
    BENCH_ADDRESSES: JSON.stringify(shop.addressIds),
    BENCH_POOL: String(POOL_SIZE),
    BENCH_TABLE: table,
  });
  return { ...child, url };
}

/**
 * Runs the service as an operator does, by default with only the role `api`. Only the rate limit differs from production: it's off. Without
 * a watcher, nothing calls the node's URL; the network only selects the real service.
 */
export async function startService(
  command: string,
  connection: PostgresConnection,
  { env = {}, execArgv = [] }: ServiceSetup = {},
): Promise<ServiceServer> {
  const { host, port, user, password, database } = connection;
  const child = spawn(process.execPath, [...execArgv, command, 'start'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      PATH: process.env['PATH'],
      // Makes the service end with its parent, as npm does, in case the benchmark is killed.
      npm_lifecycle_event: 'bench',
      NODE_ENV: 'production',
      DATABASE_URL: `postgres://${user}:${encodeURIComponent(password)}@${encodeURIComponent(host)}:${port}/${database}`,
      QUITTANCE_ROLES: 'api',
      QUITTANCE_PORT: '0',
      QUITTANCE_PUBLIC_URL: 'http://127.0.0.1',
      QUITTANCE_METRICS_PORT: '0',
      QUITTANCE_DEVNET_NODES: 'http://127.0.0.1:9',
      QUITTANCE_DEVNET_USDT: 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t',
      QUITTANCE_DATABASE_POOL: String(POOL_SIZE),
      QUITTANCE_LOG_LEVEL: 'info',
      QUITTANCE_MASTER_KEY: BENCH_MASTER_KEY,
      QUITTANCE_WEBHOOK_LOCAL_TARGETS: 'allow',
      QUITTANCE_RATE_LIMIT: '100000',
      QUITTANCE_RATE_BURST: '1000000',
      ...env,
    },
  });
  const urls = await within(Promise.race([readyUrls(child), failure(child)]), 'the service does not start');
  return { ...toChild(child), ...urls };
}

/**
 * Example: {"level":"info","time":"…","url":"http://127.0.0.1:40123","metricsUrl":"http://127.0.0.1:40124","roles":["api"],"msg":"ready"}
 */
function readyUrls(child: ChildProcess): Promise<{ url: string; metricsUrl: string }> {
  return new Promise((resolve) => {
    if (child.stdout === null) return;
    // Reads the log to the end, as a log collector would.
    createInterface(child.stdout).on('line', (line) => {
      const entry = JSON.parse(line) as Record<'level' | 'msg', string> & Partial<Record<'url' | 'metricsUrl', string>>;
      // Without the role `api`, the service has no address.
      if (entry.msg === 'ready') resolve({ url: entry.url ?? '', metricsUrl: entry.metricsUrl ?? '' });
      if (entry.level !== 'info') process.stderr.write(`${line}\n`);
    });
  });
}

/** Sends a message to a script and waits for its response. Only one message at a time. */
export async function ask<Answer>({ process: child }: Child, message: object): Promise<Answer> {
  const answered = once(child, 'message');
  child.send(message);
  const [answer] = await answered;
  return answer as Answer;
}

async function failure(child: ChildProcess): Promise<never> {
  const [code] = await once(child, 'exit');
  throw new Error(`a process of the benchmark ended with ${code}`);
}

async function within<Result>(result: Promise<Result>, problem: string, limitMs = START_LIMIT_MS): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${problem} within ${limitMs / 1000} s`)), limitMs);
  });
  return Promise.race([result, limit]).finally(() => clearTimeout(timer));
}

function toChild(child: ChildProcess): Child {
  return {
    process: child,
    pid: child.pid ?? 0,
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS);
      await ended;
      clearTimeout(timer);
    },
  };
}

/** Returns a port of this machine that is free now, because the console's port is known only from its configuration. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return port;
}
