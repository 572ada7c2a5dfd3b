import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { availableParallelism, cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { createLogger } from '../src/runtime/log.ts';
import { startEmbeddedPostgres } from '../src/store/embedded.ts';
import { buildRelease } from './build.ts';
import { measureMemory } from './memory.ts';
import { judge, summarize, toMarkdown } from './report.ts';
import { measureRounds, type Plan } from './rounds.ts';

/**
 * `npm run bench` measures, prints tables, and writes bench/results/<time>.json. `--quick` is a short run on fewer invoices that shows
 * whether everything works and roughly how fast; its figures are no record.
 */
const FULL: Plan = { invoiceCount: 1_000_000, connections: [1, 16, 64], rounds: 5, seconds: 3, warmUpSeconds: 3 };
const QUICK: Plan = { invoiceCount: 50_000, connections: [1, 64], rounds: 2, seconds: 1, warmUpSeconds: 1 };
const SETTLE_SECONDS = { full: 20, quick: 5 };

const RESULTS = fileURLToPath(new URL('results/', import.meta.url));
const SOURCE_COMMAND = fileURLToPath(new URL('../bin/quittance.js', import.meta.url));
/** A run that takes longer hangs; a full one takes less than ten minutes. */
const LIMIT_MS = 20 * 60_000;

const { values: flags } = parseArgs({ options: { quick: { type: 'boolean', default: false } } });
const toStop: (() => Promise<void>)[] = [];
let isStopping = false;

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.once(signal, () => abort(`stopped by ${signal}`));
setTimeout(() => abort('the benchmark takes too long'), LIMIT_MS).unref();

try {
  await run(flags.quick ? QUICK : FULL, flags.quick ? SETTLE_SECONDS.quick : SETTLE_SECONDS.full);
} catch (error) {
  if (!isStopping) console.error(error);
  process.exitCode = 1;
}
await stopAll();

async function run(plan: Plan, settleSeconds: number): Promise<void> {
  const startedAt = new Date();
  await mkdir(RESULTS, { recursive: true });
  progress('building the release');
  const release = await buildRelease(RESULTS);
  toStop.push(release.remove);
  const folder = await mkdtemp(join(tmpdir(), 'quittance-bench-'));
  toStop.push(() => rm(folder, { recursive: true, force: true }));
  // Root's PostgreSQL runs as another user, which mkdtemp's mode 0700 would shut out.
  await chmod(folder, 0o711);
  const log = createLogger({ level: 'warn' });
  const postgres = await startEmbeddedPostgres({
    dataDir: join(folder, 'data'),
    sharedDir: join(folder, 'shared'),
    log,
  });
  toStop.push(() => postgres.stop());
  const common = {
    postgres: postgres.connection,
    onStart: (child: { stop(): Promise<void> }) => toStop.push(() => child.stop()),
  };
  progress('measuring the memory of an idle process');
  const memory = await measureMemory({
    ...common,
    commands: { release: release.command, source: SOURCE_COMMAND },
    settleSeconds,
  });
  const samples = await measureRounds({ ...common, plan, command: release.command, onProgress: progress });
  const { lines, growth } = summarize(samples, plan.connections);
  const targets = judge(lines, growth, memory);
  const machine = { node: process.version, cores: availableParallelism(), cpu: cpus()[0]?.model ?? 'unknown' };
  const seconds = Math.round((Date.now() - startedAt.getTime()) / 1000);
  console.log(toMarkdown(lines, growth, memory, targets));
  const path = join(RESULTS, `${startedAt.toISOString().replaceAll(':', '')}.json`);
  const record = { startedAt, seconds, isQuick: flags.quick, machine, plan, targets, lines, growth, memory, samples };
  await writeFile(path, `${JSON.stringify(record, null, 2)}\n`);
  progress(`done in ${seconds} s; written to ${path}`);
}

function progress(text: string): void {
  console.error(`${new Date().toISOString().slice(11, 19)} ${text}`);
}

function abort(reason: string): void {
  isStopping = true;
  console.error(reason);
  // What is running fails once its processes are gone.
  void stopAll().finally(() => process.exit(1));
}

/** Stops and removes everything that was made, the last first. */
async function stopAll(): Promise<void> {
  for (const stop of toStop.splice(0).reverse()) await stop().catch((error) => console.error(error));
}
