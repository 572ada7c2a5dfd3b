import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { isPrimary } from '../../deploy/ha/cluster.ts';
import type { Member } from '../../deploy/ha/member.ts';
import { findPrograms } from '../../deploy/ha/requirements.ts';
import { encodeId } from '../../src/core/domain/ids.ts';
import { BUILT_COMMAND } from '../support/command.ts';
import { eventually } from '../support/service.ts';
import { FAILURES, type Failure } from './failures.ts';
import { digestsOf, VIOLATIONS } from './ledger.ts';
import type { Load } from './load.ts';
import { queryOn, startWorld, type World } from './world.ts';

/** How often each failure occurs. HA_ROUNDS=2 makes sixteen failures in about a quarter of an hour. */
const ROUNDS = Number(process.env['HA_ROUNDS'] ?? 1);
/** Each failure takes about a minute. */
const LIMIT_MS = 3_600_000;
const SERVICE_BACK_MS = 30_000;
/** How long a frozen or dead server stays so while the new primary is written to. */
const APART_MS = 10_000;
/** Twice as long as Patroni takes at most. */
const PROMOTION_MS = 50_000;
const WHOLE_AGAIN_MS = 120_000;
const CALM_MS = 90_000;

type Outcome = { failure: string; from: string; to: string; silenceMs: number; wholeMs: number; invoices: number };

test(
  'PostgreSQL loses its primary under load in every way: no acknowledged invoice is lost, and all goes on by itself',
  async (context) => {
    const programs = await findPrograms();
    if (typeof programs === 'string') return context.skip(programs);
    const world = await startWorld(programs);
    try {
      await expectTls(world);
      const load = world.startLoad();
      const outcomes: Outcome[] = [];
      await untilServed(load, performance.now());
      for (let round = 0; round < ROUNDS; round += 1) {
        for (const failure of FAILURES) {
          const outcome = await liveThrough(world, load, failure);
          outcomes.push(outcome);
          console.log(JSON.stringify(outcome));
          if (failure.promotes !== 'perhaps') expect(outcome.silenceMs, failure.name).toBeLessThan(SERVICE_BACK_MS);
        }
      }
      await load.stop();
      await expectTruth(world, load);
      report(outcomes, load, world);
    } catch (error) {
      console.error(await logsOf(world));
      throw error;
    } finally {
      await world.stop();
    }
  },
  LIMIT_MS,
);

/** Expects that each connection to each member is encrypted, including those of the standbys, and that one without TLS is refused. */
async function expectTls({ cluster }: World): Promise<void> {
  for (const member of cluster.members) {
    const connection = cluster.connectionOf(member);
    await expect(queryOn({ ...connection, ssl: false }, 'select 1'), member.name).rejects.toThrow('no encryption');
    await expect(queryOn({ ...connection, ssl: true }, 'select 1'), member.name).rejects.toThrow('self-signed');
    const plain = `select 1 from pg_stat_ssl s join pg_stat_activity a using (pid) where not s.ssl and a.client_addr is not null`;
    expect(await queryOn(connection, plain), member.name).toEqual([]);
  }
}

async function liveThrough(world: World, load: Load, failure: Failure): Promise<Outcome> {
  const { cluster } = world;
  const before = await cluster.untilWhole(WHOLE_AGAIN_MS);
  const timeline = await timelineOf(world, before);
  const known = [...load.acknowledged];
  const struckMs = performance.now();
  const { heal } = await failure.strike(cluster, before);
  const after = failure.promotes === 'no' ? before : await promotedWithin(world, timeline);
  if (after === null && failure.promotes === 'yes') throw new Error(`nobody was promoted: ${failure.name}`);
  if (after !== null) {
    const promotedMs = performance.now();
    await untilServed(load, promotedMs);
    await eventually(
      () => performance.now() - promotedMs,
      (passedMs) => passedMs > APART_MS,
    );
    await expectKept(world, load, after, known);
  }
  await heal();
  const primary = await cluster.untilWhole(WHOLE_AGAIN_MS);
  const wholeMs = performance.now() - struckMs;
  await expectKept(world, load, primary, [...load.acknowledged]);
  for (const process of world.processes) expect(process.isRunning()).toBe(true);
  return {
    ...{ failure: failure.name, from: before.name, to: primary.name },
    ...{ silenceMs: Math.round(longestSilence(load, struckMs)), wholeMs: Math.round(wholeMs) },
    invoices: load.acknowledged.length,
  };
}

/** Each promotion begins a new timeline, even that of the former primary itself after its crash. Returns `null` if there is none. */
async function promotedWithin({ cluster }: World, former: number): Promise<Member | null> {
  const deadline = performance.now() + PROMOTION_MS;
  const find = async () => {
    const states = await cluster.look();
    return cluster.members.find((_, index) => {
      const state = states[index] ?? null;
      return isPrimary(state) && state?.state === 'running' && (state.timeline ?? 0) > former;
    });
  };
  const isOver = (member: Member | undefined) => member !== undefined || performance.now() > deadline;
  return (await eventually(find, isOver, 2 * PROMOTION_MS)) ?? null;
}

async function timelineOf({ cluster }: World, member: Member): Promise<number> {
  const states = await cluster.look();
  return states[cluster.members.indexOf(member)]?.timeline ?? 0;
}

async function untilServed(load: Load, sinceMs: number): Promise<void> {
  await eventually(
    () => load.answersSince(sinceMs).length,
    (count) => count > 0,
    60_000,
  );
}

/** Returns the longest time without a new 201 since the failure, counting only answers to requests sent after it. */
function longestSilence(load: Load, struckMs: number): number {
  const times = [struckMs, ...load.answersSince(struckMs)];
  return Math.max(...times.slice(1).map((atMs, index) => atMs - (times[index] as number)));
}

/** Expects that every acknowledged invoice is on the new primary, and that unpaid ones read the same as before, byte for byte. */
async function expectKept(
  world: World,
  load: Load,
  primary: Member,
  known: Load['acknowledged'],
  readCount = 300,
): Promise<void> {
  const rows = await queryOn(
    world.cluster.connectionOf(primary),
    'select id, external_id from invoices where external_id = any($1)',
    [known.map(({ externalId }) => externalId)],
  );
  const kept = new Map(rows.map(({ id = '', external_id = '' }) => [external_id, encodeId('inv', id)]));
  expect(known.filter(({ id, externalId }) => kept.get(externalId) !== id)).toEqual([]);
  // A failure could lose the newest ones; the end of the test reads all.
  for (const invoice of known.slice(-readCount)) {
    if (invoice.isToBePaid || invoice.read === null) continue;
    expect(await load.readNow(invoice)).toBe(invoice.read);
  }
}

async function expectTruth(world: World, load: Load): Promise<void> {
  const { cluster, receiver } = world;
  const primary = await cluster.untilWhole(WHOLE_AGAIN_MS);
  const ask = (text: string) => queryOn(cluster.connectionOf(primary), text);
  // Every payment is irreversible, recorded and notified.
  await eventually(
    async () => {
      const [row] = await ask(`select (select count(*) from invoices where status = 'PAID') as paid,
        (select count(*) from deliveries where status = 'pending') as pending`);
      return { paid: Number(row?.['paid']), pending: Number(row?.['pending']) };
    },
    ({ paid, pending }) => paid === load.paidCount() && pending === 0,
    CALM_MS,
  );
  const counted = await ask('select count(*) from invoices');
  expect(counted).toEqual([{ count: String(load.acknowledged.length) }]);
  expect((await ask(VIOLATIONS)).filter(({ count }) => count !== '0')).toEqual([]);
  const events = (await ask('select id from events')).map(({ id = '' }) => encodeId('evt', id));
  expect([...receiver.ids].sort()).toEqual(events.sort());
  expect(receiver.refused).toEqual([]);
  await expectBooksBalance(world);
  // Unacknowledged writes of a former primary are gone everywhere.
  const digests = await eventually(
    () => digestsOf(cluster),
    (all) => all.every((each) => JSON.stringify(each) === JSON.stringify(all[0])),
    CALM_MS,
  );
  expect(digests).toHaveLength(3);
  await expectKept(world, load, primary, load.acknowledged, load.acknowledged.length);
  for (const process of world.processes) {
    expect(process.isRunning()).toBe(true);
    expect(process.log()).not.toMatch(/"level":60|changed while the watcher/);
  }
}

/** Blocks arrive while the command reads, so it may report "too early" for a while. A real difference remains. */
async function expectBooksBalance({ env }: World): Promise<void> {
  const statuses = await eventually(
    () => reconcile(env),
    (all) => !all.includes('too-early'),
    CALM_MS,
  );
  expect(statuses).toEqual(['good', 'good', 'good', 'good']);
}

/** Returns the command's result for each address. It exits with 1 unless all are good. */
async function reconcile(env: Record<string, string>): Promise<string[]> {
  const { stdout } = await promisify(execFile)(process.execPath, [BUILT_COMMAND, 'reconcile', '--json'], {
    env: { ...env, PATH: process.env['PATH'] },
  }).catch((error: Error & { stdout: string }) => error);
  return JSON.parse(stdout).data.map(({ status }: { status: string }) => status);
}

function report(outcomes: Outcome[], load: Load, { receiver }: World): void {
  const seconds = (ms: number) => (ms / 1000).toFixed(1);
  const lines = outcomes.map(
    ({ failure, from, to, silenceMs, wholeMs }) =>
      `| ${failure} | ${from} → ${to} | ${seconds(silenceMs)} | ${seconds(wholeMs)} |`,
  );
  console.log(
    [
      '| Failure | Primary | Longest time without a 201, s | Whole again, s |',
      '|---|---|---|---|',
      ...lines,
      `${load.acknowledged.length} invoices acknowledged, ${load.paidCount()} paid, ${receiver.ids.size} events in ${receiver.count()} deliveries;`,
      `refused meanwhile: ${JSON.stringify(Object.fromEntries(load.refusals))}`,
    ].join('\n'),
  );
}

/** Returns the end of every log before the logs are deleted. */
async function logsOf({ cluster, processes }: World): Promise<string> {
  const tail = (text: string) => text.split('\n').slice(-60).join('\n');
  const logs = await Promise.all(
    [...cluster.members.map(({ logFile }) => logFile), join(cluster.directory, 'haproxy.log')].map(async (file) => {
      return `${file}\n${tail(await readFile(file, 'utf8'))}`;
    }),
  );
  return [...logs, ...processes.map(({ log }) => tail(log()))].join('\n\n');
}
