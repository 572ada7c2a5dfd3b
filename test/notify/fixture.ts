import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import pg from 'pg';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { expect, onTestFinished, vi } from 'vitest';
import type { AlarmKind } from '../../src/core/domain/alarm-kinds.ts';
import { encodeId } from '../../src/core/domain/ids.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { raiseAlarm, resolveAlarms } from '../../src/core/store/chain/alarms.ts';
import { openDatabase } from '../../src/core/store/db/database.ts';
import { createSeals } from '../../src/core/store/db/seals.ts';
import { type NotifierOptions, startNotifier } from '../../src/faces/notify/notifier.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { addChannel } from '../../src/faces/operator/subjects/notify.ts';
import { TEST_KEY_RING } from '../support/key-ring.ts';
import { PATIENCE_MS } from '../support/patience.ts';
import { createTestDatabase } from '../support/postgres.ts';

/** Waits for the effect of other work. The limit only ends a test that would fail. */
export const eventually = <Result>(check: () => Result | Promise<Result>) =>
  vi.waitFor(check, { timeout: PATIENCE_MS, interval: 10 });

/** Creates a database, a movable clock, notifiers, and the servers of the channels. */
export async function createWorld({ rowMacs }: { rowMacs?: 'require' } = {}) {
  const database = await createTestDatabase();
  const client = new pg.Client(database.owner);
  await client.connect();
  const open = () => {
    const judge = { mode: 'require', onProblem: () => undefined } as const;
    const seals = rowMacs === undefined ? {} : { seals: createSeals(judge, async () => TEST_KEY_RING) };
    const db = openDatabase({
      ...database,
      poolSize: 4,
      applicationName: 'notify',
      onError: () => undefined,
      ...seals,
    });
    onTestFinished(() => db.close());
    return db;
  };
  onTestFinished(async () => {
    await client.end();
    await database.drop();
  });
  const db = open();
  let aheadMs = 0;
  const now = () => unixMs(Date.now() + aheadMs);
  const sql = async (text: string, values: unknown[] = []): Promise<Record<string, unknown>[]> =>
    (await client.query(text, values)).rows;
  type Given = Parameters<typeof addChannel.read>[0];
  return {
    db,
    sql,
    now,
    database,
    advance: (ms: number) => {
      aheadMs += ms;
    },
    raise: (kind: AlarmKind, subject = '', detail = `${kind} of ${subject}`) =>
      raiseAlarm(db, 'devnet', { id: randomUUID(), kind, subject, detail }),
    resolve: (kind: AlarmKind, subject = '') => resolveAlarms(db, 'devnet', kind, subject),
    /** Adds a channel like the command does. */
    addChannel: async (kind: string, given: Partial<Given>) => {
      const config = {
        masterKeys: TEST_KEY_RING.keys().map(({ bytes }) => bytes.toString('base64')),
        databaseUrl: 'postgres://',
        dataDir: '/nowhere',
      };
      const deps = { db, now, random: randomBytes, config, note: () => undefined } as never;
      const wanted = addChannel.read({ name: randomUUID(), isOwnNetwork: true, kind, ...given } as Given, now());
      return addChannel.run(deps, commandActor('anna'), wanted);
    },
    /** Starts a process that notifies operators; `lines` is its log. */
    start: (options: Partial<NotifierOptions> = {}) => {
      const lines: string[] = [];
      const log = createLogger({ level: 'info', destination: { write: (line) => void lines.push(line) } });
      const deps = { db: open(), now, log, random: randomBytes, keyRing: TEST_KEY_RING, network: 'devnet' as const };
      const notifier = startNotifier({ ...deps, holder: randomUUID(), pollMs: 20, attemptMs: PATIENCE_MS, ...options });
      let stopped: Promise<void> | null = null;
      const stop = () => {
        stopped ??= notifier.stop();
        return stopped;
      };
      onTestFinished(stop);
      return { stop, lines };
    },
    /** Adds an unmatched transfer, recorded now. */
    addStray: async (amountMicro: number) => {
      const [project, address, id] = [randomUUID(), randomUUID(), randomUUID()];
      await sql(`insert into projects (id, name, network) values ($1, 'shop', 'devnet')`, [project]);
      const account = randomBytes(20);
      await sql(
        `insert into addresses (id, project_id, network, account, address, position) values ($1, $2, 'devnet', $3, tron_address($3), 1)`,
        [address, project, account],
      );
      const txId = randomBytes(32);
      await sql(
        `insert into transfers (id, project_id, network, address_id, tx_id, log_index, block_number, block_id, block_time,
           from_address, amount_micro, kind, verified, nodes)
         values (overlay($1::text placing '7' from 15 for 1)::uuid, $2, 'devnet', $3, $4, 0, 1, $5, now(), 'T', $6, 'unmatched', 'proven', '{}')`,
        [idNow(id), project, address, txId, randomBytes(32), amountMicro],
      );
      return { txId: txId.toString('hex'), projectId: encodeId('prj', project), project };
    },
    titles: async () =>
      (await sql('select about, phase, status from notifications order by id')).map(
        ({ about, phase, status }) => `${String(about).split(':')[0]} ${phase} ${status}`,
      ),
  };
}

/** Returns a UUID whose time is now. */
function idNow(uuid: string): string {
  const time = Date.now().toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}${uuid.slice(13)}`;
}

export type Received = { path: string; headers: IncomingHttpHeaders; body: string; json: Record<string, unknown> };

/** Starts a server for channels. `answer` decides how to answer each message, by default with 200. */
export async function startReceiver(
  answer: (response: ServerResponse, received: Received) => unknown = (response) => response.writeHead(200).end(),
) {
  const received: Received[] = [];
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString();
    const one = { path: request.url ?? '', headers: request.headers, body, json: JSON.parse(body) };
    received.push(one);
    answer(response, one);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { received, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

type Mail = { from: string; to: string[]; text: string; user: string | null; isSecure: boolean };

/** Starts a real mail server, which accepts the user `quittance` with the password `secret`. */
export async function startMailServer(options: SMTPServerOptions = {}) {
  const mails: Mail[] = [];
  const server = new SMTPServer({
    authOptional: true,
    onAuth: ({ username, password }, _session, done) =>
      username === 'quittance' && password === 'secret' ? done(null, { user: username }) : done(new Error('no')),
    onData: (stream, session, done) => {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => void chunks.push(chunk));
      stream.on('end', () => {
        const { mailFrom, rcptTo } = session.envelope;
        mails.push({
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          text: Buffer.concat(chunks).toString(),
          user: session.user === undefined ? null : String(session.user),
          isSecure: session.secure,
        });
        done();
      });
    },
    ...options,
  });
  server.on('error', () => undefined);
  const listening = server.listen(0, '127.0.0.1');
  await once(listening, 'listening');
  onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())));
  return { mails, port: (listening.address() as AddressInfo).port };
}

export const bodiesOf = (received: readonly Received[]) => received.map(({ json }) => json);
export const must = <Value>(value: Value | undefined): Value => value ?? expect.fail('it is not there');
