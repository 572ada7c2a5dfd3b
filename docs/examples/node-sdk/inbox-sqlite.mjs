// An inbox for webhooks in SQLite, for createInbox of @quittance/sdk/inbox. `db` is a DatabaseSync of node:sqlite (Node 22.13 or later), or a
// Database of better-sqlite3. One process may use it.
//
// Your handler gets `finish`. Call it once, with a function that writes what the event changes: it runs in the transaction that marks the
// event as handled, so that both happen or neither. Read the invoice before. If you don't call it, the event is marked when you are done.

export function sqliteInbox(db) {
  db.exec(`create table if not exists quittance_inbox (
    id text primary key, event text not null, attempts integer not null default 0, due_ms integer, error text) strict`);
  db.exec('create index if not exists quittance_inbox_due on quittance_inbox (due_ms) where due_ms is not null');
  const insert = db.prepare('insert into quittance_inbox (id, event, due_ms) values (?, ?, ?) on conflict do nothing');
  const due = db.prepare('select id, event, attempts from quittance_inbox where due_ms <= ? order by due_ms limit 100');
  const done = db.prepare('update quittance_inbox set due_ms = null, error = null where id = ?');
  const later = db.prepare('update quittance_inbox set attempts = attempts + 1, error = ?, due_ms = ? where id = ?');
  const taken = new Set();
  const finishing = (id, write) => {
    db.exec('begin immediate');
    try {
      write?.(db);
      done.run(id);
      db.exec('commit');
    } catch (error) {
      db.exec('rollback');
      throw error;
    }
  };
  return {
    add: async (event) => insert.run(event.id, JSON.stringify(event), Date.now()),
    take: async (handle) => {
      const row = due.all(Date.now()).find(({ id }) => !taken.has(id));
      if (row === undefined) return false;
      taken.add(row.id);
      let isDone = false;
      const finish = (write) => {
        finishing(row.id, write);
        isDone = true;
      };
      try {
        await handle(JSON.parse(row.event), finish);
        if (!isDone) finish();
        return true;
      } catch (error) {
        // After 2, 4, 8, … seconds, and at last every hour.
        const waitMs = Math.min(2 ** (row.attempts + 1), 3600) * 1000;
        if (!isDone) later.run(String(error).slice(0, 500), Date.now() + waitMs, row.id);
        throw error;
      } finally {
        taken.delete(row.id);
      }
    },
  };
}
