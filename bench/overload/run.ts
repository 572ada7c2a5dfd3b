import { setTimeout as delay } from 'node:timers/promises';
import { encodeId } from '../../src/core/domain/ids.ts';
import type { BenchContext, BenchResult } from '../bench-context.ts';
import { ask, type Child, startScript } from '../child.ts';
import { onServer } from '../databases.ts';
import { SOLID_DEPTH } from '../ingest/day.ts';
import { cpuMs } from '../proc.ts';
import { sampleIds } from '../seed.ts';
import { writeEvents } from '../webhooks/events.ts';
import type { Arrivals } from '../webhooks/receiver.ts';
import type { FloodJob, FloodResult } from './flood.ts';
import { type Flooded, startNeighbour } from './neighbour.ts';
import { judgeOverload, LOADS, type Measured, type Phase, showOverload } from './report.ts';
import { BLOCK_MS, type Deployment, startWorld, type World } from './world.ts';

type Plan = { phaseSeconds: number; phases: number; connections: number };
/** By default, 128 requests may be in progress and 256 may wait. 500 closed loops are more than that. */
const DEFAULT: Plan = { phaseSeconds: 12, phases: 12, connections: 500 };
const QUICK: Plan = { phaseSeconds: 8, phases: 3, connections: 500 };

const DEPLOYMENTS: Deployment[] = [
  { name: 'all_in_one', processes: ['api,watcher,webhooks'] },
  { name: 'separate', processes: ['api', 'watcher', 'webhooks'] },
];
/** The pause after a flood begins or ends, before anything counts. */
const SETTLE_MS = 1500;
/** Additional time around each phase, and until the first payments are irreversible. */
const REST_SECONDS = 10;
const CREATE_EVERY = 2;

/** Measures how long payments and webhooks take while the API is flooded, compared with normal times. */
export async function runOverload(context: BenchContext): Promise<BenchResult> {
  const plan = context.flags.quick ? QUICK : DEFAULT;
  const [flooder] = await startScript('./overload/flood.ts', {});
  context.onStart(flooder);
  const neighbour = await startNeighbour(context);
  const measured: Measured[] = [];
  for (const deployment of DEPLOYMENTS) {
    context.onProgress(`${deployment.name}: starting`);
    measured.push(await measure(context, plan, deployment, { flooder, neighbour }));
  }
  const targets = judgeOverload(measured);
  return { markdown: showOverload(measured), targets, record: { plan, measured } };
}

async function measure(
  context: BenchContext,
  plan: Plan,
  deployment: Deployment,
  { flooder, neighbour }: { flooder: Child; neighbour: Flooded },
): Promise<Measured> {
  const world = await startWorld(context, deployment, plan.phases * (plan.phaseSeconds + REST_SECONDS) + REST_SECONDS);
  try {
    await onServer(world.shop.connection, (client) => client.query('vacuum analyze'));
    // The payments of a phase become irreversible during the phase, so the first phase begins this long after the block of the first
    // payment.
    await delay(Math.max(0, world.publishedAt(world.firstCounted + SOLID_DEPTH) - BLOCK_MS / 2 - Date.now()));
    const phases: Phase[] = [];
    for (let number = 1; number <= plan.phases; number += 1) {
      const load = LOADS[(number - 1) % LOADS.length] ?? 'quiet';
      context.onProgress(`${deployment.name}: ${load}, phase ${number} of ${plan.phases}`);
      const flooding = load === 'quiet' ? null : flood(flooder, load === 'flooded' ? world : neighbour, plan);
      phases.push({ ...(await runPhase(world, plan, flooding)), load });
    }
    // The last blocks of a phase are recorded after it.
    await delay(3000);
    return { name: deployment.name, phases: phases.map((phase) => addPayments(world, phase)) };
  } finally {
    await world.stop();
  }
}

async function flood(
  flooder: Child,
  { url, shop }: Flooded,
  { phaseSeconds, connections }: Plan,
): Promise<FloodResult | { error: string }> {
  const ids = await onServer(shop.connection, sampleIds);
  const paths = ids.slice(0, 1000).map((id) => `/v1/invoices/${encodeId('inv', id)}`);
  const job: FloodJob = {
    url,
    connections,
    seconds: phaseSeconds,
    apiKey: shop.apiKey,
    createEvery: CREATE_EVERY,
    paths,
  };
  return ask(flooder, job);
}

async function runPhase(
  world: World,
  { phaseSeconds }: Plan,
  flooding: ReturnType<typeof flood> | null,
): Promise<Omit<Phase, 'load'>> {
  await delay(SETTLE_MS);
  const fromMs = Date.now();
  const cpuBefore = await Promise.all(world.services.map(({ pid }) => cpuMs(pid)));
  const untilMs = fromMs + phaseSeconds * 1000 - 2 * SETTLE_MS;
  const delivered = await deliver(world, untilMs);
  const cpuAfter = await Promise.all(world.services.map(({ pid }) => cpuMs(pid)));
  const seconds = (Date.now() - fromMs) / 1000;
  const cpuShare = Object.fromEntries(
    world.services.map(({ roles }, index) => [
      roles,
      ((cpuAfter[index] ?? 0) - (cpuBefore[index] ?? 0)) / (10 * seconds),
    ]),
  );
  const result = await flooding;
  if (result !== null && 'error' in result) throw new Error(`the flood failed: ${result.error}`);
  await delay(SETTLE_MS);
  return { fromMs, untilMs, delivered, confirming: [], paid: [], flood: result, cpuShare };
}

/** Returns the milliseconds from the commit of an event to its arrival, one event after another, with pauses of 20 to 80 ms. */
async function deliver({ client, receiver, shop, endpointId }: World, untilMs: number): Promise<number[]> {
  await ask(receiver, { kind: 'reset' });
  const committed = new Map<string, number>();
  for (let number = 1; Date.now() < untilMs; number += 1) {
    const [id = ''] = await writeEvents(client, shop.projectId, [endpointId], 1);
    committed.set(encodeId('evt', id), performance.timeOrigin + performance.now());
    await delay(20 + ((number * 7) % 61));
  }
  await delay(500);
  const { arrivals } = await ask<Arrivals>(receiver, { kind: 'arrivals' });
  const latencies = arrivals.flatMap(([id, at]) => (committed.has(id) ? [at - (committed.get(id) ?? 0)] : []));
  if (latencies.length < committed.size) throw new Error(`${committed.size - latencies.length} events did not arrive`);
  return latencies;
}

/** Returns the milliseconds from the moment when a block was available to the commit, for the blocks of the phase. */
function addPayments({ numberOf, committed, publishedAt }: World, phase: Phase): Phase {
  const latencies = (status: string, depth: number) =>
    [...numberOf].flatMap(([id, number]) => {
      const at = publishedAt(number + depth);
      if (at < phase.fromMs || at > phase.untilMs) return [];
      const committedAt = committed.get(`${id} ${status}`);
      if (committedAt === undefined) throw new Error(`an invoice was not ${status}`);
      return [committedAt - at];
    });
  return { ...phase, confirming: latencies('CONFIRMING', 0), paid: latencies('PAID', SOLID_DEPTH) };
}
