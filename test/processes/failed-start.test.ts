import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { newDirectory, startProcess } from '../cli/run-cli.ts';
import { runSql } from '../contract/sql.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { someCases } from '../support/some-cases.ts';
import { MASTER_KEY } from './shop.ts';

type Around = { dataDir: string; database: Awaited<ReturnType<typeof createTestDatabase>> };
/** Changes the surroundings of a process that would otherwise start. Returns additional settings. */
type Arrange = (around: Around) => Promise<Record<string, string>>;

async function takenPort(): Promise<string> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return String((server.address() as AddressInfo).port);
}

const CAUSES: Record<string, { code: number; says: RegExp; arrange: Arrange }> = {
  "the shop API's port is taken": {
    code: 5,
    says: /port \d+ on 127\.0\.0\.1 is in use.*QUITTANCE_PORT/,
    arrange: async () => ({ QUITTANCE_PORT: await takenPort() }),
  },
  "the console's port is taken": {
    code: 5,
    says: /set QUITTANCE_CONSOLE_PORT/,
    arrange: async () => ({ QUITTANCE_CONSOLE_PORT: await takenPort() }),
  },
  'the metrics port is taken': {
    code: 5,
    says: /the metrics port \d+/,
    arrange: async () => ({ QUITTANCE_METRICS_PORT: await takenPort() }),
  },
  'the address is none of this machine': {
    code: 2,
    says: /cannot listen on 192\.0\.2\.1/,
    arrange: async () => ({ QUITTANCE_HOST: '192.0.2.1' }),
  },
  'a setting is wrong': { code: 2, says: /QUITTANCE_PORT/, arrange: async () => ({ QUITTANCE_PORT: 'x' }) },
  'the master key is missing': {
    code: 2,
    says: /QUITTANCE_MASTER_KEY/,
    arrange: async () => ({ QUITTANCE_MASTER_KEY: '' }),
  },
  'the schema is newer than the release': {
    code: 1,
    says: /9999_later\.sql/,
    arrange: async ({ database }) => {
      await runSql(
        database,
        `insert into schema_migrations (version, name, sha256) values (9999, '9999_later.sql', repeat('0', 64))`,
      );
      return {};
    },
  },
  'the database is a copy': {
    code: 1,
    says: /this database is a copy/,
    arrange: async ({ database }) => {
      await runSql(database, 'insert into ledger_identity (id, database_oid) select gen_random_uuid(), 7');
      return {};
    },
  },
  'the database refuses the password': {
    code: 5,
    says: /password/,
    arrange: async ({ database }) => ({
      DATABASE_URL: database.connectionString.replace(/:[^:@/]+@/, ':wrong@'),
    }),
  },
  'the data directory of the embedded database is a file': {
    code: 1,
    says: /data/,
    arrange: async ({ dataDir }) => {
      await writeFile(dataDir, '');
      return { DATABASE_URL: '' };
    },
  },
};

test.each(someCases(Object.keys(CAUSES), 2))(
  'if %s, a start says so and ends by itself with its exit code',
  async (cause) => {
    const { code, says, arrange } = CAUSES[cause] as (typeof CAUSES)[string];
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    const dataDir = join(newDirectory(), 'data');
    const env = {
      ...{ DATABASE_URL: database.connectionString, QUITTANCE_DATA_DIR: dataDir, QUITTANCE_MASTER_KEY: MASTER_KEY },
      ...{ QUITTANCE_PORT: '0', QUITTANCE_CONSOLE_PORT: '0', QUITTANCE_METRICS_PORT: '0' },
      ...{ QUITTANCE_DEVNET_NODES: 'http://127.0.0.1:9', QUITTANCE_DEVNET_USDT: 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t' },
      ...(await arrange({ dataDir, database })),
    };
    const child = startProcess(['start'], { env });
    // At 'exit', the end of its output may not have arrived yet.
    const ended = once(child, 'close');
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk) => {
        output += chunk;
        if (output.includes('"msg":"ready"')) child.kill();
      });
    }
    expect((await ended)[0], output).toBe(code);
    expect(output).toMatch(says);
    expect(output).not.toContain('left resources open');
  },
);
