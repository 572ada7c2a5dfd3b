import pg from 'pg';
import { AppError } from '../../domain/errors.ts';
import { shortageBehind } from '../../domain/shortage.ts';
import { reasonOf } from '../../runtime/reason-of.ts';
import { type AddressChecks, lacksKey, type OwnRule, readAddresses } from './address-column.ts';
import { isSealParameter, type LeftOut, readSeals, type Sealer, type SealJudge } from './seal.ts';
import { type Admission, createAdmission } from './server-admission.ts';
import type { Parameter, Row, Shape, Statement } from './statement.ts';
import { rethrow } from './unavailable.ts';

/** Anything statements can run on: the pool (each in its own transaction) or one open transaction. */
export type Sql = {
  /** A row that fails its check fails the statement; with `leftOut` it is left out of the answer and added there. */
  run<F extends Shape>(statement: Statement<F>, values: readonly Parameter[], leftOut?: LeftOut[]): Promise<Row<F>[]>;
  /** Runs plain SQL text with no parameters, many statements at once; for migrations only, which may take up to an hour. */
  script(text: string): Promise<void>;
  /** What rows are sealed with; `null` where none are. `mayCreate`: a key to seal with, which is the default. */
  sealer(mayCreate?: boolean): Promise<Sealer | null>;
};

/** One connection, on which transactions follow one another. */
export type Session = Sql & Pick<Database, 'transaction'>;

export type Database = Sql & {
  /** Runs `work` in one transaction. A throw rolls back and passes on. No network call may stand inside. */
  transaction<Result>(work: (tx: Sql) => Promise<Result>): Promise<Result>;
  /** The same for reading alone: every statement sees what was committed when the first one began, so that their answers fit together. */
  snapshot<Result>(work: (tx: Sql) => Promise<Result>): Promise<Result>;
  /** Runs `work` on a connection beside the pool, with which locks and settings of the session end. */
  session<Result>(work: (session: Session) => Promise<Result>): Promise<Result>;
  /** Why no invoice may be made under these settings of a project, in words; `null`: it may. */
  refuseRule(rule: OwnRule): string | null;
  /**
   * Calls `onNotify` with the payload of each notification on a channel, and with `null` once after each (re)connection: notifications in
   * the meantime are lost. Ends with `close`.
   */
  listen(channel: string, onNotify: (payload: string | null) => void): void;
  stats(): { total: number; idle: number; waiting: number };
  close(): Promise<void>;
};

export type Connection = string | { host: string; port: number; user: string; password: string; database: string };

type DatabaseOptions = {
  connection: Connection;
  /** Connections of this process, 1 … 100. */
  poolSize: number;
  applicationName: string;
  /** The pools of a process have it in common; one of its own when absent. */
  admission?: Admission;
  /** Called when an idle connection breaks; queries report their own errors. */
  onError(error: Error): void;
  /** What is done about the addresses that statements read; one that is damaged fails its statement in any case. */
  addressChecks?: AddressChecks;
  /** Seals what is written, and examines what is read; absent: neither. */
  seals?: Seals;
  /** Hears each time that the database refuses a statement because it is short of something: disk, memory, connections. */
  onShortage?(what: string): void;
};

/** The seals of a process: `open` finds the keys when they are needed first; `null` where there are none. `mayCreate`: to seal with. */
export type Seals = { judge: SealJudge; open(sql: Sql, mayCreate: boolean): Promise<Sealer | null> };

type Watch = Pick<DatabaseOptions, 'addressChecks' | 'seals' | 'onShortage' | 'admission'>;

/** How long a request waits for a free connection before it answers 503: shorter than any client's patience. */
export const CONNECT_TIMEOUT_MS = 5000;
/** A statement that takes longer is broken or blocked; the longest of ours take milliseconds. */
const STATEMENT_TIMEOUT_MS = 20_000;
/**
 * No network call stands inside a transaction, so one whose process says nothing for so long belongs to a process that is paused or cut
 * off, and its locks keep everybody else from their work: a standby from the lease of a watcher, above all. Shorter than that lease.
 */
const IDLE_IN_TRANSACTION_MS = 5000;
/** Building an index on a large ledger takes minutes. On the server, the statement's own setting bounds it. */
const SCRIPT_TIMEOUT_MS = 3_600_000;
/** A connection that listens says nothing by itself. Without this, it would notice after two hours (Linux) that the server vanished. */
const KEEP_ALIVE_MS = 10_000;

const INT8 = 20;
const INT8_ARRAY = 1016;
const NUMERIC = 1700;
const TIMESTAMPTZ = 1184;

const readTimestamp = pg.types.getTypeParser(TIMESTAMPTZ) as (text: string) => Date | number;
/** The last moment that a `Date` can be. */
const LAST_MS = 8_640_000_000_000_000;

/** `infinity`, and what is beyond the years of `Date`, is its last moment: somebody wrote it, and no statement must fail by it. */
function readTime(text: string): number {
  // As nearly all are written, and read in a tenth of the time: a page may have thousands.
  if (text[4] === '-' && text.endsWith('+00')) return Date.parse(`${text.slice(0, 10)}T${text.slice(11, -3)}Z`);
  const time = Number(readTimestamp(text));
  return Number.isNaN(time) ? LAST_MS : Math.max(-LAST_MS, Math.min(time, LAST_MS));
}

/** The one place where PostgreSQL's text becomes our types: int8 and numeric → bigint, timestamptz → Unix milliseconds. */
const parsers = new Map<number, (text: string) => unknown>([
  [INT8, BigInt],
  [NUMERIC, BigInt],
  [INT8_ARRAY, (text) => (text === '{}' ? [] : text.slice(1, -1).split(',').map(BigInt))],
  [TIMESTAMPTZ, readTime],
]);

export const types: pg.CustomTypesConfig = {
  getTypeParser: (oid, format) =>
    (format === 'text' || format === undefined ? parsers.get(oid) : undefined) ?? pg.types.getTypeParser(oid, format),
};

/** Opens a pool. It connects lazily and reconnects by itself; errors of a lost database are `DATABASE_UNAVAILABLE`. */
export function openDatabase(options: DatabaseOptions): Database {
  const clientConfig: pg.ClientConfig = {
    ...(typeof options.connection === 'string' ? { connectionString: options.connection } : options.connection),
    application_name: options.applicationName,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    statement_timeout: STATEMENT_TIMEOUT_MS,
    query_timeout: STATEMENT_TIMEOUT_MS + 5000,
    lock_timeout: STATEMENT_TIMEOUT_MS / 2,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    types,
  };
  const admission = options.admission ?? createAdmission(CONNECT_TIMEOUT_MS);
  const pool = new pg.Pool({
    ...clientConfig,
    max: options.poolSize,
    idleTimeoutMillis: 30_000,
    onConnect: admission.admit,
  });
  pool.on('error', options.onError);
  // The pool listens only while a connection is idle, and an error event without a listener would end the process. In use, the statement
  // under way or the next one reports the loss; one that is being closed may still be told that the server ends.
  pool.on('connect', (client) => client.on('error', ignoreLoss));
  const listeners: (() => Promise<void>)[] = [];
  return {
    ...sqlOn(pool, { ...options, admission }),
    refuseRule: (rule) => options.addressChecks?.refuseRule?.(rule) ?? null,
    transaction: (work) => inTransaction(pool, WRITING, work, options),
    snapshot: (work) => inTransaction(pool, READING, work, options),
    session: (work) => inSession(new pg.Client(clientConfig), admission, work, options),
    listen: (channel, onNotify) => {
      listeners.push(keepListening(clientConfig, channel, onNotify, options.onError));
    },
    stats: () => ({ total: pool.totalCount, idle: pool.idleCount, waiting: pool.waitingCount }),
    close: async () => {
      await Promise.all(listeners.map((stop) => stop()));
      await pool.end();
    },
  };
}

/** The beginning of the statements that create invoices. */
const CREATES = 'insert into invoices ';

/** Statements on a pool or on one connection. `onFailure` hears of each statement that fails. Errors beside those of PostgreSQL: `ADDRESS_DAMAGED`, `ADDRESS_NOT_VOUCHED`, `ROW_CHANGED`. */
export function sqlOn(
  queryable: pg.Pool | pg.ClientBase,
  { addressChecks, seals, onShortage, admission }: Watch = {},
  onFailure?: (error: unknown) => void,
): Sql {
  const fail = (error: unknown) => {
    onFailure?.(error);
    return rethrow(error, onShortage);
  };
  const sql: Sql = {
    run: async (statement, parameters, leftOut) => {
      const { name, text, sealColumns, addressColumns } = statement;
      const isRead = sealColumns.length + addressColumns.length > 0;
      const isWritten = parameters.some(isSealParameter);
      const sealer = isRead || isWritten ? ((await seals?.open(sql, isWritten)) ?? null) : null;
      const query = { name, text, values: parameters.map((value) => bindable(value, sealer)) };
      const before = admission?.met();
      const { rows } = await (queryable as pg.Pool).query(query).catch(fail);
      if (before !== undefined && text.startsWith(CREATES)) {
        admission?.acknowledge(
          before,
          rows.map((row) => row.checkout_token),
        );
      }
      const judge = seals?.judge ?? null;
      if (sealer !== null && lacksKey(statement, rows, sealer)) await sealer.reload();
      readAddresses(statement, rows, addressChecks, sealer && judge && { sealer, judge }, leftOut);
      if (sealColumns.length > 0) await readSeals(statement, rows, sealer, judge, leftOut);
      return rows.map(statement.read);
    },
    sealer: async (mayCreate = true) => (seals === undefined ? null : seals.open(sql, mayCreate)),
    script: async (text) => {
      // The types do not know that a query has a timeout of its own.
      const query: pg.QueryConfig & { query_timeout: number } = { text, query_timeout: SCRIPT_TIMEOUT_MS };
      await (queryable as pg.Pool).query(query).catch(fail);
    },
  };
  return sql;
}

/** pg writes a bigint inside an array wrongly quoted for some types, and a time in the zone of the machine; text is right for every type. */
function bindable(value: Parameter, sealer: Sealer | null): unknown {
  if (isSealParameter(value)) return sealer?.seal(value.table, value.row) ?? null;
  if (typeof value === 'bigint') return value.toString();
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value)) return value.map((item) => (typeof item === 'bigint' ? item.toString() : item));
  return value;
}

/** The database's default does not matter: a transaction that reads after it took a lock must see what was committed before. */
const WRITING = 'begin isolation level read committed';
/** It blocks no reader and no writer of rows, and judging the rows that it read may take long. */
const READING = `begin isolation level repeatable read read only; set local idle_in_transaction_session_timeout = '60s'`;

async function inTransaction<Result>(
  pool: pg.Pool,
  begin: typeof WRITING | typeof READING,
  work: (tx: Sql) => Promise<Result>,
  watch: Watch,
): Promise<Result> {
  const fail = (error: unknown) => rethrow(error, watch.onShortage);
  const client = await pool.connect().catch(fail);
  let broken = true;
  try {
    await client.query(begin).catch(fail);
    try {
      const result = await runToCommit(client, work, watch);
      broken = false;
      return result;
    } catch (error) {
      // A connection to a server that is away or only reads is not kept; the server rolls back by itself. Asked for it, one that hangs
      // would hold a place of the pool for as long again. Else a failed rollback means that the connection is lost.
      broken =
        isAway(error) ||
        (await client.query('rollback').then(
          () => false,
          () => true,
        ));
      throw error;
    }
  } finally {
    client.release(broken);
  }
}

async function inSession<Result>(
  client: pg.Client,
  admission: Admission,
  work: (session: Session) => Promise<Result>,
  watch: Watch,
): Promise<Result> {
  const fail = (error: unknown) => rethrow(error, watch.onShortage);
  client.on('error', ignoreLoss);
  const sql = sqlOn(client, watch);
  const transaction = async <Inner>(inner: (tx: Sql) => Promise<Inner>): Promise<Inner> => {
    await sql.script(WRITING);
    try {
      return await runToCommit(client, inner, watch);
    } catch (error) {
      // Where this fails, too, the connection is lost, and the next statement says so.
      await client.query('rollback').catch(ignoreLoss);
      throw error;
    }
  };
  try {
    await client.connect().catch(fail);
    await admission.admit(client).catch(fail);
    return await work({ ...sql, transaction });
  } finally {
    await client.end().catch(ignoreLoss);
  }
}

/**
 * Runs `work` in the open transaction of a connection and commits. After a statement that failed, PostgreSQL answers COMMIT with ROLLBACK and
 * no error, so `work` that caught the failure would count as done: `DATABASE_UNAVAILABLE` says that nothing was written.
 */
export async function runToCommit<Result>(
  client: pg.ClientBase,
  work: (tx: Sql) => Promise<Result>,
  watch: Watch = {},
): Promise<Result> {
  let failure: unknown;
  // What a transaction has created is committed with it, and not with its statement.
  const { admission: _, ...rest } = watch;
  const tx = sqlOn(client, rest, (error) => {
    failure ??= error;
  });
  const result = await work(tx);
  const { command } = await client.query('commit').catch((error) => rethrow(error, watch.onShortage));
  if (command === 'COMMIT') return result;
  throw new AppError(
    'DATABASE_UNAVAILABLE',
    `the database rolled back the transaction instead of committing it, because one of its statements had failed: ${reasonOf(failure)}. Nothing was written, so you can safely try again`,
    { retryable: true, cause: failure },
  );
}

function ignoreLoss(): void {}

/** A server that is short of something goes on. */
function isAway(error: unknown): boolean {
  return error instanceof AppError && error.code === 'DATABASE_UNAVAILABLE' && shortageBehind(error) === null;
}

const RELISTEN_MS = 500;

/** Holds one connection that listens, for ever, reconnecting with a pause. Tells each loss once. Returns its stop function. */
function keepListening(
  config: pg.ClientConfig,
  channel: string,
  onNotify: (payload: string | null) => void,
  onError: (error: Error) => void,
): () => Promise<void> {
  let stopped = false;
  let isReported = false;
  let client: pg.Client | undefined;
  let timer: NodeJS.Timeout | undefined;
  const reconnect = (error?: Error) => {
    if (stopped || timer !== undefined) return;
    if (error !== undefined && !isReported) {
      isReported = true;
      onError(error);
    }
    timer = setTimeout(() => {
      timer = undefined;
      connect();
    }, RELISTEN_MS);
  };
  const connect = () => {
    const next = new pg.Client(config);
    client = next;
    next.on('error', reconnect);
    next.on('end', () => reconnect());
    next.on('notification', ({ payload = '' }) => onNotify(payload));
    next
      .connect()
      .then(() => next.query(`listen ${pg.escapeIdentifier(channel)}`))
      .then(() => {
        isReported = false;
        onNotify(null);
      })
      .catch((error: Error) => {
        next.end().catch(() => undefined);
        reconnect(error);
      });
  };
  connect();
  return async () => {
    stopped = true;
    clearTimeout(timer);
    await client?.end().catch(() => undefined);
  };
}
