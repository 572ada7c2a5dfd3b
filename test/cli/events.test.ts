import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { printEvents, type TailOptions } from '../../src/cli/events/tail.ts';
import type { Terminal } from '../../src/cli/terminal/terminal.ts';
import { type EventType, eventBody } from '../../src/core/domain/event.ts';
import { encodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { type Database, openDatabase } from '../../src/core/store/db/database.ts';
import { migrate } from '../../src/core/store/db/migrate.ts';
import { startEmbeddedPostgres } from '../../src/core/store/embedded/embedded.ts';
import { recordEvents } from '../../src/core/store/outbox/events.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { createTestProject, eventually, type TestProject } from '../support/service.ts';
import { recordTerminal } from '../support/terminal.ts';
import { newDirectory, startProcess } from './run-cli.ts';

const NOW = unixMs(Date.parse('2026-11-21T02:42:35.019Z'));

let database: TestDatabase;
let db: Database;
let project: TestProject;
beforeAll(async () => {
  database = await createTestDatabase();
  db = openDatabase({
    connection: database.connection,
    poolSize: 2,
    applicationName: 'cli test',
    onError: () => undefined,
  });
  project = await createTestProject(db);
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

const INVOICE = encodeId('inv', '01890000-0000-7000-8000-000000000001');
const TRANSFER = encodeId('trf', '01890000-0000-7000-8000-000000000002');

const DATA: Partial<Record<EventType, object>> = {
  'invoice.paid': {
    invoiceId: INVOICE,
    externalId: 'Bestellung \u202E\u0007 7',
    status: 'PAID',
    payment: { payableAmount: '25.000137' },
  },
  'transfer.unmatched': { transferId: TRANSFER, amount: '1.234560' },
};

/** Writes events as the service does, and returns their bodies. */
async function add(...types: EventType[]): Promise<string[]> {
  const events = types.map((type) => {
    const id = uuidV7(NOW, randomBytes(10));
    const data = DATA[type] ?? {};
    const body = eventBody({ id, type, timestamp: NOW, projectId: project.id, sequence: 1, data });
    return { id, projectId: project.id, type, invoiceId: null, transferId: null, sequence: 1, body };
  });
  await db.transaction((tx) => recordEvents(tx, 'devnet', events, NOW));
  return events.map(({ body }) => body);
}

const idOf = (body: string | undefined): string => JSON.parse(body ?? '{}').id;

/** Runs the command in this process until it ends by itself or `stop` is called. */
function tail(
  options: Partial<TailOptions> = {},
  { json = true, env = {}, isTTY = false }: { json?: boolean; env?: object; isTTY?: boolean } = {},
) {
  const notes: string[] = [];
  const stdout = Object.assign(new PassThrough(), { isTTY });
  const terminal: Terminal = {
    ...recordTerminal({ json, env: { DATABASE_URL: database.connectionString, ...env } }),
    stdout,
    note: (text) => void notes.push(text),
  };
  let text = '';
  stdout.on('data', (chunk) => {
    text += chunk;
  });
  const stopping = new AbortController();
  const ended = printEvents(
    terminal,
    { limit: '10', follow: true, ...options },
    { signal: stopping.signal, pollMs: 10 },
  );
  return {
    notes,
    stdout,
    ended,
    lines: () => text.split('\n').slice(0, -1),
    until: (count: number) =>
      eventually(
        () => text.split('\n').length - 1,
        (lines) => lines >= count,
      ),
    stop: () => {
      stopping.abort();
      return ended;
    },
  };
}

/** Returns the output of a command that ends by itself. */
async function shown(
  options: Partial<TailOptions> = {},
  how: { json?: boolean; isTTY?: boolean } = {},
): Promise<string[]> {
  const { ended, lines } = tail({ follow: false, ...options }, how);
  await ended;
  return lines();
}

describe('events tail', () => {
  test('shows the newest stored bodies, oldest first, and then each that is committed, once', async () => {
    const before = await add(...Array<EventType>(12).fill('ping'));
    const { until, lines, stop } = tail();
    await until(10);
    const during = await add('invoice.paid', 'ping');
    await until(12);
    const after = await add(...Array<EventType>(150).fill('ping'));
    await until(162);
    await stop();
    expect(lines()).toEqual([...before.slice(2), ...during, ...after]);
  });

  test('--after goes on after an event, --limit says how many of the newest, 0 for none', async () => {
    const bodies = await add('ping', 'invoice.paid', 'ping');
    expect(await shown({ after: idOf(bodies[0]) })).toEqual(bodies.slice(1));
    expect(await shown({ after: idOf(bodies[2]) })).toEqual([]);
    expect(await shown({ limit: '2' })).toEqual(bodies.slice(1));
    expect(await shown({ limit: '0' })).toEqual([]);
  });

  test('--type shows these types only, and goes on from the newest event whatever its type', async () => {
    const [unmatched, paid] = await add('transfer.unmatched', 'invoice.paid', 'ping');
    const types = ['invoice.paid', 'transfer.unmatched'];
    expect(await shown({ type: types, limit: '2' })).toEqual([unmatched, paid]);
    const { until, lines, stop } = tail({ type: types, limit: '1' });
    await until(1);
    const [, next] = await add('ping', 'invoice.paid');
    await until(2);
    await stop();
    expect(lines()).toEqual([paid, next]);
  });

  test('for people a line has time, type, id and what it is about, and nothing that rewrites the terminal', async () => {
    const bodies = await add('transfer.unmatched', 'invoice.paid');
    expect(await shown({ limit: '2' }, { json: false })).toEqual([
      `2026-11-21 02:42:35  transfer.unmatched  ${idOf(bodies[0])}  ${TRANSFER}  1.234560`,
      `2026-11-21 02:42:35  invoice.paid        ${idOf(bodies[1])}  ${INVOICE}  PAID  25.000137  Bestellung �� 7`,
    ]);
  });

  test('--json in a terminal is the same with nothing that rewrites it', async () => {
    const [body = ''] = await add('invoice.paid');
    const [line = ''] = await shown({ limit: '1' }, { isTTY: true });
    expect(line).toBe(body.replace('\u202e', '\\u202e'));
    expect(line).not.toBe(body);
  });

  test('a reader that is slow is waited for, and one that is gone is not', async () => {
    const { stdout, stop } = tail({ limit: '1000' });
    stdout.pause();
    await eventually(() => stdout.writableNeedDrain, Boolean);
    await stop();
  });

  test('wrong options are refused with what there is', async () => {
    const refused = (options: Partial<TailOptions>) => expect(tail(options).ended).rejects;
    await refused({ type: ['invoice.payed'] }).toThrow(
      '"invoice.payed" is not an event type: choose from invoice.pending',
    );
    for (const limit of ['-1', '1001', 'x', '1.5', '']) await refused({ limit }).toThrow('use 0 to 1000');
    await refused({ after: 'inv_x' }).toThrow('"inv_x" is not an event id');
    const unknown = encodeId('evt', uuidV7(NOW, randomBytes(10)));
    await refused({ after: unknown }).toThrow(`there is no event ${unknown} in this project`);
  });

  test('with a database of its own it does not wait for what cannot come, and leaves the turn to others', async () => {
    const dataDir = join(newDirectory(), 'data');
    const postgres = await startEmbeddedPostgres({ dataDir, log: createLogger({ level: 'warn' }), isDurable: false });
    const own = openDatabase({
      connection: postgres.owner,
      poolSize: 1,
      applicationName: 'test',
      onError: () => {},
    });
    await migrate(own);
    await createTestProject(own);
    await own.close();
    await postgres.stop();
    const { ended, notes } = tail({}, { env: { QUITTANCE_DATA_DIR: dataDir, DATABASE_URL: undefined } });
    await ended;
    expect(notes.join()).toContain('no service is running on this database');
  });

  test('the command ends well on SIGINT, and when nobody reads on', async () => {
    const bodies = await add('ping');
    const env = { DATABASE_URL: database.connectionString };
    for (const end of ['SIGINT', 'closed pipe']) {
      const child = startProcess(['events', 'tail', '--limit', '1', '--json'], { env });
      let [stdout, stderr] = ['', ''];
      child.stderr.on('data', (chunk) => {
        stderr += chunk;
      });
      child.stdout.on('data', (chunk) => {
        stdout += chunk;
      });
      const exited = new Promise((resolve) => child.once('exit', (code, signal) => resolve(code ?? signal)));
      await eventually(() => stdout, Boolean);
      expect(stdout).toBe(`${bodies[0]}\n`);
      if (end === 'SIGINT') child.kill('SIGINT');
      else {
        child.stdout.destroy();
        await add('ping');
      }
      expect(await exited).toBe(0);
      expect(stderr).toBe('');
      bodies[0] = (await shown({ limit: '1' }))[0] ?? '';
    }
  });
});
