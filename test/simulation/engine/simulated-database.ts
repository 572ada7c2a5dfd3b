import { AppError } from '../../../src/domain/errors.ts';
import { type Connection, type Database, openDatabase, type Sql } from '../../../src/store/database.ts';
import type { Statement } from '../../../src/store/statement.ts';
import type { Settling } from './settling.ts';
import type { SimulatedProcess } from './simulated-process.ts';
import type { VirtualTime } from './virtual-time.ts';

/**
 * What may happen at a statement. `crash`: the process dies before it; `crash-after`: before it hears of the answer. `cut`: its
 * connections break before it; `lost`: it is done and the answer does not arrive. The others are what PostgreSQL answers.
 */
export type Strike = 'crash' | 'crash-after' | 'cut' | 'lost' | 'serialization' | 'lock-timeout' | 'outage';

/** A bug that a test plants, to see that it is found. */
export type Plant = {
  /** Another text for a statement, by its name. */
  rewrite?(name: string, text: string): string;
  /** Whether a statement is left out: it changes nothing and answers no rows. */
  skips?(name: string): boolean;
};

export type SimulatedDatabaseOptions = {
  process: SimulatedProcess;
  time: VirtualTime;
  settling: Settling;
  connection: Connection;
  /** How long a statement takes to begin, in the world's time. */
  latencyMs(name: string): number;
  strike(process: SimulatedProcess, name: string): Strike | null;
  /** Brings the database's clock up to the world's. */
  setClock(): Promise<void>;
  /** Something was committed that tells dispatchers. */
  onNotification(): void;
  listen(process: SimulatedProcess, onNotify: (payload: string | null) => void): void;
  plant: Plant;
};

const POOL_SIZE = 6;
/** SQLSTATEs of a serialization failure and of a lock that was not available. */
const CODES = { serialization: '40001', 'lock-timeout': '55P03' } as const;

/** The real database of a simulated process, in the world's time and with the world's faults. */
export function createSimulatedDatabase(options: SimulatedDatabaseOptions): Database {
  const { process, time, settling, connection, latencyMs, strike, plant } = options;
  const real = time.outside(() =>
    openDatabase({
      connection,
      poolSize: POOL_SIZE,
      applicationName: process.name,
      onError: () => undefined,
    }),
  );
  process.onDeath(() => {
    const end = settling.begin();
    void settling.terminate(process.name).finally(end);
  });
  /** Something real, which time waits for. */
  const really = async <Result>(work: () => Promise<Result>, readsClock = false): Promise<Result> => {
    const end = settling.begin();
    try {
      if (readsClock) await options.setClock();
      return await time.outside(work);
    } finally {
      end();
    }
  };
  const seats = createSeats(POOL_SIZE);
  const runOn =
    (sql: Sql, isAlone: boolean): Sql['run'] =>
    async (statement, parameters) => {
      const { name } = statement;
      await process.arrive(latencyMs(name));
      const struck = strike(process, name);
      await strikeBefore(sql, name, struck);
      if (plant.skips?.(name) === true) return [];
      const rows = await really(() => sql.run(planted(statement, plant), parameters), readsClock(statement));
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
    if (struck === 'cut') await really(() => settling.terminate(process.name));
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
    await really(() => settling.terminate(process.name));
    throw lost(name, 'did not answer');
  };
  /** `work` goes on in the world's time; what stands around it is real. */
  const transact = async <Result>(work: (tx: Sql) => Promise<Result>): Promise<Result> => {
    let end = settling.begin();
    let struck: Strike | null = null;
    let hasNotified = false;
    try {
      const result = await time.outside(() =>
        real.transaction(async (tx) => {
          end();
          try {
            return await process.run(async () => {
              const inside: Sql['run'] = (statement, parameters) => {
                hasNotified ||= notifies(statement);
                return runOn(tx, false)(statement, parameters);
              };
              const done = await work({ run: inside, script: (text) => really(() => tx.script(text)) });
              await process.arrive(latencyMs('commit'));
              struck = strike(process, 'commit');
              await strikeBefore(tx, 'commit', struck);
              return done;
            });
          } finally {
            end = settling.begin();
          }
        }),
      );
      end();
      if (hasNotified) options.onNotification();
      await strikeAfter('commit', struck);
      return result;
    } finally {
      end();
    }
  };
  return {
    run: (statement, parameters) => seats(() => runOn(real, true)(statement, parameters)),
    script: (text) => really(() => real.script(text)),
    transaction: (work) =>
      seats(async () => {
        await process.arrive(latencyMs('begin'));
        await strikeBefore(real, 'begin', strike(process, 'begin'));
        return transact(work);
      }),
    listen: (_, onNotify) => options.listen(process, onNotify),
    stats: real.stats,
    close: () => time.outside(() => real.close()),
  };
}

function planted<Columns extends Statement['columns']>(
  statement: Statement<Columns>,
  plant: Plant,
): Statement<Columns> {
  const text = plant.rewrite?.(statement.name, statement.text) ?? statement.text;
  return text === statement.text ? statement : { ...statement, name: `${statement.name}-planted`, text };
}

/** What writes may do so by a default. */
function readsClock({ text }: Pick<Statement, 'text'>): boolean {
  return text.includes('now()') || !text.startsWith('select');
}

function notifies({ text }: Pick<Statement, 'text'>): boolean {
  return text.includes('notify');
}

function never(): Promise<never> {
  return new Promise(() => undefined);
}

function lost(name: string, what: string): AppError {
  return new AppError('DATABASE_UNAVAILABLE', `the database ${what} (simulated, at ${name})`, { retryable: true });
}

/** As the pool's connections: who finds none free waits, but in the world's time. */
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
