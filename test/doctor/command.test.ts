import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { newDirectory, runCli } from '../cli/run-cli.ts';
import { startSandboxProcess } from '../support/sandbox.ts';
import { countSeconds } from './doctored.ts';

const nameOf = ({ name }: { name: string }) => name;

test('beside a sandbox that runs, and after it has stopped, nothing has failed', async () => {
  const dataDir = newDirectory();
  const sandbox = await startSandboxProcess(dataDir);
  onTestFinished(() => void sandbox.end('SIGKILL'));
  const env = { QUITTANCE_DATA_DIR: dataDir };
  const running = await runCli(['doctor', '--json'], { env });
  expect(running.json.checks.filter(({ state }: { state: string }) => state === 'failed')).toEqual([]);
  expect(running).toMatchObject({ code: 0, json: { good: true, counts: { failed: 0 } } });
  const good = running.json.checks.filter(({ state }: { state: string }) => state === 'good').map(nameOf);
  expect(good).toEqual(
    expect.arrayContaining(['database-durability', 'public-url', 'streams', 'nodes-answer', 'service']),
  );
  await sandbox.end('SIGINT');

  const stopped = await runCli(['doctor'], { env });
  expect(stopped.stdout).toMatch(/^WARNING\n/);
  expect(stopped.stdout).toContain('NOT CHECKED\n');
  expect(stopped.stdout).toMatch(
    /networks-watched: devnet has active addresses, but has (never had a|had no) running watcher/,
  );
  expect(stopped.code).toBe(0);
});

test('a database that does not answer is what has failed, with its fix, and the rest is not looked at', async () => {
  const env = { DATABASE_URL: 'postgres://nobody@127.0.0.1:9/nothing' };
  const { code, stdout } = await runCli(['doctor'], { env });
  expect(code).toBe(1);
  expect(stdout).toMatch(/^FAILED\n/);
  expect(stdout).toMatch(/ {2}database: .*\n {4}→ .*DATABASE_URL/);
  const lines = stdout.split('\n').map((line) => line.replace(/^[^:]*: /, '').trim());
  const twice = lines.filter((line, index) => line !== '' && lines.indexOf(line) !== index);
  expect(twice).toEqual([]);
});

test('a database that takes connections and says nothing costs less than ten seconds', async () => {
  const server = createServer((socket) => socket.on('error', () => undefined));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const env = { DATABASE_URL: `postgres://a@127.0.0.1:${port}/b` };
  const { result, seconds } = await countSeconds(() => runCli(['doctor', '--json'], { env }));
  expect(seconds).toBeLessThan(10);
  expect(result.code).toBe(1);
  expect(result.json.checks[0]).toMatchObject({ name: 'database', state: 'failed' });
});

test('no database at all, and settings that are wrong', async () => {
  const nowhere = await runCli(['doctor', '--json'], { env: { QUITTANCE_DATA_DIR: newDirectory() } });
  expect(nowhere).toMatchObject({ code: 1, json: { good: false } });
  const wrong = await runCli(['doctor', '--json'], { env: { QUITTANCE_PORT: 'x' } });
  expect(wrong).toMatchObject({ code: 2, json: { error: { code: 'CONFIG_INVALID' } } });
});
