import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { createLogger } from '../src/core/runtime/log.ts';
import type { PostgresConnection } from '../src/core/store/embedded/connection.ts';
import { startEmbeddedPostgres } from '../src/core/store/embedded/embedded.ts';
import { runApi } from './api.ts';
import type { BenchContext } from './bench-context.ts';
import { buildRelease } from './build.ts';
import { runCheckout } from './checkout/run.ts';
import { runConsole } from './console/run.ts';
import { runFloods } from './floods/run.ts';
import { runGrowth } from './growth/run.ts';
import { runIngest } from './ingest/run.ts';
import { runManifest } from './manifest/run.ts';
import { runMisattribution } from './misattribution/run.ts';
import { runOverload } from './overload/run.ts';
import { runPaint } from './paint.ts';
import { runRequests } from './requests/run.ts';
import { runSealing } from './sealing/run.ts';
import { runSeals } from './seals/run.ts';
import { runSizes } from './sizes/run.ts';
import { runSoak } from './soak/run.ts';
import { runStart } from './start/run.ts';
import { readTargets, targetTable } from './targets.ts';
import { runWebhooks } from './webhooks/run.ts';

/**
 * `npm run bench` measures, prints tables, and writes bench/results/<name>-<time>.json. The names are `api` (the default), `ingest`,
 * `growth`, `misattribution`, `webhooks`, `checkout`, `paint`, `sizes`, `console`, `overload`, `floods`, `requests`, `seals`, `sealing`,
 * `manifest`, `start` and `soak`. `--quick` is a short run that shows whether everything works and roughly how fast; don't record its
 * figures. `--compare OLD.json` shows an earlier result next to the targets. For `growth`, `--invoices` measures a ledger with this many
 * invoices, with and without enough memory for their indexes. For `console`, it measures pages over this many invoices and creates none
 * meanwhile. `start` takes `--release`, the path of bin/quittance.js in another release. `soak` takes `--minutes`, by default 20. For
 * `ingest`, `--full` replays a whole day in every row, `--day` replays it only from one node, near and far, `--without-logs` uses nodes
 * without `eth_getLogs`, `--grpc` queries one node over gRPC, and `--profile` writes a CPU profile of the service while it catches up from
 * two nodes, or over gRPC.
 */
const BENCHES = {
  api: async () => runApi(await prepare()),
  ingest: async () => runIngest(await prepare()),
  growth: async () =>
    runGrowth({
      ...(await startServer()),
      isQuick: flags.quick,
      invoices,
      onProgress: progress,
    }),
  misattribution: async () => runMisattribution(progress),
  webhooks: async () => runWebhooks(await prepare()),
  checkout: async () => runCheckout(await prepare()),
  paint: async () => runPaint(await prepare()),
  sizes: async () => runSizes({ postgres: await startPostgres(), isQuick: flags.quick, onProgress: progress }),
  console: async () => runConsole(await prepare(), invoices),
  overload: async () => runOverload(await prepare()),
  floods: async () => runFloods(await prepare()),
  requests: async () => runRequests(await prepare()),
  seals: async () => runSeals(await prepare()),
  sealing: async () => runSealing(await prepare()),
  manifest: async () => runManifest(await startPostgres()),
  start: async () =>
    runStart({ program: flags.release ?? (await build()), isQuick: flags.quick, onProgress: progress }),
  soak: async () => runSoak({ ...(await prepare()), minutes: Number(flags.minutes) }),
};
type Bench = keyof typeof BENCHES;

const RESULTS = fileURLToPath(new URL('results/', import.meta.url));
/** A run that takes longer hangs. The longest takes half of this, except with more than ten million invoices. */
const LIMIT_MS = 60 * 60_000;
const INVOICES_OF_LIMIT = 10_000_000;

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: 'boolean', default: false },
    full: { type: 'boolean', default: false },
    day: { type: 'boolean', default: false },
    profile: { type: 'boolean', default: false },
    'without-logs': { type: 'boolean', default: false },
    grpc: { type: 'boolean', default: false },
    compare: { type: 'string' },
    minutes: { type: 'string', default: '20' },
    invoices: { type: 'string' },
    release: { type: 'string' },
  },
});
const invoices = flags.invoices === undefined ? null : readCount(flags.invoices);
const toStop: (() => Promise<void>)[] = [];
let isStopping = false;

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.once(signal, () => abort(`stopped by ${signal}`));
const limitMs = LIMIT_MS * Math.max(1, (invoices ?? 0) / INVOICES_OF_LIMIT);
setTimeout(() => abort('the benchmark takes too long'), limitMs).unref();

try {
  await run(benchNamed(positionals));
} catch (error) {
  if (!isStopping) console.error(error);
  process.exitCode = 1;
}
await stopAll();

function benchNamed([name = 'api', ...more]: string[]): Bench {
  if (more.length === 0 && Object.hasOwn(BENCHES, name)) return name as Bench;
  throw new Error(`name one of ${Object.keys(BENCHES).join(', ')}`);
}

function readCount(text: string): number {
  const count = /^\d{5,9}$/.test(text) ? Number(text) : 0;
  if (count >= 10_000) return count;
  throw new Error('--invoices takes 10000 to 999999999');
}

async function run(name: Bench): Promise<void> {
  const startedAt = new Date();
  await mkdir(RESULTS, { recursive: true });
  const older = flags.compare === undefined ? null : await readTargets(flags.compare, name);
  const load = { before: loadavg(), after: [0] };
  const { markdown, targets = [], record } = await BENCHES[name]();
  load.after = loadavg();
  const machine = { node: process.version, cores: availableParallelism(), cpu: cpus()[0]?.model ?? 'unknown' };
  const seconds = Math.round((Date.now() - startedAt.getTime()) / 1000);
  const [before, after] = [load.before, load.after].map((averages) => averages[0]?.toFixed(1));
  console.log(markdown);
  if (targets.length > 0) console.log(`\n${targetTable(targets, older)}`);
  console.log(
    `\n${machine.cores} cores (${machine.cpu}), Node ${machine.node}; load ${before} before and ${after} after.`,
  );
  const path = join(RESULTS, `${name}-${startedAt.toISOString().replaceAll(':', '')}.json`);
  const common = { name, startedAt, seconds, flags, machine, load, targets };
  await writeFile(path, `${JSON.stringify({ ...common, ...record }, null, 2)}\n`);
  progress(`done in ${seconds} s; written to ${path}`);
}

async function prepare(): Promise<BenchContext> {
  return {
    command: await build(),
    postgres: await startPostgres(),
    results: RESULTS,
    flags,
    onStart: (child) => toStop.push(() => child.stop()),
    onProgress: progress,
  };
}

/** Builds the release of this checkout, and returns its bin/quittance.js. */
async function build(): Promise<string> {
  progress('building the release');
  const release = await buildRelease(RESULTS);
  toStop.push(release.remove);
  return release.command;
}

async function startPostgres(): Promise<PostgresConnection> {
  return (await startServer()).postgres;
}

/**
 * Starts an empty server with the service's settings, which is removed at the end. `restart` applies settings that PostgreSQL reads only at
 * its start.
 */
async function startServer(): Promise<{ postgres: PostgresConnection; restart(): Promise<PostgresConnection> }> {
  const folder = await mkdtemp(join(tmpdir(), 'quittance-bench-'));
  toStop.push(() => rm(folder, { recursive: true, force: true }));
  // As root, PostgreSQL runs as another user, which couldn't access a directory with mkdtemp's mode 0700.
  await chmod(folder, 0o711);
  const start = () =>
    startEmbeddedPostgres({
      dataDir: join(folder, 'data'),
      sharedDir: join(folder, 'shared'),
      log: createLogger({ level: 'warn' }),
    });
  let server = await start();
  toStop.push(() => server.stop());
  const restart = async () => {
    await server.stop();
    server = await start();
    return server.owner;
  };
  return { postgres: server.owner, restart };
}

function progress(text: string): void {
  console.error(`${new Date().toISOString().slice(11, 19)} ${text}`);
}

function abort(reason: string): void {
  isStopping = true;
  console.error(reason);
  // Tasks in progress fail when their processes have ended.
  void stopAll().finally(() => process.exit(1));
}

/** Stops and removes everything that was created, in reverse order. */
async function stopAll(): Promise<void> {
  for (const stop of toStop.splice(0).reverse()) await stop().catch((error) => console.error(error));
}
