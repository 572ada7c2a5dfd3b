import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runListen } from '../../src/cli/developer/listen.ts';
import { printTriggered } from '../../src/cli/developer/sandbox.ts';
import { EVENT_TYPES } from '../../src/core/domain/event.ts';
import { TRIGGERS } from '../../src/developer/trigger/triggers.ts';
import { type SandboxProcess, startSandboxProcess } from '../support/sandbox.ts';
import { eventually, type Json } from '../support/service.ts';
import { recordTerminal } from '../support/terminal.ts';

let dataDir: string;
let sandbox: SandboxProcess;
let receiver: Server;
const arrived: { headers: Record<string, string>; body: string }[] = [];
beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'quittance-trigger-'));
  await chmod(dataDir, 0o711);
  // With this many producers and pauses, a payment is CONFIRMING for six seconds, so that a busy machine sees it too.
  sandbox = await startSandboxProcess(dataDir, { QUITTANCE_DEVNET_PRODUCERS: '27', QUITTANCE_DEVNET_BLOCK_MS: '300' });
  receiver = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      const headers = request.headers as Record<string, string>;
      arrived.push({ headers, body: Buffer.concat(chunks).toString() });
      response.end();
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
});
afterAll(async () => {
  receiver.closeAllConnections();
  receiver.close();
  await sandbox.end('SIGINT');
  await rm(dataDir, { recursive: true, force: true });
});

const newTerminal = () =>
  recordTerminal({ json: true, env: { QUITTANCE_DATA_DIR: dataDir, XDG_STATE_HOME: join(dataDir, 'state') } });

const isAboutInvoice = (type: string) => !['ping', 'endpoint.disabled', 'transfer.refunded'].includes(type);

test('every event can be triggered, and listen beside it forwards each with a signature that verifies', async () => {
  expect(Object.keys(TRIGGERS).sort()).toEqual([...EVENT_TYPES].sort());
  const terminal = newTerminal();
  const controller = new AbortController();
  // Neither key nor server is given, so both are the sandbox's.
  const forwardTo = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`;
  const control = { signal: controller.signal, pollMs: 50 };
  const listening = runListen(terminal, { forwardTo, after: 'beginning' }, control);
  try {
    const run = async (type: string) => {
      const options = isAboutInvoice(type) ? { externalId: `order-${type}` } : {};
      const { data, text } = await printTriggered(newTerminal(), type, options);
      return { type, data: data as Json, text: String(text) };
    };
    const others = Object.keys(TRIGGERS).filter((type) => type !== 'invoice.pending');
    const reported = await Promise.all(others.map(run));
    // Runs alone, because it removes others' payments from the chain.
    reported.push(await run('invoice.pending'));
    const { secret } = JSON.parse(terminal.written.stdout.split('\n')[0] ?? '');
    for (const { type, data, text } of reported) {
      expect(data).toMatchObject({ type, id: data.event.id, event: { type } });
      const [id = '', body] = text.split('\n');
      const arrival = await eventually(
        () => arrived.find(({ headers }) => headers['webhook-id'] === id),
        (found) => found !== undefined,
      );
      expect(arrival?.body).toBe(body);
      new Webhook(secret).verify(arrival?.body ?? '', arrival?.headers ?? {});
      if (type === 'ping') expect(data.event.data.endpointId).toMatch(/^whe_/);
      if (type.startsWith('invoice.')) expect(data.event.data.externalId).toContain(`order-${type}`);
    }
  } finally {
    controller.abort();
    await listening;
  }
});

test('listen gives the key of the sandbox to no other server', async () => {
  const { port } = receiver.address() as AddressInfo;
  const options = { forwardTo: `http://127.0.0.1:${port}/hook`, server: `http://127.0.0.1:${port}` };
  const count = arrived.length;
  const control = { signal: new AbortController().signal };
  await expect(runListen(newTerminal(), options, control)).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringContaining(`${options.server} is not this data directory's sandbox`),
  });
  expect(arrived).toHaveLength(count);
});

test('endpoint.disabled can be triggered again, with the same endpoint', async () => {
  const [first, second] = [
    await printTriggered(newTerminal(), 'endpoint.disabled', {}),
    await printTriggered(newTerminal(), 'endpoint.disabled', {}),
  ].map(({ data }) => data as Json);
  expect(second.event.data.endpointId).toBe(first.event.data.endpointId);
  expect(second.event.id).not.toBe(first.event.id);
});

test('the amount is that of --amount, and what cannot be is refused', async () => {
  const run = (name: string, options: { amount?: string; externalId?: string }) =>
    printTriggered(newTerminal(), name, options);
  const { data, text } = await run('invoice.expired', { amount: '7.50', externalId: 'seven\u202e' });
  expect(text).toContain('"seven\\u202e"');
  expect((data as Json).event.data.payment.requestedAmount).toBe('7.500000');
  await expect(run('invoice.expired', { externalId: 'seven\u202e' })).rejects.toMatchObject({ code: 'CONFLICT' });
  await expect(run('invoice.paid', { amount: '0' })).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringContaining('amount'),
  });
  await expect(run('ping', { amount: '1' })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  await expect(run('invoice.payed', {})).rejects.toMatchObject({
    message: expect.stringContaining('choose invoice.confirming, invoice.paid'),
  });
});
