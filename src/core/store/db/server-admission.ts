import type pg from 'pg';

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
