import { expect, onTestFinished, test } from 'vitest';
import { MASTER_KEY } from '../admin/console-service.ts';
import { newDirectory } from '../cli/run-cli.ts';
import { startServiceProcess } from '../processes/service-process.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { findSteadyPort } from '../support/steady-port.ts';

test('a process with the role console alone shows the pages, for it opens the master key that it is given', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const port = await findSteadyPort();
  const env = {
    ...{ QUITTANCE_ROLES: 'console', QUITTANCE_CONSOLE_PORT: `${port}`, QUITTANCE_MASTER_KEY: MASTER_KEY },
    ...{ DATABASE_URL: database.connectionString, QUITTANCE_NILE_NODES: 'https://node.example' },
  };
  const process = await startServiceProcess({ env, folder: newDirectory() });
  onTestFinished(() => process.kill());
  expect(await process.ready, process.output()).toBe('ready');
  const response = await fetch(`http://localhost:${port}/sign-in`);
  expect([response.status, (await response.text()).includes('With a password')]).toEqual([200, true]);
});
