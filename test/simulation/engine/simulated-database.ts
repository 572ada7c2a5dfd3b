import { AppError } from '../../../src/core/domain/errors.ts';
import type { Database, Sql } from '../../../src/core/store/db/database.ts';
import type { Shape, Statement } from '../../../src/core/store/db/statement.ts';
import { DELIVERIES_CHANNEL } from '../../../src/core/store/outbox/events.ts';
import { POOL_SIZE, type Session } from './sessions.ts';
import type { Settling } from './settling.ts';
import type { SimulatedProcess } from './simulated-process.ts';
import type { VirtualTime } from './virtual-time.ts';

/**
 * A fault at a statement. `crash`: the process dies before it. `crash-after`: it dies before it gets the answer. `cut`: its connections
 * break before it. `lost`: it's executed and the answer doesn't arrive. The others are PostgreSQL's own errors.
 */
export type Strike = 'crash' | 'crash-after' | 'cut' | 'lost' | 'serialization' | 'lock-timeout' | 'outage';

/** A planted bug, which the test must find. */
export type Plant = {
  /** Replaces a statement's text, by its name. */
  rewrite?(name: string, text: string): string;
  /** Whether to skip a statement, so that it changes nothing and returns no rows. */
  skips?(name: string): boolean;
};

export type SimulatedDatabaseOptions = {
  process: SimulatedProcess;
  time: VirtualTime;
  settling: Settling;
  /** Its connections, until it dies. */
  session: Session;
  /** How long a statement takes to begin, in simulated time. */
  latencyMs(name: string): number;
  strike(process: SimulatedProcess, name: string): Strike | null;
  /** Sets the database's clock to the simulated time. */
  setClock(): Promise<void>;
  /** Called after a commit that notifies dispatchers. */
  onNotification(): void;
  listen(process: SimulatedProcess, onNotify: (payload: string | null) => void): void;
  /** Called once the process is dead and its open transactions are rolled back. */
  onQuiet(): void;
  plant: Plant;
};

/** The SQLSTATEs of a serialization failure, and of a lock that wasn't available. */
const CODES = { serialization: '40001', 'lock-timeout': '55P03' } as const;

/** Wraps the real database for a simulated process, with simulated time and faults. */
export function createSimulatedDatabase(options: SimulatedDatabaseOptions): Database {
  const { process, time, settling, latencyMs, strike, plant } = options;
  const { real, name: session } = options.session;
  const uses = { statements: 0, transactions: 0 };
  let isOver = false;
  const giveBack = () => {
    if (process.isAlive || isOver || uses.statements + uses.transactions > 0) return;
    isOver = true;
    options.onQuiet();
  };
  const leave = (use: keyof typeof uses) => {
    uses[use] -= 1;
    giveBack();
  };
  const death = new Promise<never>((_, reject) => {
    process.onDeath(() => {
      reject(new Error(`${process.name} is dead`));
      giveBack();
      if (uses.statements === 0) return;
      // It may be waiting for a lock.
      const end = settling.begin();
      void settling.terminate(session).finally(end);
    });
  });
  death.catch(() => undefined);
  /** Runs real work, for which simulated time waits. */
  const really = async <Result>(work: () => Promise<Result>, readsClock = false): Promise<Result> => {
    const end = settling.begin();
    uses.statements += 1;
    try {
      if (readsClock) await options.setClock();
      return await time.outside(work);
    } finally {
      end();
      leave('statements');
    }
  };
  const seats = createSeats(POOL_SIZE);
  const runOn =
    (sql: Sql, isAlone: boolean): Sql['run'] =>
    async (statement, parameters, leftOut) => {
      const { name } = statement;
      await process.arrive(latencyMs(name));
      const struck = strike(process, name);
      await strikeBefore(sql, name, struck);
      if (plant.skips?.(name) === true) return [];
      const rows = await really(() => sql.run(planted(statement, plant), parameters, leftOut), readsClock(statement));
      if (isAlone && notifies(statement)) options.onNotification();
      await strikeAfter(name, struck);
      return rows;
    };
  const strikeBefore = async (sql: Sql, name: string, struck: Strike | null): Promise<void> => {
    if (struck === null) return;
    if (struck === 'crash') {
      process.kill();
      await never();
    }
    if (struck === 'outage') throw lost(name, 'is away');
    if (struck === 'cut') await really(() => settling.terminate(session));
    if (struck === 'serialization' || struck === 'lock-timeout') {
      const text = `do $$ begin raise exception 'simulated' using errcode = '${CODES[struck]}'; end $$`;
      await really(() => sql.script(text));
    }
  };
  const strikeAfter = async (name: string, struck: Strike | null): Promise<void> => {
    if (struck === 'crash-after') {
      process.kill();
      await never();
    }
    if (struck !== 'lost') return;
    await really(() => settling.terminate(session));
    throw lost(name, 'did not answer');
  };
  /** `work` runs in simulated time, everything around it is real. Rolled back when the process dies, as in PostgreSQL. */
  const transact = async <Result>(
    kind: 'transaction' | 'snapshot',
    work: (tx: Sql) => Promise<Result>,
  ): Promise<Result> => {
    let end = settling.begin();
    uses.transactions += 1;
    let struck: Strike | null = null;
    let hasNotified = false;
    const over = () => {
      end();
      leave('transactions');
    };
    const result = await time
      .outside(() =>
        real[kind](async (tx) => {
          end();
          try {
            const living = process.run(async () => {
              const inside: Sql['run'] = (statement, parameters, leftOut) => {
                hasNotified ||= notifies(statement);
                return runOn(tx, false)(statement, parameters, leftOut);
              };
              const done = await work({
                run: inside,
                script: (text) => really(() => tx.script(text)),
                sealer: tx.sealer,
              });
              await process.arrive(latencyMs('commit'));
              struck = strike(process, 'commit');
              await strikeBefore(tx, 'commit', struck);
              return done;
            });
            return await Promise.race([death, living]);
          } finally {
            end = settling.begin();
          }
        }),
      )
      .catch(async (error: unknown) => {
        over();
        if (!process.isAlive) await never();
        throw error;
      });
    over();
    if (hasNotified) options.onNotification();
    await strikeAfter('commit', struck);
    return result;
  };
  const begin = <Result>(kind: 'transaction' | 'snapshot', work: (tx: Sql) => Promise<Result>): Promise<Result> =>
    seats(async () => {
      await process.arrive(latencyMs('begin'));
      await strikeBefore(real, 'begin', strike(process, 'begin'));
      return transact(kind, work);
    });
  return {
    run: (statement, parameters, leftOut) => seats(() => runOn(real, true)(statement, parameters, leftOut)),
    script: (text) => really(() => real.script(text)),
    sealer: real.sealer,
    refuseNew: real.refuseNew,
    refuseRule: real.refuseRule,
    transaction: (work) => begin('transaction', work),
    snapshot: (work) => begin('snapshot', work),
    session: real.session,
    listen: (_, onNotify) => options.listen(process, onNotify),
    stats: real.stats,
    // The connections outlive the process.
    close: async () => undefined,
  };
}

function planted<Fields extends Shape>(statement: Statement<Fields>, plant: Plant): Statement<Fields> {
  const text = plant.rewrite?.(statement.name, statement.text) ?? statement.text;
  return text === statement.text ? statement : { ...statement, name: `${statement.name}-planted`, text };
}

/** A statement that writes may read the clock through a column default. */
function readsClock({ text }: Pick<Statement, 'text'>): boolean {
  return text.includes('now()') || !text.startsWith('select');
}

/** Whether it notifies the channel that this world listens to. */
function notifies({ text }: Pick<Statement, 'text'>): boolean {
  return text.includes(DELIVERIES_CHANNEL);
}

function never(): Promise<never> {
  return new Promise(() => undefined);
}

function lost(name: string, what: string): AppError {
  return new AppError('DATABASE_UNAVAILABLE', `the database ${what} (simulated, at ${name})`, { retryable: true });
}

/** Models the pool's connections: without a free one, a request waits in simulated time. */
function createSeats(count: number) {
  let free = count;
  const waiting: (() => void)[] = [];
  return async <Result>(work: () => Promise<Result>): Promise<Result> => {
    if (free === 0) await new Promise<void>((resolve) => void waiting.push(resolve));
    else free -= 1;
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) free += 1;
      else next();
    }
  };
}
