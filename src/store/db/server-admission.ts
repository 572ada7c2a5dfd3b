import type pg from 'pg';

/** Where the history of a server ends: PostgreSQL's timeline, and how far its journal is on disk (bytes). */
type Position = { timeline: number; lsn: bigint };

export type Admission = {
  /** Decides of a new connection whether its server is one to work with. Rejects if not, with what counts as `DATABASE_UNAVAILABLE`. */
  admit(client: pg.ClientBase): Promise<void>;
  /** The newest position that any connection has met. */
  met(): Position;
  /** The server has committed invoices, which are known by their checkout tokens. It had met `before` when it was asked to. */
  acknowledge(before: Position, tokens: readonly string[]): void;
};

/** More than one statement creates, so that the newest commit is among them. */
const MAX_REMEMBERED = 100;

const READ_ONLY = `current_setting('transaction_read_only') as read_only`;
const NO_POSITION = 'null::int as timeline, null::numeric as lsn';
// A standby has no position of its own. No name is qualified, as those of other statements are not.
const POSITION = `case when not pg_is_in_recovery() then ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int end as timeline,
  case when not pg_is_in_recovery() then pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0') end as lsn`;

/** SQLSTATE classes of a server that is away or going down; any other error is that it does not tell its position. */
const AWAY = /^(08|53|57|58)/;

/**
 * For all connections of a process, because what one of its pools has met the others must know. It refuses servers that
 *
 * - cannot write: the way to the primary may lead to a standby for a moment while the primary changes, and a standby may show old data;
 * - went back: each promotion begins a new timeline. A server on an older timeline, or not as far on the same one, lacks what was
 *   acknowledged since. It would give the amounts of the invoices that it lacks to others;
 * - were promoted without everything: a server on a newer timeline that lacks an invoice which this process was told is committed, or
 *   whose journal ends before such a commit. It is marked, so that no process starts over it.
 *
 * What a journal holds beyond the last acknowledged commit may be lost in a failover to a synchronous standby, so it does not count
 * here. After a refusal every newer timeline is refused until a server of the known one is there again, because nothing tells from which
 * server a newer one descends. The next attempt asks the way anew. A server that does not tell its position is accepted. `timeoutMs`:
 * for the answer.
 */
export function createAdmission(timeoutMs: number): Admission {
  let known: Position = { timeline: 0, lsn: 0n };
  let acknowledgedLsn = 0n;
  let remembered: string[] = [];
  let isDoubtful = false;
  const refuse = (position: Position, why: string) => {
    isDoubtful = true;
    throw new UnfitServerError(
      `${why}: it is on timeline ${position.timeline} at ${position.lsn}, but this process has already seen timeline ${known.timeline} at ${known.lsn}. See "A primary that went back" in docs/guides/operations.md`,
    );
  };
  const admit = async (client: pg.ClientBase) => {
    // When connections are opened together, one may be answered later than another that was asked later.
    const before = known;
    const { isReadOnly, position } = await look(client, timeoutMs);
    if (isReadOnly) {
      throw new UnfitServerError(
        'it is read-only (a standby, or default_transaction_read_only): connect to the primary',
      );
    }
    if (position === null) return;
    const { timeline, lsn } = position;
    const isBack = timeline < known.timeline || (timeline === before.timeline && lsn < before.lsn);
    if (isBack || (isDoubtful && timeline !== known.timeline)) {
      refuse(position, 'it was reset to an earlier state, or descends from a server that was');
    }
    if (timeline > known.timeline && known.timeline > 0) {
      const lost = await countLost(client, remembered, timeoutMs);
      if (lost > 0) {
        // Without a mark, a process that is started anew would accept it.
        await client.query(MARK_LOSS).catch(() => undefined);
        refuse(position, `it was promoted, but lacks ${lost} of the last ${remembered.length} acknowledged invoices`);
      }
      if (lsn < acknowledgedLsn) refuse(position, `it was promoted, but lacks commits up to ${acknowledgedLsn}`);
    }
    isDoubtful = false;
    if (timeline > known.timeline || lsn > known.lsn) known = position;
  };
  return {
    admit,
    met: () => known,
    acknowledge: ({ lsn }, tokens) => {
      if (lsn > acknowledgedLsn) acknowledgedLsn = lsn;
      remembered = [...remembered, ...tokens].slice(-MAX_REMEMBERED);
    },
  };
}

/** How many of some invoices a server does not have. */
async function countLost(client: pg.ClientBase, tokens: readonly string[], timeoutMs: number): Promise<number> {
  if (tokens.length === 0) return 0;
  const query: pg.QueryConfig & { query_timeout: number } = {
    text: 'select count(*)::int4 as count from invoices where checkout_token = any($1::text[])',
    values: [tokens],
    query_timeout: timeoutMs,
  };
  const { rows } = await client.query<{ count: number }>(query);
  return tokens.length - (rows[0]?.count ?? 0);
}

/** No database has the number 0: a start takes the ledger for a copy of one that knows more. See `ledger-identity.ts`. */
const MARK_LOSS = 'update ledger_identity set database_oid = 0';

async function look(
  client: pg.ClientBase,
  timeoutMs: number,
): Promise<{ isReadOnly: boolean; position: Position | null }> {
  const ask = async (positionColumns: string) => {
    const query: pg.QueryConfig & { query_timeout: number } = {
      text: `select ${READ_ONLY}, ${positionColumns}`,
      query_timeout: timeoutMs,
    };
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

/** With the code of the first statement that a server which cannot write would refuse (read_only_sql_transaction). */
class UnfitServerError extends Error {
  readonly code = '25006';
}
