import type pg from 'pg';

/** Decides of each new connection whether its server is one to work with. Rejects if not, with what counts as `DATABASE_UNAVAILABLE`. */
export type Admission = (client: pg.ClientBase) => Promise<void>;

/** Where the history of a server ends: PostgreSQL's timeline, and how far its journal is on disk (bytes). */
type Position = { timeline: number; lsn: bigint };

const READ_ONLY = `current_setting('transaction_read_only') as read_only`;
const NO_POSITION = 'null::int as timeline, null::numeric as lsn';
// A standby has no position of its own. No name is qualified, as those of other statements are not.
const POSITION = `case when not pg_is_in_recovery() then ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int end as timeline,
  case when not pg_is_in_recovery() then pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0') end as lsn`;

/** SQLSTATE classes of a server that is away or going down; any other error is that it does not tell its position. */
const AWAY = /^(08|53|57|58)/;

/**
 * For all connections of a process, for what one of its pools has seen the others must know. Refused are servers that
 *
 * - cannot write: the way to the primary may lead to a standby for a moment while the primary changes, and what a standby shows may be
 *   old;
 * - went back: each promotion begins a new timeline, so one on an older timeline, or not as far on the same, lacks what was
 *   acknowledged since, and would hand out amounts again of invoices that it does not know. After that one on a newer timeline is
 *   refused as well, for nothing tells whether it comes from that server, until the one of the known timeline is there again.
 *
 * The next attempt asks the way anew. A server that does not tell its position is taken as it is. `timeoutMs`: for the answer.
 */
export function createAdmission(timeoutMs: number): Admission {
  let known: Position = { timeline: 0, lsn: 0n };
  let isDoubtful = false;
  return async (client) => {
    // When connections are opened together, one may be answered later than another that was asked later.
    const before = known;
    const { isReadOnly, position } = await look(client, timeoutMs);
    if (isReadOnly) {
      throw new UnfitServerError('it only reads (a standby, or default_transaction_read_only): connect to the primary');
    }
    if (position === null) return;
    const { timeline, lsn } = position;
    const isBack = timeline < known.timeline || (timeline === before.timeline && lsn < before.lsn);
    if (isBack || (isDoubtful && timeline !== known.timeline)) {
      isDoubtful = true;
      throw new UnfitServerError(
        `its history went back, or comes from one that did: it is on timeline ${timeline} at ${lsn}, and this process has met timeline ${known.timeline} at ${known.lsn}. See "A primary that went back" in docs/operations.md`,
      );
    }
    isDoubtful = false;
    if (timeline > known.timeline || lsn > known.lsn) known = position;
  };
}

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
