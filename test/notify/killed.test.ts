import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { TEST_KEY_RING } from '../support/key-ring.ts';
import { longTest } from '../support/some-cases.ts';
import { createWorld, eventually, type Received, startMailServer, startReceiver } from './fixture.ts';

type World = Awaited<ReturnType<typeof createWorld>>;

/** Forks a process that notifies operators. `kill` ends it between two instructions, together with its database connections. */
function forkNotifier({ database, sql }: World) {
  const child = fork(fileURLToPath(new URL('notifier-process.ts', import.meta.url)), [], {
    execArgv: ['--conditions=@quittance/source', '--import', 'ts-blank-space/register'],
    env: {
      ...process.env,
      TEST_DATABASE: JSON.stringify(database.connection),
      TEST_MASTER_KEY: TEST_KEY_RING.current().bytes.toString('base64'),
    },
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  return {
    kill: async () => {
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
      const backends = `from pg_stat_activity where application_name like '%killed%' and datname = current_database()`;
      await sql(`select pg_terminate_backend(pid) ${backends}`);
      await eventually(async () => expect(await sql(`select ${backends}`)).toEqual([]));
    },
  };
}

/** Lets another process take over: the killed one's right to send has expired by the database's clock, and its claim by ours. */
async function takeOver(world: World) {
  await world.sql('update leases set expires_at = now()');
  world.advance(20_000);
  world.start();
}

const isRecorded = (world: World) => async () => expect(await world.titles()).toEqual(['alarm raised sent']);
const idsOf = (received: readonly Received[]) => new Set(received.map(({ headers }) => headers['webhook-id'])).size;

test('a process that is killed while the receiver holds its message has it sent again, once, with the same id', async () => {
  const world = await createWorld();
  let isHolding = true;
  const { received, url } = await startReceiver((response) => {
    if (!isHolding) response.writeHead(200).end();
  });
  await world.addChannel('webhook', { url });
  await world.raise('blind', '');
  const killed = forkNotifier(world);
  await eventually(() => expect(received).toHaveLength(1));
  await killed.kill();
  expect(await world.titles()).toEqual(['alarm raised waiting']);
  isHolding = false;
  await takeOver(world);
  await eventually(isRecorded(world));
  expect(received).toHaveLength(2);
  expect(idsOf(received)).toBe(1);
});

longTest('one that is killed between the answer and its record has it sent again, once, with the same id', async () => {
  const world = await createWorld();
  const other = new pg.Client(world.database.owner);
  await other.connect();
  other.on('error', () => undefined); // The database is dropped first if the test fails.
  const { received, url } = await startReceiver(async (response) => {
    // No one can record the message's outcome.
    if (received.length === 1) await other.query('begin; lock table notifications in share mode');
    response.writeHead(200).end();
  });
  await world.addChannel('webhook', { url });
  await world.raise('blind', '');
  const killed = forkNotifier(world);
  await eventually(async () =>
    expect(
      await world.sql(`select from pg_stat_activity where application_name like '%killed%' and wait_event_type = 'Lock'
      and datname = current_database()`),
    ).not.toEqual([]),
  );
  await killed.kill();
  await other.end();
  await takeOver(world);
  await eventually(isRecorded(world));
  expect(received).toHaveLength(2);
  expect(idsOf(received)).toBe(1);
});

longTest(
  'a mail that a server holds when the process is killed comes once more at most, with the same Message-ID',
  async () => {
    const world = await createWorld();
    let held: (() => void) | null = null;
    const texts: string[] = [];
    const { port } = await startMailServer({
      onData: (stream, _session, done) => {
        const chunks: Buffer[] = [];
        stream.on('data', (chunk: Buffer) => void chunks.push(chunk));
        stream.on('end', () => {
          texts.push(Buffer.concat(chunks).toString());
          if (held === null) held = done;
          else done();
        });
      },
    });
    await world.addChannel('email', {
      ...{ from: 'quittance@example.com', to: ['anna@example.com'], url: `smtp://127.0.0.1:${port}` },
    });
    await world.raise('blind', '');
    const killed = forkNotifier(world);
    await eventually(() => expect(texts).toHaveLength(1));
    await killed.kill();
    await takeOver(world);
    await eventually(isRecorded(world));
    expect(texts).toHaveLength(2);
    expect(new Set(texts.map((text) => /Message-ID: (.+)/.exec(text)?.[1])).size).toBe(1);
  },
);
