import { isLocalNetwork, isNetwork, type Network } from '../domain/network.ts';
import { type UnixMs, unixMs } from '../domain/time.ts';
import type { Clock } from '../runtime/clock.ts';
import { resolveAlarms } from '../store/chain/alarms.ts';
import type { Sql } from '../store/db/database.ts';
import { answerOf } from '../store/db/rows-of.ts';
import type { HealthProblems } from './health-problems.ts';

/**
 * The clock that decides when invoices are created and expire. `problem()` returns why no invoices may be created with this clock at the
 * moment, or `null`.
 */
export type DeadlineClock = { now(): UnixMs; problem(): string | null };

/**
 * The readings of all clocks at the same moment, in Unix milliseconds. `chain` is the time of the newest verified block, or `null` if no
 * real network is followed. With `isLive`, the chain keeps pace with real time, so its time is at most a few seconds old. Otherwise this
 * time is only a lower bound, because every verified block was made in the past.
 */
type Readings = { process: number; database: number; chain: { time: number; isLive: boolean } | null };

/**
 * `byMs` is how far the wrong clock is ahead, or behind if negative. For `both`, it refers to the clock that is less wrong. `unclear` means
 * that Quittance can't decide which clock is wrong. In that case, the values are how far each clock is ahead of the chain. Without a chain,
 * `process` is how far the process is ahead of the database, and `database` is 0.
 */
export type Verdict =
  | { kind: 'right' }
  | { kind: 'process' | 'database' | 'both'; byMs: number }
  | { kind: 'unclear'; process: number; database: number };

/** Synchronised clocks differ by milliseconds, and a block is examined seconds after it was made. */
export const MOST_MS = 30_000;

/** Decides which clock is wrong. A clock is wrong if the two others contradict it, or if it's behind a block that already exists. */
export function judgeClocks({ process, database, chain }: Readings): Verdict {
  const apart = process - database;
  const areApart = Math.abs(apart) >= MOST_MS;
  if (chain === null) return areApart ? { kind: 'unclear', process: apart, database: 0 } : { kind: 'right' };
  const [ofProcess, ofDatabase] = [process - chain.time, database - chain.time];
  const isBehind = { process: ofProcess <= -MOST_MS, database: ofDatabase <= -MOST_MS };
  if (isBehind.process && (isBehind.database || !areApart)) {
    return { kind: 'both', byMs: Math.max(ofProcess, ofDatabase) };
  }
  if (!areApart) {
    if (isBehind.database) return { kind: 'both', byMs: ofDatabase };
    const isAhead = chain.isLive && Math.min(ofProcess, ofDatabase) >= MOST_MS;
    return isAhead ? { kind: 'unclear', process: ofProcess, database: ofDatabase } : { kind: 'right' };
  }
  if (isBehind.process) return { kind: 'process', byMs: apart };
  if (isBehind.database) return { kind: 'database', byMs: -apart };
  const nearest = Math.min(Math.abs(ofProcess), Math.abs(ofDatabase));
  if (!chain.isLive || nearest >= MOST_MS) return { kind: 'unclear', process: apart, database: 0 };
  return Math.abs(ofProcess) > Math.abs(ofDatabase)
    ? { kind: 'process', byMs: apart }
    : { kind: 'database', byMs: -apart };
}

const LOOK_MS = 5000;
/** If a response takes longer than this, it's unclear when the database read its clock. */
const MOST_WAIT_MS = 5000;
/** If the clock moved this much more or less than the time that passed between two checks, someone has set it. */
const JUMP_MS = 2000;

const KIND = 'clock-wrong';

export type ClockWatch = {
  /** This process's clock. Quittance corrects it as long as two other clocks agree that it's wrong. */
  clock: Clock;
  /** The clock that decides when deliveries become due. All processes must use the same one, so it's the database's. */
  databaseClock: Clock;
  /** The clock that decides when invoices are created and expire. It's the database's, unless a verified block proves that it's behind. */
  deadlineClock: DeadlineClock;
  /**
   * Returns the earliest time that any of the clocks shows. Deletions and irreversible steps use it. Until the first check, no time counts
   * as past.
   */
  certainNow(): UnixMs;
  /** Compares the clocks. Call it every few seconds. */
  look(db: Sql): Promise<void>;
};

type Deps = {
  clock: Clock;
  troubles: HealthProblems;
  networks: readonly Network[];
  /** Identifies this machine to the operator. */
  host: string;
  monotonicMs?(): number;
};

/** The current correction: its difference from the process's own clock, and the source that it's based on. */
type Correction = { byMs: number; from: 'database' | 'chain' } | null;

/**
 * Compares the process's clock with the database's and the chain's clocks. Local networks aren't compared, because users can set their
 * time.
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
        // Resolves alarms that are left over from before a restart. Otherwise these alarms would stay open for minutes although the clocks
        // are right.
        for (const network of networks)
          for (const each of [host, 'database']) await resolveAlarms(db, network, KIND, each);
        hasClosed = true;
      }
      const detail = describeClocks(verdict, correction !== null);
      // Several machines may run processes, so the operator must know which one it is.
      const isOurs = verdict.kind !== 'database';
      const subject = isOurs ? host : 'database';
      const on = isOurs ? `on ${host}, ` : '';
      troubles.set(
        KIND,
        detail === null ? [] : [{ kind: KIND, network: null, subject, detail: `${on}${detail}`, isReady: true }],
      );
    },
  };
}

type Shown = { process: number; database: number; chain: ChainClock | null };

/**
 * Returns the correction for a verdict. If the process is behind the chain, only recorded blocks count, because most producers have built
 * on them. A single producer could create a newer block whose time is too late.
 */
function correct(former: Correction, { kind }: Verdict, { process, database, chain }: Shown): Correction {
  if (kind === 'process') return { byMs: database - process, from: 'database' };
  if (kind === 'both') {
    const byMs = (chain?.solidTime ?? 0) - process;
    // If the chain is no longer visible, its last block gets older, but the clock is still as wrong as before.
    if (byMs >= MOST_MS || former?.from === 'chain') return { byMs: Math.max(byMs, former?.byMs ?? 0), from: 'chain' };
    return null;
  }
  const isOver = kind === 'right' && (former?.from === 'database' || chain?.isLive === true);
  return isOver ? null : former;
}

/** `time` is the current time according to the chain if the chain is live, otherwise the time of its newest examined block. */
type ChainClock = { time: number; isLive: boolean; headTime: UnixMs; solidTime: UnixMs };

type Chain = { network: Network; headTime: UnixMs; solidTime: UnixMs; isCatchingUp: boolean };
type Sight = { headTime: number; ms: number };

/** The time needed to determine whether a chain advances as fast as real time. */
const SPAN_MS = 30_000;
const KEPT_MS = 60_000;
/** Blocks are produced every 3 s, and the clocks are checked every 5 s. */
const MOST_DRIFT_MS = 10_000;

/**
 * Observes how fast the chains' times advance. They advance faster than real time while a watcher is catching up, and they stop while it
 * sees nothing. If a chain advances as fast as real time, its newest block is current, unless all nodes replay old blocks at that speed.
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
    // Adds the time that has passed since the block was examined.
    const sinceMs = ms - (seen.find((sight) => sight.headTime === headTime)?.ms ?? ms);
    return { time: isLive ? headTime + sinceMs : headTime, isLive, headTime, solidTime };
  };
  return {
    note: (chains) => {
      const noted = chains.map(noteOne);
      // Every verified block was made in the past, so the latest of several times is the closest to the current time.
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

const REMEDY = "Correct the machines' clocks, and keep them synchronised, for example with chrony";

/** Describes which clock is wrong and by how much. Returns `null` if all clocks are right. */
function describeClocks(verdict: Verdict, isCorrected: boolean): string | null {
  switch (verdict.kind) {
    case 'right':
      return null;
    case 'process':
      return `this process's clock is ${off(verdict.byMs)}: the database and the chain agree. Until the clock is corrected, Quittance uses database and chain time. ${REMEDY}`;
    case 'database':
      return `the database clock is ${off(verdict.byMs)}: this process and the chain agree. ${REMEDY}`;
    case 'both':
      return `the clocks of this process and the database are at least ${off(verdict.byMs)}: a verified block is newer. ${isCorrected ? 'Until they are corrected, Quittance uses chain time. ' : ''}${REMEDY}`;
    case 'unclear':
      return `${describeUnclear(verdict)}. Until this is fixed, Quittance deletes data only if it is old enough according to every clock. ${REMEDY}`;
  }
}

function describeUnclear({ process, database }: Extract<Verdict, { kind: 'unclear' }>): string {
  if (database === 0) {
    return `the clocks of this process and the database are ${duration(Math.abs(process))} apart. Quittance cannot determine which clock is wrong, because no chain that advances at normal speed agrees with either`;
  }
  return `the clocks of this process and the database are ${off(Math.min(process, database))} compared with the chain, which advances at normal speed. Quittance cannot determine whether the clocks are wrong or whether all nodes return old blocks`;
}

function off(byMs: number): string {
  return `${duration(Math.abs(byMs))} ${byMs < 0 ? 'behind' : 'ahead'}`;
}

/** Formats a duration in the largest unit that gives a value of at least two: `60 minutes`. */
function duration(ms: number): string {
  const [, unitMs, name] = UNITS.find(([from]) => ms >= from) ?? [0, 1000, 's'];
  return `${Math.round(ms / unitMs)} ${name}`;
}

/** With a larger error, a five-minute invoice's expiry would be off by more than a fifth. */
const TOLERANCE_MS = 60_000;

/**
 * Returns a clock that shows the database's time. It's read periodically, and advanced by the monotonic clock in between, so it doesn't
 * change if someone sets this process's clock. The monotonic clock stops while the machine sleeps, but the database's clock doesn't, so the
 * two then differ until the next reading.
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
    /** Records that the database's clock showed `database` when the monotonic clock showed `atMs`. */
    read: (database, atMs) => {
      known = { database, ms: atMs };
    },
    problem: () => {
      if (known === null) return 'This process has not read the database clock yet.';
      const apartMs = clock.now() - now();
      if (Math.abs(apartMs) <= TOLERANCE_MS) return null;
      const side = apartMs < 0 ? 'behind' : 'ahead of';
      return `This process's clock is ${duration(Math.abs(apartMs))} ${side} the database clock, so an invoice's expiry could be wrong. The operator must correct the clocks of both machines and keep them synchronised, with chrony or systemd-timesyncd.`;
    },
  };
}

/**
 * Returns the database's time, and for each followed network the times of the newest examined and the newest recorded block. `isCatchingUp`
 * is the state that the watcher last reported.
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
