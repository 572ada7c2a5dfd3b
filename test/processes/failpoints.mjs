/**
 * Preloaded with `node --import`: a process with FAILPOINT kills or stops itself in one place, as a machine failure would. FAILPOINT is
 * JSON: {"when": "before" | "during" | "after", "what", "having"?, "nth"?, "signal"?}. `what` is the name of a prepared statement, "begin",
 * "commit" or "script", "201" for the answer to a creation, or "webhook" for a request to a receiver. `having` names a statement that ran
 * in the same transaction. "before" is before anything is sent, "during" when everything is sent and nothing has been received, "after"
 * when the answer has arrived and no code has seen it yet. FAILPOINT_FIRED is a file that is written at that moment. STATEMENT_TRACE is a
 * file that gets one line for each committed statement that changed rows: when it, or the commit, was sent (Unix milliseconds), its name,
 * and the number of rows. It also gets a line for each statement that found its lease lost.
 */
import { subscribe } from 'node:diagnostics_channel';
import { appendFileSync } from 'node:fs';
import { ServerResponse } from 'node:http';
import pg from 'pg';

const failpoint = process.env.FAILPOINT === undefined ? null : JSON.parse(process.env.FAILPOINT);
const trace = process.env.STATEMENT_TRACE;
let hits = 0;

function hit(when, what, ran) {
  if (failpoint === null || failpoint.when !== when || failpoint.what !== what) return;
  if (failpoint.having !== undefined && !ran?.has(failpoint.having)) return;
  hits += 1;
  if (hits !== (failpoint.nth ?? 1)) return;
  appendFileSync(process.env.FAILPOINT_FIRED, `${process.pid}\n`);
  process.kill(process.pid, failpoint.signal ?? 'SIGKILL');
}

/** What each connection has run and changed since its transaction began. A statement outside a transaction is its own transaction. */
const transactions = new WeakMap();

function transactionOf(client, name) {
  const open = transactions.get(client);
  if (open !== undefined && name !== 'begin') return open;
  const begun = { isOpen: name === 'begin', ran: new Set(), changed: [] };
  if (begun.isOpen) transactions.set(client, begun);
  return begun;
}

function nameOf(config) {
  if (typeof config === 'string') return config.split(' ', 1)[0];
  return config.name ?? 'script';
}

function finish(client, transaction, name, { result, sentMs }) {
  const isWrite = ['INSERT', 'UPDATE', 'DELETE'].includes(result?.command) && result.rowCount > 0;
  if (isWrite) transaction.changed.push(`${name} ${result.rowCount}`);
  if (name.startsWith('lease-') && result?.rowCount === 0) tell([`${name} 0`], sentMs);
  if (!transaction.isOpen || name === 'commit') tell(transaction.changed, sentMs);
  if (name === 'commit' || name === 'rollback') transactions.delete(client);
}

function tell(changed, sentMs) {
  if (trace === undefined) return;
  for (const name of changed) appendFileSync(trace, `${sentMs} ${name}\n`);
}

const { query } = pg.Client.prototype;
pg.Client.prototype.query = function (config, values, callback) {
  const name = nameOf(config);
  const transaction = transactionOf(this, name);
  transaction.ran.add(name);
  const ended = (result) => {
    hit('after', name, transaction.ran);
    finish(this, transaction, name, { result, sentMs });
  };
  hit('before', name, transaction.ran);
  const sentMs = Date.now();
  const told = [values, callback].map((given) =>
    typeof given !== 'function'
      ? given
      : (error, result) => {
          if (!error) ended(result);
          given(error, result);
        },
  );
  const answer = query.call(this, config, ...told);
  hit('during', name, transaction.ran);
  if (typeof answer?.then !== 'function') return answer;
  return answer.then((result) => {
    ended(result);
    return result;
  });
};

const { writeHead } = ServerResponse.prototype;
ServerResponse.prototype.writeHead = function (status, ...rest) {
  hit('before', String(status));
  this.once('finish', () => hit('after', String(status)));
  return writeHead.call(this, status, ...rest);
};

const isWebhook = ({ request }) => request.method === 'POST' && request.headers.includes('webhook-signature');
for (const [channel, when] of [
  ['undici:request:create', 'before'],
  ['undici:request:bodySent', 'during'],
  ['undici:request:headers', 'after'],
]) {
  subscribe(channel, (message) => {
    if (isWebhook(message)) hit(when, 'webhook');
  });
}
