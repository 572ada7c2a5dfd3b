import { createHash } from 'node:crypto';
import type { AccountHex } from '@quittance/tron/address';
import { formatApiKey } from '../../../src/core/domain/api-key.ts';
import { uuidV7 } from '../../../src/core/domain/ids.ts';
import { microUsdt } from '../../../src/core/domain/money.ts';
import { codeWords, type Policy, payableRange, surchargeOf } from '../../../src/core/domain/policy.ts';
import { unixMs } from '../../../src/core/domain/time.ts';
import { createKeyRing, createMasterKey, type KeyRing } from '../../../src/core/runtime/key-ring.ts';
import { type Database, openDatabase } from '../../../src/core/store/db/database.ts';
import { insertAddress } from '../../../src/core/store/ledger/addresses.ts';
import { insertProject } from '../../../src/core/store/ledger/projects.ts';
import { createWebhookSecret } from '../../../src/core/webhooks/sign.ts';
import { insertApiKey } from '../../../src/faces/operator/subjects/keys.ts';
import { addWebhookEndpoint } from '../../../src/faces/operator/subjects/webhooks.ts';
import { createTestDatabase } from '../../support/postgres.ts';
import { createRandom, type Random } from '../engine/random.ts';
import { createSessions } from '../engine/sessions.ts';
import { createSettling } from '../engine/settling.ts';
import { createSimulatedDatabase, type Plant } from '../engine/simulated-database.ts';
import { createProcess, type SimulatedProcess } from '../engine/simulated-process.ts';
import { createVirtualTime } from '../engine/virtual-time.ts';
import { installWitness } from '../invariants/witness.ts';
import type { Acknowledged, KnownAccount, Truth } from '../truth.ts';
import { type Candidate, createOperators, newCandidate } from './operators.ts';
import { createPayers } from './payers.ts';
import { type Plan, type Role, type Shape, shapeOf, type Trouble } from './plan.ts';
import { createPoisons } from './poisons.ts';
import { createReceivers } from './receivers.ts';
import { NETWORK, type Running, startRoles } from './roles.ts';
import { type Asked, createShops, type Shop } from './shops.ts';
import { createSimulatedChain } from './simulated-chain.ts';
import { createSimulatedNodes } from './simulated-nodes.ts';
import { createThieves, KIOSK_AMOUNTS, MARKED_MICRO, type Mark } from './thieves.ts';
import { createTroubles } from './troubles.ts';

export type World = Awaited<ReturnType<typeof createWorld>>;

export type WorldOptions = {
  /** A bug in all processes. */
  plant?: Plant;
  /** Overrides the seed's shape. */
  shape?: Partial<Shape>;
  /** Only the test orders, pays or reads, through `hands`. */
  isIdle?: boolean;
};

/** Poisons have their own randomness, so that worlds without them stay the same. */
const POISON_SEED = 0x901;
const THIEF_SEED = 0x7e1;
/**
 * These troubles hide blocks or make clocks wrong, too. Only without them can a transfer that arrived while the chain wasn't visible be
 * judged by its time.
 */
const DARKNESS_UNCLEAR: readonly Trouble[] = ['pause', 'clock', 'producers', 'nodes', 'lies', 'poisons'];
/** In 2097. The database's own clock must not reach this time, because runs would differ after that. */
const START_MS = 4_011_840_000_000;
const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const INVOICE_LIFETIME_MS = 15 * MINUTE_MS;
/** A supervisor restarts a dead process after this long. */
const RESTART_MS = { from: SECOND_MS, to: 20 * SECOND_MS };
/** The database's clock is accurate to this part of a slot. */
const DATABASE_CLOCK_SLOTS = 1 / 12;

/** Creates a seeded world in one process: the real code on a real PostgreSQL, with everything around it simulated. */
export async function createWorld(plan: Plan, options: WorldOptions = {}) {
  const hasPoisons = plan.troubles.has('poisons');
  const shape: Shape = { ...shapeOf(plan.seed), ...(hasPoisons ? {} : { languages: [] }), ...options.shape };
  const random = createRandom(plan.seed);
  const database = await createTestDatabase();
  const settling = await createSettling(database);
  await installWitness(settling.query);
  await replaceClock(settling.query, database.connection.database);
  const time = createVirtualTime(START_MS);
  const world = { isAlive: true, pausedUntilMs: 0 };
  const lines: string[] = [];
  const takeLine = (line: string) => void lines.push(line);
  const keyRing = createKeyRing([createMasterKey()]);
  const chainOptions = { startMs: START_MS, nowMs: time.nowMs, slotMs: shape.slotMs, producers: shape.producers };
  const chain = createSimulatedChain({ ...chainOptions, random: random.fork() });
  const nodes = createSimulatedNodes({ chain, shape, random: random.fork() });
  const poisons = createPoisons({ chain, random: createRandom(plan.seed ^ POISON_SEED) });
  const receivers = createReceivers({ nowMs: time.nowMs, random: random.fork() });

  const setup = openDatabase({
    connection: database.connection,
    poolSize: 2,
    applicationName: 'setup',
    onError: () => undefined,
  });
  const furnishing = { db: setup, keyRing, receivers };
  const { shops, addressesOf, canaries } = await furnish({ ...furnishing, random: random.fork() }, [
    'bakery',
    'tailor',
  ]);
  const hasThieves = plan.troubles.has('thieves');
  const thiefRandom = createRandom(plan.seed ^ THIEF_SEED);
  const kiosk = hasThieves ? await furnish({ ...furnishing, random: thiefRandom.fork() }, ['kiosk']) : null;
  for (const [id, candidates] of kiosk?.addressesOf ?? []) addressesOf.set(id, candidates);
  canaries.push(...(kiosk?.canaries ?? []));
  const allShops = [...shops, ...(kiosk?.shops ?? [])];
  await setup.close();

  const sessions = createSessions(database.connection, time);
  const running: Running[] = [];
  const terminals = new Set<SimulatedProcess>();
  const listeners: { process: SimulatedProcess; onNotify(payload: string | null): void }[] = [];
  const processes = () => [...running.map(({ process }) => process), ...terminals].filter(({ isAlive }) => isAlive);
  const troubles = createTroubles({
    ...{ plan, shape, random: random.fork(), time, world, settling, chain, nodes, receivers, poisons, processes },
  });
  const latencies = random.fork();
  let databaseClockMs = Number.NEGATIVE_INFINITY;
  let born = 0;
  const openProcess = (name: string) => {
    born += 1;
    const session = sessions.take();
    const process = createProcess(time, `${name}-${born}`, session.name);
    const db = createSimulatedDatabase({
      ...{ process, session, time, settling, strike: troubles.strike, plant: options.plant ?? {} },
      latencyMs: () => (latencies.chance(0.002) ? latencies.between(100, 8000) : latencies.between(0, 3)),
      setClock: async () => {
        const nowMs = time.nowMs() + troubles.databaseSkewMs();
        if (Math.abs(nowMs - databaseClockMs) < DATABASE_CLOCK_SLOTS * shape.slotMs) return;
        databaseClockMs = nowMs;
        await settling.query(`select setval('sim.clock', $1)`, [Math.floor(nowMs)]);
      },
      onQuiet: () => sessions.giveBack(session),
      onNotification: () => {
        for (const listener of listeners) {
          if (!listener.process.isAlive || latencies.chance(0.02)) continue;
          time.after(listener.process, latencies.between(0, 5), () => listener.onNotify(null));
        }
      },
      listen: (listening, onNotify) => {
        listeners.push({ process: listening, onNotify });
        listening.onDeath(() =>
          listeners.splice(
            listeners.findIndex((each) => each.process === listening),
            1,
          ),
        );
      },
    });
    return { process, db };
  };
  const roleRandom = random.fork();
  const start = (roles: readonly Role[]) => {
    const { process, db } = openProcess(roles.join('+'));
    const shared = { shape, nodes, receivers, keyRing, random: roleRandom.fork(), takeLine };
    const started = startRoles({ process, roles, db, ...shared });
    running.push(started);
    process.onDeath(() => {
      running.splice(running.indexOf(started), 1);
      const waitMs = troubles.areOver() ? RESTART_MS.from : roleRandom.between(RESTART_MS.from, RESTART_MS.to);
      time.after(world, waitMs, () => void start(roles));
    });
  };
  const openTerminal = () => {
    const terminal = openProcess('cli');
    terminals.add(terminal.process);
    terminal.process.onDeath(() => terminals.delete(terminal.process));
    // No command takes longer. A person ends one that hangs.
    time.after(world, MINUTE_MS, terminal.process.kill);
    return terminal;
  };
  const placeOf = async (invoiceId: string) => {
    const end = settling.begin();
    const [row] = await settling
      .query(
        `select encode(a.account, 'hex') as account, i.payable_micro as amount
         from public.invoices i join public.addresses a on a.id = i.address_id where i.id = $1`,
        [invoiceId],
      )
      .finally(end);
    return { account: String(row?.['account']) as AccountHex, payableMicro: BigInt(String(row?.['amount'])) };
  };
  const apis = () => running.filter(({ roles }) => roles.includes('api'));
  const { headNumber } = chain;
  const accounts: KnownAccount[] = allShops.flatMap(({ id: projectId }) =>
    (addressesOf.get(projectId) ?? []).map(({ account }) => ({ account, projectId, headNumber: chain.startNumber })),
  );
  const isDarknessClear = !DARKNESS_UNCLEAR.some((trouble) => plan.troubles.has(trouble));
  const look = async (): Promise<Asked> => {
    const end = settling.begin();
    const [row] = await settling.query('select witness.examined_count() as count').finally(end);
    const span = nodes.blindSpans.at(-1);
    const darkSinceMs = isDarknessClear && span !== undefined && span.toMs === null ? span.fromMs : null;
    return { askedAtMs: time.nowMs(), examinedBefore: Number(row?.['count']), darkSinceMs };
  };
  const integrators = createShops({ time, world, random: random.fork(), apis, placeOf, headNumber, look, takeLine });
  const payers = createPayers({
    ...{ time, world, random: random.fork() },
    ask: hasPoisons ? poisons.ask : chain.askHealthyNode,
  });
  const operators = createOperators({
    ...{ random: random.fork(), openTerminal, shops, receivers, addressesOf, keyRing, headNumber, accounts, canaries },
    takeLine,
  });

  const life = random.fork();
  const every = (meanMs: number, deed: () => Promise<unknown>) => {
    if (options.isIdle === true) return;
    const next = () =>
      time.after(world, -Math.log(1 - life.next()) * meanMs, () => {
        if (troubles.areOver()) return;
        void deed();
        next();
      });
    next();
  };
  const mine = () => {
    chain.tick();
    time.after(world, shape.slotMs, mine);
  };
  time.after(world, 200, mine);
  for (const roles of shape.processes) start(roles);
  every(80 * SECOND_MS, async () => {
    const reported = await integrators.order(life.pick(shops));
    if (reported !== null) await payers.pay(reported, integrators.acknowledged);
  });
  every(3 * MINUTE_MS, () => integrators.read(life.pick(shops)));
  every(8 * MINUTE_MS, integrators.repeat);
  if (plan.troubles.has('operators')) every(7 * MINUTE_MS, operators.act);
  const [stall] = kiosk?.shops ?? [];
  if (stall !== undefined) {
    const markOf = (shop: Shop): Mark => {
      const policy = policyOf(shop);
      const range = payableRange(
        { policy, maxSurchargeMicro: surchargeOf(policy).usualMicro },
        microUsdt(MARKED_MICRO),
      );
      const words = policy === 'exact' ? KIOSK_AMOUNTS : codeWords(range);
      return { shop, policy, words, accounts: () => (addressesOf.get(shop.id) ?? []).map(({ account }) => account) };
    };
    const thieves = createThieves({
      ...{ time, world, random: thiefRandom.fork(), nodes, chain, mayFork: plan.troubles.has('forks') },
      ...{ order: integrators.order, send: payers.send },
      ...{ pay: (reported: Acknowledged) => payers.pay(reported, integrators.acknowledged) },
      marks: allShops.map(markOf),
      kiosk: markOf(stall),
      newAddress: () => {
        const candidate = newCandidate(thiefRandom);
        return { account: candidate.account, add: () => operators.addTo(stall, candidate) };
      },
    });
    every(4 * MINUTE_MS, thieves.act);
  }

  let calmSinceMs: number | null = null;
  const truth: Truth = {
    network: NETWORK,
    nowMs: time.nowMs,
    query: settling.query,
    chain,
    projects: allShops,
    accounts,
    acknowledged: integrators.acknowledged,
    received: receivers.received,
    shown: integrators.shown,
    lines,
    canaries,
    blindSpans: nodes.blindSpans,
    calmSinceMs: () => calmSinceMs,
  };
  const runUntil = async (untilMs: number): Promise<void> => {
    let cancelAtMs: number | null = null;
    for (;;) {
      await settling.settle();
      cancelAtMs = settling.isBlocked() ? (cancelAtMs ?? time.nowMs() + LOCK_TIMEOUT_MS) : null;
      if (cancelAtMs !== null && time.nowMs() >= cancelAtMs) {
        cancelAtMs = null;
        await settling.cancelBlocked();
        continue;
      }
      if (!time.fireNext(untilMs)) return;
    }
  };
  return {
    plan,
    shape,
    truth,
    query: settling.query,
    /** Lets a test perform the world's actions. */
    hands: { shops, kiosk: kiosk?.shops[0] ?? null, integrators, receivers, nodes, chain },
    /** Runs the world for this long. */
    run: (ms: number) => runUntil(time.nowMs() + ms),
    /** Ends all troubles: dead processes are restarted, failing nodes recover, and waiting deliveries are made due. */
    calm: () => {
      troubles.end();
      for (const process of processes()) process.pausedUntilMs = 0;
      calmSinceMs = time.nowMs();
      void operators.enableAll();
    },
    counts: () => ({
      blocks: chain.counts.blocks,
      orphaned: chain.counts.orphaned,
      transfers: chain.transfersTo(accountsOf(addressesOf), chain.solidNumber()).length,
      invoices: integrators.counts.created,
      webhooks: receivers.counts.attempts,
      requests: nodes.counts.requests,
      requestsByGrpc: nodes.counts.byMessage,
      answersTooLarge: nodes.counts.tooLarge,
      processes: born,
      troubles: { ...troubles.counts },
    }),
    lines,
    stop: async () => {
      world.isAlive = false;
      for (const process of processes()) process.kill();
      await settling.settle();
      await sessions.close();
      time.restore();
      await settling.end();
      await database.drop();
    },
  };
}

/** With our setting, PostgreSQL gives up waiting for a lock after this long. */
const LOCK_TIMEOUT_MS = 10_000;

function accountsOf(addressesOf: ReadonlyMap<string, readonly Candidate[]>): ReadonlySet<string> {
  return new Set([...addressesOf.values()].flat().map(({ account }) => account));
}

/**
 * Makes `now()` return the simulated time in every new connection. Each connection plans a statement once, because planning takes longer
 * than running it.
 */
async function replaceClock(query: (sql: string) => Promise<unknown>, name: string): Promise<void> {
  await query(`
    create schema if not exists sim;
    create sequence sim.clock;
    select setval('sim.clock', ${START_MS});
    create function sim.now() returns timestamptz language sql stable
      as $$ select to_timestamp(last_value / 1000.0) from sim.clock $$;
    grant usage on schema sim to public;
    grant select on sim.clock to public;
    alter database ${name} set search_path = sim, pg_catalog, public;
    alter database ${name} set plan_cache_mode = force_generic_plan`);
}

type Furnishing = { db: Database; random: Random; keyRing: KeyRing; receivers: ReturnType<typeof createReceivers> };

/** The bakery's amounts have six decimals; the tailor's six, four or three, depending on its id; the kiosk's have no tails. */
function policyOf({ id, name }: Shop): Policy {
  const policies = ['tail', 'tail-4', 'tail-3'] as const;
  if (name === 'kiosk') return 'exact';
  return name === 'bakery' ? 'tail' : (policies[Number.parseInt(id.slice(-2), 16) % policies.length] ?? 'tail');
}

/** Creates shops with their keys, addresses and endpoints, and the secrets that must never be visible. */
async function furnish({ db, random, keyRing, receivers }: Furnishing, names: readonly string[]) {
  const shops: Shop[] = [];
  const addressesOf = new Map<string, Candidate[]>();
  const canaries: string[] = ['secret-path-canary', 'node-key-canary'];
  const uuid = () => uuidV7(START_MS, random.bytes(10));
  for (const name of names) {
    const shop: Shop = { id: uuid(), keyId: uuid(), name };
    await insertProject(db, {
      id: shop.id,
      name,
      network: NETWORK,
      policy: policyOf(shop),
      invoiceLifetimeMs: INVOICE_LIFETIME_MS,
      maxUnpaid: null,
      maxUnpaidPerMinute: null,
    });
    const apiKey = formatApiKey(NETWORK, shop.keyId, random.bytes(32));
    const secretSha256 = createHash('sha256').update(apiKey).digest();
    await insertApiKey(db, {
      id: shop.keyId,
      projectId: shop.id,
      name,
      secretSha256,
      allowedCidrs: null,
      expiresAt: null,
    });
    const candidates = Array.from({ length: 2 }, () => newCandidate(random));
    for (const candidate of candidates) await insertAddress(db, { id: uuid(), projectId: shop.id, ...candidate });
    addressesOf.set(shop.id, candidates);
    for (let index = 0; index < 1 + random.below(2); index += 1) {
      const endpoint = {
        id: uuid(),
        projectId: shop.id,
        url: `http://${name}-${index}.test/hook`,
        secret: createWebhookSecret(random.bytes),
      };
      await addWebhookEndpoint({ db, keyRing, now: unixMs(START_MS), random: random.bytes }, endpoint);
      receivers.receivers.push({
        endpointId: endpoint.id,
        projectId: shop.id,
        url: endpoint.url,
        temper: 'well',
        secrets: [endpoint.secret],
      });
      canaries.push(endpoint.secret);
    }
    canaries.push(apiKey);
    shops.push(shop);
  }
  return { shops, addressesOf, canaries };
}
