import type pg from 'pg';

/** SQLSTATEs of a server that does not tell its timeline: no such function, not offered, not allowed. */
const UNTOLD = ['42883', '0A000', '42501'];

// The names are not qualified, as those of every statement are not.
const LOOK = `select current_setting('transaction_read_only') as read_only,
  case when pg_is_in_recovery() then null else ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int end as timeline`;

type Look = { read_only: string | null; timeline: number | null };

/**
 * Lets no connection into a pool whose server
 *
 * - cannot write: the way to the primary may lead to a standby for a moment while the primary changes, and what a standby shows may
 *   be old;
 * - went back: each promotion begins a new timeline of PostgreSQL, so one that is on an older timeline than this process has met was
 *   replaced, and lacks what was acknowledged since. It would hand out amounts again that invoices have which it does not know.
 *
 * The next attempt asks the way anew. The returned function rejects with an error that counts as `DATABASE_UNAVAILABLE`.
 */
export function createAdmission(timeoutMs: number): (client: pg.ClientBase) => Promise<void> {
  let newestTimeline = 0;
  return async (client) => {
    const { read_only, timeline } = await look(client, timeoutMs);
    if (read_only !== 'off') {
      throw new UnfitServerError('it only reads (a standby, or default_transaction_read_only): connect to the primary');
    }
    if (timeline === null) return;
    if (timeline < newestTimeline) {
      throw new UnfitServerError(
        `its history went back: it is on timeline ${timeline}, and this process has met timeline ${newestTimeline}, whose commits it may lack. Lead the way to the server of timeline ${newestTimeline}, or see "A primary that went back" in docs/operations.md`,
      );
    }
    newestTimeline = timeline;
  };
}

async function look(client: pg.ClientBase, timeoutMs: number): Promise<Look> {
  const ask = async (text: string): Promise<Look> => {
    const query: pg.QueryConfig & { query_timeout: number } = { text, query_timeout: timeoutMs };
    const { rows } = await client.query<Look>(query);
    return rows[0] ?? { read_only: null, timeline: null };
  };
  return ask(LOOK).catch((error: { code?: unknown }) => {
    if (!UNTOLD.includes(String(error.code))) throw error;
    return ask(`select current_setting('transaction_read_only') as read_only, null::int as timeline`);
  });
}

/** With the code of the first statement that a server which cannot write would refuse (read_only_sql_transaction). */
class UnfitServerError extends Error {
  readonly code = '25006';
}
