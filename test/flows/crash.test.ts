import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { isRunning } from '../../src/core/runtime/processes.ts';
import { type SandboxProcess, startSandboxProcess } from '../support/sandbox.ts';
import { call, eventually, type Json } from '../support/service.ts';
import { someCases } from '../support/some-cases.ts';

let dataDir: string;
let sandbox: SandboxProcess;
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'quittance-crash-'));
  // When started by root, PostgreSQL runs as another user, who must be able to pass through.
  await chmod(dataDir, 0o711);
  sandbox = await startSandboxProcess(dataDir);
});
afterEach(async () => {
  await sandbox.end('SIGKILL');
  await eventually(
    () => isRunning(sandbox.postgresPid),
    (alive) => !alive,
  );
  await rm(dataDir, { recursive: true, force: true });
});

const headers = () => ({ 'x-api-key': sandbox.file.apiKey, 'content-type': 'application/json' });

function create(externalId: string): Promise<Json> {
  return call(`${sandbox.file.baseUrl}/v1/invoices`, {
    method: 'POST',
    headers: { ...headers(), 'idempotency-key': `key-${externalId}` },
    body: JSON.stringify({ amount: '25.00', asset: 'USDT', network: 'TRON', externalId }),
  });
}

async function read(id: string): Promise<Json> {
  const { body } = await call(`${sandbox.file.baseUrl}/v1/invoices/${id}?expand=payment`, { headers: headers() });
  return body;
}

// test/processes/kill-loop.test.ts covers the effect of kill -9 on the books.
test('after kill -9 no process of ours is left', async () => {
  const { postgresPid } = sandbox;
  await sandbox.end('SIGKILL');
  await eventually(
    () => isRunning(postgresPid),
    (alive) => !alive,
  );
});

test.each(someCases(['SIGTERM', 'SIGINT'] as const, 2))(
  '%s stops everything within 10 s, and the next start goes on',
  async (signal) => {
    const { body } = await create('order-1');
    const { code, elapsedMs } = await sandbox.end(signal);
    expect(code).toBe(0);
    expect(elapsedMs).toBeLessThan(10_000);
    expect(isRunning(sandbox.postgresPid)).toBe(false);
    sandbox = await startSandboxProcess(dataDir);
    expect((await read(body.invoiceId)).status).toBe('PENDING');
  },
);
