import { type DeadlineClock, judgeClocks, MOST_MS, type Verdict } from '../domain/clocks.ts';
import { isLocalNetwork, isNetwork, type Network } from '../domain/network.ts';
import { type UnixMs, unixMs } from '../domain/time.ts';
import type { Clock } from '../runtime/clock.ts';
import { resolveAlarms } from '../store/chain/alarms.ts';
import type { Sql } from '../store/db/database.ts';
import { answerOf } from '../store/db/rows-of.ts';
import type { HealthProblems } from './health-problems.ts';

const LOOK_MS = 5000;
/** An answer that took longer does not say when the database read its clock. */
const MOST_WAIT_MS = 5000;
/** Between two looks the clock went on by so much more or less than time did: somebody set it. */
const JUMP_MS = 2000;

const KIND = 'clock-wrong';

export type ClockWatch = {
  /** The process's clock, put right while two others agree that it is wrong. */
  clock: Clock;
  /** By which deliveries are due, because processes share them. */
  databaseClock: Clock;
  /** By which invoices are made and expire: the database's, unless a verified block proves that one behind. */
  deadlineClock: DeadlineClock;
  /** No later than any of the clocks shows: for what deletes, and what ends for good. Nothing has passed before the first look. */
  certainNow(): UnixMs;
  /** Compares the clocks, every few seconds. */
  look(db: Sql): Promise<void>;
};

type Deps = {
  clock: Clock;
  troubles: HealthProblems;
  networks: readonly Network[];
  /** Names the machine to the operator. */
  host: string;
  monotonicMs?(): number;
};

/** What it goes by: how far from its own clock, and whose word that is. */
type Correction = { byMs: number; from: 'database' | 'chain' } | null;

/**
 * Compares the process's clock with those of the database and of the chain. The time of a local network is its user's, and is not compared.
 */
export function createClockWatch({
  clock,
  troubles,
  networks,
  host,
  monotonicMs = () => performance.now(),
}: Deps): ClockWatch {
  const chain = createChainClock(monotonicMs);
  const followed = networks.filter((network) => !isLocalNetwork(network));
  let correction: Correction = null;
  let last: { process: number; ms: number } | null = null;
  let hasClosed = false;
  let known: { database: number; chain: number | null } | null = null;
  const databaseClock = createDatabaseClock(clock, monotonicMs);
  const now = () => Math.round(clock.now() + (correction?.byMs ?? 0));
  return {
    clock: { now },
    databaseClock,
    deadlineClock: {
      now: () => (correction?.from === 'chain' ? unixMs(now()) : databaseClock.now()),
      problem: databaseClock.problem,
    },
    certainNow: () =>
      unixMs(known === null ? 0 : Math.min(now(), known.database, known.chain ?? Number.POSITIVE_INFINITY)),
    look: async (db) => {
      const startMs = monotonicMs();
      if (last !== null && startMs - last.ms < LOOK_MS) return;
      const { databaseAt: database, chains } = await readClocks(db, followed);
      const ms = monotonicMs();
      if (database === null || ms - startMs > MOST_WAIT_MS) return;
      databaseClock.read(database, (startMs + ms) / 2);
      const process = clock.now();
      const hasJumped = last !== null && Math.abs(process - last.process - (ms - last.ms)) > JUMP_MS;
      last = { process, ms };
      const shown = chain.note(chains);
      known = { database, chain: shown?.headTime ?? null };
      const verdict = judgeClocks({ process, database, chain: shown });
      correction = correct(hasJumped ? null : correction, verdict, { process, database, chain: shown });
      if (!hasClosed && verdict.kind === 'right') {
        // What this process, or the one before it, raised before its end: with the clocks right nothing else would close it for minutes.
        for (const network of networks)
          for (const each of [host, 'database']) await resolveAlarms(db, network, KIND, each);
        hasClosed = true;
      }
      const detail = describeClocks(verdict, correction !== null);
      const subject = verdict.kind === 'database' ? 'database' : host;
      troubles.set(KIND, detail === null ? [] : [{ kind: KIND, network: null, subject, detail, isReady: true }]);
    },
  };
}

type Shown = { process: number; database: number; chain: ChainClock | null };

/** Behind the chain it goes by recorded blocks, which most producers built on: a single one could make a block of later. */
function correct(former: Correction, { kind }: Verdict, { process, database, chain }: Shown): Correction {
  if (kind === 'process') return { byMs: database - process, from: 'database' };
  if (kind === 'both') {
    const byMs = (chain?.solidTime ?? 0) - process;
    // Where the chain is not seen for a while, its last block gets older, and the clock stays as wrong as it was.
    if (byMs >= MOST_MS || former?.from === 'chain') return { byMs: Math.max(byMs, former?.byMs ?? 0), from: 'chain' };
    return null;
  }
  const isOver = kind === 'right' && (former?.from === 'database' || chain?.isLive === true);
  return isOver ? null : former;
}

/** `time`: that of now by the chain if it is live, else of its newest examined block. */
type ChainClock = { time: number; isLive: boolean; headTime: UnixMs; solidTime: UnixMs };

type Chain = { network: Network; headTime: UnixMs; solidTime: UnixMs; isCatchingUp: boolean };
type Sight = { headTime: number; ms: number };

/** Whether a chain goes on as time does shows within so long. */
const SPAN_MS = 30_000;
const KEPT_MS = 60_000;
/** Blocks come every 3 s, and are looked for every 5. */
const MOST_DRIFT_MS = 10_000;

/**
 * Watches how the times of chains go on. While a watcher catches up they go faster than time, and where it sees nothing they stand; when a
 * chain goes on as time does, its newest block is one of now, unless all nodes show one of before at its own pace.
 */
function createChainClock(monotonicMs: () => number): { note(chains: readonly Chain[]): ChainClock | null } {
  const sights = new Map<Network, Sight[]>();
  const noteOne = ({ network, headTime, solidTime, isCatchingUp }: Chain): ChainClock => {
    const ms = monotonicMs();
    const before = isCatchingUp ? [] : (sights.get(network) ?? []);
    const seen = [...before.filter((sight) => ms - sight.ms <= KEPT_MS), { headTime, ms }];
    sights.set(network, seen);
    const first = seen[0] as Sight;
    const isLive = ms - first.ms >= SPAN_MS && Math.abs(headTime - first.headTime - (ms - first.ms)) <= MOST_DRIFT_MS;
    // Since it was examined time went on.
    const sinceMs = ms - (seen.find((sight) => sight.headTime === headTime)?.ms ?? ms);
    return { time: isLive ? headTime + sinceMs : headTime, isLive, headTime, solidTime };
  };
  return {
    note: (chains) => {
      const noted = chains.map(noteOne);
      // What is verified was made before: the latest of several is the nearest to now.
      return noted.reduce<ChainClock | null>(
        (best, each) => (best === null || isBetter(each, best) ? each : best),
        null,
      );
    },
  };
}

function isBetter(one: ChainClock, other: ChainClock): boolean {
  return one.isLive === other.isLive ? one.time > other.time : one.isLive;
}

const UNITS = [
  [172_800_000, 86_400_000, 'days'],
  [7_200_000, 3_600_000, 'hours'],
  [120_000, 60_000, 'minutes'],
] as const;

const REMEDY = 'Set the clocks of the machines, and keep them synchronized, for example with chrony';

/** Which clock is wrong and by how much, for everybody to read; `null` where none is. */
function describeClocks(verdict: Verdict, isCorrected: boolean): string | null {
  switch (verdict.kind) {
    case 'right':
      return null;
    case 'process':
      return `the clock of this process is ${off(verdict.byMs)}: the database and the chain agree. Until it is fixed, Quittance uses the time of the database and the chain. ${REMEDY}`;
    case 'database':
      return `the clock of the database is ${off(verdict.byMs)}: this process and the chain agree. ${REMEDY}`;
    case 'both':
      return `the clocks of this process and of the database are at least ${off(verdict.byMs)}, because a verified block is newer. ${isCorrected ? 'Until they are fixed, Quittance uses the time of the chain. ' : ''}${REMEDY}`;
    case 'unclear':
      return `${describeUnclear(verdict)}. Until this is fixed, Quittance deletes data only when it is old enough by all clocks. ${REMEDY}`;
  }
}

function describeUnclear({ process, database }: Extract<Verdict, { kind: 'unclear' }>): string {
  if (database === 0) {
    return `the clocks of this process and of the database are ${duration(Math.abs(process))} apart. Quittance cannot determine which one is wrong, because no chain that advances at normal speed agrees with either`;
  }
  return `the clocks of this process and of the database are ${off(Math.min(process, database))} compared with the chain, which advances at normal speed. Quittance cannot determine whether the clocks are wrong or all nodes show old blocks`;
}

function off(byMs: number): string {
  return `${duration(Math.abs(byMs))} ${byMs < 0 ? 'behind' : 'ahead'}`;
}

/** In the largest unit of which it has two: `60 minutes`. */
function duration(ms: number): string {
  const [, unitMs, name] = UNITS.find(([from]) => ms >= from) ?? [0, 1000, 's'];
  return `${Math.round(ms / unitMs)} ${name}`;
}

/** From here on an invoice that lives for five minutes would be wrong by a fifth of them. */
const TOLERANCE_MS = 60_000;

/**
 * The database's clock, which is read now and then and goes on in between by the monotonic clock, so that nobody who sets the clock of this
 * process moves it. A machine that sleeps stops the monotonic clock, but not its own: then the two differ until the next reading.
 */
export function createDatabaseClock(
  clock: Clock,
  monotonicMs: () => number,
): DeadlineClock & { read(database: number, atMs: number): void } {
  let known: { database: number; ms: number } | null = null;
  const now = (): UnixMs =>
    unixMs(Math.round(known === null ? clock.now() : known.database + (monotonicMs() - known.ms)));
  return {
    now,
    /** It showed `database` when the monotonic clock showed `atMs`. */
    read: (database, atMs) => {
      known = { database, ms: atMs };
    },
    problem: () => {
      if (known === null) return 'This process has not read the clock of the database yet.';
      const apartMs = clock.now() - now();
      if (Math.abs(apartMs) <= TOLERANCE_MS) return null;
      const side = apartMs < 0 ? 'behind' : 'ahead of';
      return `The clock of this process is ${duration(Math.abs(apartMs))} ${side} that of the database, so the expiry of an invoice could be wrong. The operator must set the clocks of both machines and keep them synchronized, with chrony or systemd-timesyncd.`;
    },
  };
}

/**
 * What the database's clock shows, and the times of the newest examined and of the newest recorded block of networks that were followed.
 * `isCatchingUp`: the watcher said so last.
 */
const readClocks = answerOf(
  'clocks-read',
  {
    databaseAt: 'timestamptz',
    network: 'text?',
    headTime: 'timestamptz?',
    solidTime: 'timestamptz?',
    isCatchingUp: 'bool?',
  },
  `select clock_timestamp() as database_at, c.network, coalesce(h.block_time, c.solid_time) as head_time, c.solid_time,
     coalesce(jsonb_typeof(s.status->'catchUp') = 'object', false) as is_catching_up
   from (select) one
   left join chain_cursors c on c.network = any($1::text[])
   left join lateral (select block_time from head_blocks where network = c.network order by number desc limit 1) h on true
   left join chain_status s on s.network = c.network`,
  (networks: readonly Network[]) => [[...networks]],
  (rows) => ({
    databaseAt: rows[0]?.databaseAt ?? null,
    chains: rows.flatMap(({ network, headTime, solidTime, isCatchingUp }) =>
      network === null || !isNetwork(network) || headTime === null || solidTime === null
        ? []
        : [{ network, headTime, solidTime, isCatchingUp: isCatchingUp === true }],
    ),
  }),
);

export const readDatabaseClock = answerOf(
  'doctor-clock',
  { at: 'timestamptz' },
  'select clock_timestamp() as at',
  () => [],
  ([row]) => row?.at ?? 0,
);
