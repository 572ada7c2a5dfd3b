// An inbox for webhooks in PostgreSQL, for createInbox of @quittance/sdk/inbox. `pool` is a Pool of the package pg.
//
//   create table quittance_inbox (
//     id text primary key,                       -- the event's id: a repeat changes nothing
//     event jsonb not null,
//     attempts integer not null default 0,
//     due_at timestamptz default now(),          -- null: handled
//     error text
//   );
//   create index quittance_inbox_due on quittance_inbox (due_at) where due_at is not null;
//
// Your handler gets the client of the transaction that marks the event as handled. Write with it, so that both happen or neither.

export function postgresInbox(pool) {
  return {
    add: ({ id, ...rest }) =>
      pool.query('insert into quittance_inbox (id, event) values ($1, $2) on conflict do nothing', [
        id,
        { id, ...rest },
      ]),
    take: async (handle) => {
      const client = await pool.connect();
      client.on('error', ignore);
      let failure = null;
      let row;
      try {
        await client.query('begin');
        // What another process handles is passed over.
        const { rows } = await client.query(`select id, event from quittance_inbox where due_at <= now()
          order by due_at limit 1 for update skip locked`);
        [row] = rows;
        if (row !== undefined) {
          await client.query('savepoint handling');
          try {
            await handle(row.event, client);
            await client.query('update quittance_inbox set due_at = null, error = null where id = $1', [row.id]);
          } catch (error) {
            failure = error;
            await client.query('rollback to savepoint handling');
            await client.query(LATER, [row.id, String(error).slice(0, 500)]);
          }
        }
        await client.query('commit');
        client.off('error', ignore).release();
        if (failure === null) return row !== undefined;
      } catch (error) {
        failure ??= error;
        // The transaction ends with its connection. The event waits as after any other failure, so it doesn't delay others.
        client.release(true);
        if (row !== undefined) await pool.query(LATER, [row.id, String(failure).slice(0, 500)]).catch(ignore);
      }
      throw failure;
    },
  };
}

/** Without a listener, a lost connection ends the process. The next statement fails and says why. */
const ignore = () => undefined;

/** After 2, 4, 8, … seconds, and at last every hour. Changes nothing if the event was handled after all, or is still locked. */
const LATER = `update quittance_inbox set attempts = attempts + 1, error = $2,
  due_at = now() + least(2 ^ least(attempts + 1, 12), 3600) * interval '1 second'
  where id = (select id from quittance_inbox where id = $1 and due_at is not null for update skip locked)`;
