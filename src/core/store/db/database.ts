import type { Readable, Writable } from 'node:stream';
import pg from 'pg';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import { AppError, isDatabaseUnavailable, shortageBehind } from '../../domain/errors.ts';
import { reasonOf } from '../../runtime/reason-of.ts';
import { type AddressChecks, lacksKey, type NewPlace, type OwnRule, readAddresses } from './address-column.ts';
import { isSealParameter, type LeftOut, readSeals, type Sealer, type SealJudge } from './seal.ts';
import type { Parameter, Row, Shape, Statement } from './statement.ts';
import { rethrow } from './unavailable.ts';

/** Runs statements, either on a pool (each in its own transaction) or in one open transaction. */
export type Sql = {
  /** Runs a statement. If a row fails its integrity check, the statement fails; with `leftOut`, the row is moved there instead. */
  run<F extends Shape>(statement: Statement<F>, values: readonly Parameter[], leftOut?: LeftOut[]): Promise<Row<F>[]>;
  /** Runs plain SQL without parameters, possibly several statements. This is only for migrations; it may take up to an hour. */
  script(text: string): Promise<void>;
  /** Returns the sealer, or `null` if rows aren't sealed. With `mayCreate`, which is the default, a missing key may be created. */
  sealer(mayCreate?: boolean): Promise<Sealer | null>;
};

/** A single connection that runs transactions one after another. */
export type Session = Sql & Pick<Database, 'transaction'>;

export type Database = Sql & {
  /**
   * Runs `work` in one transaction. If `work` throws, the transaction is rolled back and the error is rethrown. `work` must not make
   * network calls.
   */
  transaction<Result>(work: (tx: Sql) => Promise<Result>): Promise<Result>;
  /**
   * Like `transaction`, but read-only and with a single snapshot: every statement sees the state at the time of the first statement, so the
   * results are consistent.
   */
  snapshot<Result>(work: (tx: Sql) => Promise<Result>): Promise<Result>;
  /** Runs `work` on a connection outside the pool. Session locks and settings end with the connection. */
  session<Result>(work: (session: Session) => Promise<Result>): Promise<Result>;
  /** Returns why an address must not be added to its project, or `null`. Unlike the statement that adds it, this raises no alarm. */
  refuseNew(address: NewPlace): string | null;
  /** Returns why no invoice may be created under these project settings, or `null`. */
  refuseRule(rule: OwnRule): string | null;
  /**
   * Calls `onNotify` with the payload of each notification on a channel, and with `null` after each connection and reconnection, because
   * earlier notifications may have been lost. Stops at `close`.
   */
  listen(channel: string, onNotify: (payload: string | null) => void): void;
  stats(): { total: number; idle: number; waiting: number };
  close(): Promise<void>;
};

export type Connection = string | { host: string; port: number; user: string; password: string; database: string };

type DatabaseOptions = {
  connection: Connection;
  /** The number of database connections for this process, 1 to 100. */
  poolSize: number;
  applicationName: string;
  /** The admission check that all of a process's pools share. By default, the pool has its own. */
  admission?: Admission;
  /** Called when an idle connection breaks. Queries report their own errors. */
  onError(error: Error): void;
  /** Checks the addresses that statements read. A damaged address fails its statement in any case. */
  addressChecks?: AddressChecks;
  /** Seals the rows that are written, and checks the rows that are read. If this is absent, rows are neither sealed nor checked. */
  seals?: Seals;
  /** Called when the database refuses a statement because it's short of disk space, memory or connections. */
  onShortage?(what: string): void;
};

/**
 * A process's seals. `open` loads the keys when they are first needed, and returns `null` if there are none. `mayCreate` means that a
 * sealing key may be created.
 */
export type Seals = { judge: SealJudge; open(sql: Sql, mayCreate: boolean): Promise<Sealer | null> };

type Watch = Pick<DatabaseOptions, 'addressChecks' | 'seals' | 'onShortage' | 'admission'>;

/** How long a request waits for a free connection before it fails with 503. This is shorter than any client's timeout. */
export const CONNECT_TIMEOUT_MS = 5000;
/** A statement that takes longer is broken or blocked, because even the longest ones take milliseconds. */
const STATEMENT_TIMEOUT_MS = 20_000;
/**
 * Transactions make no network calls, so if a transaction is idle for this long, its process is paused or cut off. Its locks would block
 * others, above all a standby that needs a watcher's lease, so this time is shorter than that lease.
 */
const IDLE_IN_TRANSACTION_MS = 5000;
/** Building an index on a large ledger takes minutes. On the server, the script's own setting limits the time. */
const SCRIPT_TIMEOUT_MS = 3_600_000;
/**
 * A connection that only listens sends nothing. Without keep-alive, it would take two hours (on Linux) to notice that the server is gone.
 */
const KEEP_ALIVE_MS = 10_000;

const INT8 = 20;
const INT8_ARRAY = 1016;
const NUMERIC = 1700;
const TIMESTAMPTZ = 1184;

const readTimestamp = pg.types.getTypeParser(TIMESTAMPTZ) as (text: string) => Date | number;
/** The last time that a `Date` can represent. */
const LAST_MS = 8_640_000_000_000_000;

/**
 * Replaces `infinity` and years outside the range of `Date` with the limits of that range. Quittance never writes such values, and they
 * must not make a statement fail.
 */
function readTime(text: string): number {
  // This is the usual format. Parsing it separately takes a tenth of the time, which matters because a page may contain thousands of times.
  if (text[4] === '-' && text.endsWith('+00')) return Date.parse(`${text.slice(0, 10)}T${text.slice(11, -3)}Z`);
  const time = Number(readTimestamp(text));
  return Number.isNaN(time) ? LAST_MS : Math.max(-LAST_MS, Math.min(time, LAST_MS));
}

/** This is the only place that converts PostgreSQL's text to our types: int8 and numeric → bigint, timestamptz → Unix milliseconds. */
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

/**
 * Opens a pool. It connects when it's first used, and reconnects automatically. If the database is unreachable, the error is
 * `DATABASE_UNAVAILABLE`.
 */
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
  // The pool listens for errors only while a connection is idle, but without a listener an error event would end the process. While a
  // connection is in use, the current or next statement reports the loss. Even a connection that is being closed may still emit the error.
  pool.on('connect', (client) => client.on('error', ignoreLoss));
  const listeners: (() => Promise<void>)[] = [];
  return {
    ...sqlOn(pool, { ...options, admission }),
    refuseNew: (address) => options.addressChecks?.refuseNew?.(address) ?? null,
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

/**
 * Runs statements on a pool or on one connection. `onFailure` is called for each statement that fails. Errors in addition to PostgreSQL's:
 * `ADDRESS_DAMAGED`, `ADDRESS_NOT_VOUCHED`, `ROW_CHANGED`.
 */
function sqlOn(
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
      // The types of `pg` don't include the timeout of a single query.
      const query: pg.QueryConfig & { query_timeout: number } = { text, query_timeout: SCRIPT_TIMEOUT_MS };
      await (queryable as pg.Pool).query(query).catch(fail);
    },
  };
  return sql;
}

/** In arrays of some types, pg quotes a bigint wrongly, and it writes times in the machine's time zone. Text is right for every type. */
function bindable(value: Parameter, sealer: Sealer | null): unknown {
  if (isSealParameter(value)) return sealer?.seal(value.table, value.row) ?? null;
  if (typeof value === 'bigint') return value.toString();
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value)) return value.map((item) => (typeof item === 'bigint' ? item.toString() : item));
  return value;
}

/**
 * This is set explicitly, regardless of the database's default, because a transaction that reads after acquiring a lock must see earlier
 * commits.
 */
const WRITING = 'begin isolation level read committed';
/** A transaction like this doesn't block anyone who reads or writes rows, and checking the rows that it has read may take a long time. */
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
      // If the server is down or read-only, drop the connection, and the server rolls back on its own. If the server hangs, a rollback
      // would occupy the pool for just as long again. After other errors, a failed rollback means that the connection is lost.
      broken =
        // A server that is short of a resource is still running.
        (isDatabaseUnavailable(error) && shortageBehind(error) === null) ||
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
      // If this fails as well, the connection is lost, and the next statement reports it.
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
 * Runs `work` in the connection's open transaction and commits. After a failed statement, PostgreSQL responds to COMMIT with ROLLBACK but
 * without an error. So if `work` caught the failure, this throws `DATABASE_UNAVAILABLE`, because nothing was written.
 */
async function runToCommit<Result>(
  client: pg.ClientBase,
  work: (tx: Sql) => Promise<Result>,
  watch: Watch = {},
): Promise<Result> {
  let failure: unknown;
  // Invoices in a transaction are committed together with the transaction, not with the statement.
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

const RELISTEN_MS = 500;

/** Keeps one listening connection open and reconnects after a pause. Reports each loss once. Returns a function that stops it. */
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

/** A connection with a transaction and without statement timeouts. */
export type BackupSession = Sql & {
  /** Returns the rows of `copy … to stdout`. */
  copyOut(text: string): Readable;
  /** Returns a stream for the rows of `copy … from stdin`. It finishes when PostgreSQL has accepted all of them. */
  copyIn(text: string): Writable & { rowCount: number };
};

/** The text of values must not depend on server, database or user settings. */
const SETTINGS = `set statement_timeout = 0; set idle_in_transaction_session_timeout = 0; set client_encoding = 'UTF8';
  set datestyle = 'ISO, MDY'; set intervalstyle = 'postgres'; set timezone = 'UTC'; set bytea_output = 'hex';
  set extra_float_digits = 1; set row_security = off; set lock_timeout = '30s'`;

const COPY_CONNECT_TIMEOUT_MS = 10_000;

/**
 * Runs `work` in one transaction with the given mode. If `work` throws or the connection is lost, the transaction is rolled back and the
 * error is rethrown.
 */
export async function inBackupSession<Output>(
  connection: Connection,
  mode: 'isolation level repeatable read read only' | 'isolation level read committed',
  work: (session: BackupSession) => Promise<Output>,
): Promise<Output> {
  const client = new pg.Client({
    ...(typeof connection === 'string' ? { connectionString: connection } : connection),
    application_name: 'quittance backup',
    connectionTimeoutMillis: COPY_CONNECT_TIMEOUT_MS,
    keepAlive: true,
    types,
  });
  // The current or the next statement reports that the connection was lost.
  client.on('error', () => undefined);
  const sql = sqlOn(client);
  try {
    await client.connect().catch(refuseConnection);
    await sql.script(SETTINGS);
    await sql.script(`begin ${mode}`);
    return await runToCommit(client, (tx) =>
      work({
        ...tx,
        copyOut: (text) => client.query(copyTo(text)),
        copyIn: (text) => client.query(copyFrom(text)),
      }),
    );
  } finally {
    // The server rolls back everything that wasn't committed.
    await client.end().catch(() => undefined);
  }
}

function refuseConnection(cause: Error): never {
  throw new AppError('DATABASE_UNAVAILABLE', `the database does not respond: ${cause.message}`, {
    retryable: true,
    cause,
  });
}

/** How far a server's history goes: PostgreSQL's timeline, and the flushed WAL position (in bytes). */
type Position = { timeline: number; lsn: bigint };

export type Admission = {
  /**
   * Decides whether a new connection's server may be used. If not, rejects with an error that counts as `DATABASE_UNAVAILABLE`. Also sets
   * the session's date style and isolation level, without another round trip.
   */
  admit(client: pg.ClientBase): Promise<void>;
  /** Returns the newest position that any connection has seen. */
  met(): Position;
  /**
   * Records that the server has committed invoices, identified by their checkout tokens. `before` is the newest known position at the time
   * when the commit was requested. Does nothing if there are no tokens: a statement that creates no invoice doesn't wait for a standby, so
   * it proves no position.
   */
  acknowledge(before: Position, tokens: readonly string[]): void;
};

/** Several statements can create invoices at a time, so the newest commit must be among this many. */
const MAX_REMEMBERED = 100;

// The role or the database may have other defaults. A startup parameter would do the same, but connection poolers refuse unknown ones.
const DEFAULTS = `set_config('datestyle', 'ISO, MDY', false), set_config('default_transaction_isolation', 'read committed', false)`;
const READ_ONLY = `current_setting('transaction_read_only') as read_only, ${DEFAULTS}`;
const NO_POSITION = 'null::int as timeline, null::numeric as lsn';
// A standby doesn't have its own position. As in all other statements, names aren't schema-qualified.
const POSITION = `case when not pg_is_in_recovery() then ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int end as timeline,
  case when not pg_is_in_recovery() then pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0') end as lsn`;

/** SQLSTATE classes for a server that is down or shutting down. Any other error means that the server doesn't reveal its position. */
const AWAY = /^(08|53|57|58)/;

/**
 * All connections of a process share one, because every pool must know the newest position. It refuses servers that:
 *
 * - can't write. During a failover, the connection may lead to a standby, which may return old data.
 * - went back in time. Each promotion begins a new timeline. A server on an older timeline, or behind on the same one, lacks acknowledged
 *   commits and would give the amounts of missing invoices to new ones.
 * - were promoted with a loss. Such a server is on a newer timeline, but lacks an invoice whose commit this process has seen, or its WAL
 *   ends before such a commit. If an invoice is missing, the ledger is marked, so that no process starts with it.
 *
 * WAL after the last acknowledged commit may be lost in a failover to a synchronous standby, so it doesn't count here. After a refusal,
 * every newer timeline is refused until a server of the known timeline is back, because it's unknown where a newer timeline branched off.
 * The next attempt connects again. A server that doesn't reveal its position is accepted. `timeoutMs` limits the wait for its response.
 */
export function createAdmission(timeoutMs: number): Admission {
  let known: Position = { timeline: 0, lsn: 0n };
  let acknowledgedLsn = 0n;
  let remembered: string[] = [];
  let isDoubtful = false;
  /** The timeline of the refused server that was marked last, or 0. */
  let markedTimeline = 0;
  const refuse = (position: Position, why: string) => {
    isDoubtful = true;
    throw new UnfitServerError(
      `${why}: it is on timeline ${position.timeline} at ${position.lsn}, but this process has already seen timeline ${known.timeline} at ${known.lsn}. See "The database went back" in docs/guides/incidents.md`,
    );
  };
  const admit = async (client: pg.ClientBase) => {
    // If connections are opened concurrently, their responses may arrive in a different order.
    const before = known;
    const { isReadOnly, position } = await look(client, timeoutMs);
    if (isReadOnly) {
      throw new UnfitServerError(
        'it is read-only (a standby, or default_transaction_read_only): connect to the primary',
      );
    }
    if (position === null) return;
    const { timeline, lsn } = position;
    const isNewer = timeline > known.timeline && known.timeline > 0;
    const lost = isNewer ? await countLost(client, remembered, timeoutMs) : 0;
    if (lost > 0) {
      if (markedTimeline !== timeline && (await markLoss(client, timeoutMs))) markedTimeline = timeline;
      refuse(position, `it was promoted, but lacks ${lost} of the last ${remembered.length} acknowledged invoices`);
    }
    const isBack = timeline < known.timeline || (timeline === before.timeline && lsn < before.lsn);
    if (isBack || (isDoubtful && timeline !== known.timeline)) {
      refuse(position, 'it was reset to an earlier state, or descends from a server that was reset');
    }
    if (isNewer && lsn < acknowledgedLsn)
      refuse(position, `it was promoted, but lacks commits up to ${acknowledgedLsn}`);
    isDoubtful = false;
    markedTimeline = 0;
    if (timeline > known.timeline || lsn > known.lsn) known = position;
  };
  return {
    admit,
    met: () => known,
    acknowledge: ({ lsn }, tokens) => {
      if (tokens.length === 0) return;
      if (lsn > acknowledgedLsn) acknowledgedLsn = lsn;
      remembered = [...remembered, ...tokens].slice(-MAX_REMEMBERED);
    },
  };
}

function queryWithin(timeoutMs: number, text: string, values: unknown[] = []) {
  return { text, values, query_timeout: timeoutMs };
}

/** Returns how many of these invoices a server lacks. */
async function countLost(client: pg.ClientBase, tokens: readonly string[], timeoutMs: number): Promise<number> {
  if (tokens.length === 0) return 0;
  const text = 'select count(*)::int4 as count from invoices where checkout_token = any($1::text[])';
  const { rows } = await client.query<{ count: number }>(queryWithin(timeoutMs, text, [tokens]));
  return tokens.length - (rows[0]?.count ?? 0);
}

/**
 * Marks the ledger, because a restarted process would accept the server. No database has the oid 0, so every start treats the ledger as an
 * outdated copy. See `ledger-identity.ts`. If this fails, the next connection tries again.
 */
function markLoss(client: pg.ClientBase, timeoutMs: number): Promise<boolean> {
  return client.query(queryWithin(timeoutMs, 'update ledger_identity set database_oid = 0')).then(
    () => true,
    () => false,
  );
}

async function look(
  client: pg.ClientBase,
  timeoutMs: number,
): Promise<{ isReadOnly: boolean; position: Position | null }> {
  const ask = async (positionColumns: string) => {
    const query = queryWithin(timeoutMs, `select ${READ_ONLY}, ${positionColumns}`);
    const { rows } = await client.query<{ read_only: string; timeline: number | null; lsn: bigint | null }>(query);
    const { read_only, timeline = null, lsn = null } = rows[0] ?? {};
    return { isReadOnly: read_only !== 'off', position: timeline === null || lsn === null ? null : { timeline, lsn } };
  };
  return ask(POSITION).catch((error: { code?: unknown }) => {
    const isAnswer = typeof error.code === 'string' && /^[0-9A-Z]{5}$/.test(error.code) && !AWAY.test(error.code);
    if (!isAnswer) throw error;
    return ask(NO_POSITION);
  });
}

/** This error has the same code as PostgreSQL's error for a write to a read-only server (read_only_sql_transaction). */
class UnfitServerError extends Error {
  readonly code = '25006';
}

/** Returns why the database server behind an error was refused, without its host, or `null`. */
export function refusalBehind({ cause }: Error): string | null {
  return cause instanceof UnfitServerError ? `Quittance refuses the database server: ${cause.message}` : null;
}
