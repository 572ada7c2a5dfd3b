import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createLogger } from '../core/runtime/log.ts';
import { findServiceManager } from './service-manager.ts';

/** A fake `systemd-notify` that records the socket and the message. */
const SPEAKER = `#!/bin/sh
echo "$NOTIFY_SOCKET $*" >> "\${0%/*}/said"
`;

async function supervised(variables: NodeJS.ProcessEnv, { hasSpeaker = true } = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'quittance-notify-'));
  // The last message may still be being written.
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
  if (hasSpeaker) await writeFile(join(folder, 'systemd-notify'), SPEAKER, { mode: 0o755 });
  const env: NodeJS.ProcessEnv = { PATH: folder, ...variables };
  const lines: string[] = [];
  const log = createLogger({ level: 'info', destination: { write: (line) => void lines.push(line) } });
  const manager = findServiceManager(env, log);
  const said = () => {
    const path = join(folder, 'said');
    return existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n') : [];
  };
  return { env, manager, said, logged: () => lines.join('') };
}

/** Answers `GET /healthz` with `statusOf`, which receives the number of earlier requests. */
async function startHealth(statusOf: (before: number) => number) {
  let asked = 0;
  const server = createServer((_, response) => {
    response.writeHead(statusOf(asked)).end();
    asked += 1;
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked: () => asked };
}

test('systemd is told that it is ready, then that it lives, and that it stops', async () => {
  const { env, manager, said } = await supervised({ NOTIFY_SOCKET: '/run/notify', WATCHDOG_USEC: '90000' });
  expect(Object.keys(env)).toEqual(['PATH']);
  const { url } = await startHealth(() => 200);
  manager.ready(url);
  await expect.poll(said).toEqual(expect.arrayContaining(['/run/notify READY=1', '/run/notify WATCHDOG=1']));
  manager.stopping();
  await expect.poll(said).toContain('/run/notify STOPPING=1');
});

test('a process that does not answer itself is not told to live', async () => {
  const { manager, said, logged } = await supervised({ NOTIFY_SOCKET: '/run/notify', WATCHDOG_USEC: '90000' });
  const health = await startHealth((before) => (before < 2 ? 200 : 503));
  manager.ready(health.url);
  onTestFinished(() => manager.stopping());
  await expect.poll(health.asked).toBeGreaterThan(5);
  await expect.poll(said).toHaveLength(3);
  expect(said().sort()).toEqual(['/run/notify READY=1', '/run/notify WATCHDOG=1', '/run/notify WATCHDOG=1']);
  expect(logged().match(/does not respond to its own health check/g)).toHaveLength(1);
});

test('a process that listens nowhere is told to live while its event loop turns', async () => {
  const { manager, said } = await supervised({ NOTIFY_SOCKET: '/run/notify', WATCHDOG_USEC: '90000' });
  manager.ready(null);
  onTestFinished(() => manager.stopping());
  await expect.poll(said).toContain('/run/notify WATCHDOG=1');
});

test.each([
  ['of another process', { WATCHDOG_USEC: '3000', WATCHDOG_PID: '1' }],
  ['that is off', {}],
])('a watchdog %s is not told', async (_, watchdog) => {
  const { manager, said } = await supervised({ NOTIFY_SOCKET: '/run/notify', ...watchdog });
  const health = await startHealth(() => 200);
  manager.ready(health.url);
  manager.stopping();
  await expect.poll(() => said().sort()).toEqual(['/run/notify READY=1', '/run/notify STOPPING=1']);
  expect(health.asked()).toBe(0);
});

test('without systemd nobody is told', async () => {
  const { manager, said, logged } = await supervised({ WATCHDOG_USEC: '3000' });
  manager.ready(null);
  manager.stopping();
  expect({ said: said(), logged: logged() }).toEqual({ said: [], logged: '' });
});

test('where the program is missing, the log says so, and the process goes on', async () => {
  const { manager, logged } = await supervised({ NOTIFY_SOCKET: '/run/notify' }, { hasSpeaker: false });
  manager.ready(null);
  await expect.poll(logged).toContain('cannot notify systemd');
});
