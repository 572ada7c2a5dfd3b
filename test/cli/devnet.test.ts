import { once } from 'node:events';
import { createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { formatAmount, microUsdt } from '../../src/core/domain/money.ts';
import { PLAIN_SCENARIO_NAMES } from '../../src/developer/scenarios/scenarios.ts';
import { createInvoice, payableOf, startTestService, untilStatus } from '../support/service.ts';
import { newDirectory, runCli, runProcess, startProcess } from './run-cli.ts';

test('devnet runs a network until it is told to stop, and keeps its chain', async () => {
  const options = { env: { QUITTANCE_DATA_DIR: newDirectory() } };
  const blockIds: string[] = [];
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    const child = startProcess(['devnet', '--port', '0', '--block-ms', '60000', '--json'], options);
    let stdout = '';
    for await (const chunk of child.stdout) {
      stdout += chunk;
      if (stdout.endsWith('}\n')) break;
    }
    const shown = JSON.parse(stdout);
    expect(shown).toMatchObject({
      url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
      usdtContract: expect.stringMatching(/^T.{33}$/),
      payer: { address: expect.stringMatching(/^T.{33}$/), privateKey: expect.stringMatching(/^[0-9a-f]{64}$/) },
    });
    const answer = await fetch(`${shown.url}/wallet/getblockbynum`, { method: 'POST', body: '{"num":1}' });
    blockIds.push(((await answer.json()) as { blockID: string }).blockID);
    const closed = once(child, 'close');
    child.kill(signal);
    expect(await closed).toEqual([0, null]);
  }
  expect(blockIds[0]).toMatch(/^[0-9a-f]{64}$/);
  expect(blockIds[1]).toBe(blockIds[0]);
});

test('devnet says every wrong option at once, and that a port is in use', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = String(typeof address === 'object' && address !== null ? address.port : 0);
  const [wrong, busy] = await Promise.all([
    runProcess(['devnet', '--port', 'x', '--block-ms', '1', '--producers', '28']),
    runProcess(['devnet', '--port', port, '--in-memory', '--json']),
  ]);
  server.close();
  expect(wrong.code).toBe(2);
  for (const option of ['--port is "x"', '--block-ms is "1"', '--producers is "28"'])
    expect(wrong.stderr).toContain(option);
  expect(busy).toMatchObject({
    code: 5,
    json: { error: { code: 'PORT_IN_USE', message: expect.stringContaining(port) } },
  });
});

test('devnet pay plays the payer on a network that runs alone, in each way that needs no sandbox', async () => {
  const service = await startTestService();
  onTestFinished(() => service.stop());
  const { body } = await createInvoice(service);
  const { address, amountMicro } = await payableOf(service, body.invoiceId);
  const amount = formatAmount(microUsdt(amountMicro));
  const pay = (...args: string[]) => runCli(['devnet', 'pay', ...args, '--node', service.devnet.url, '--json']);
  for (const scenario of PLAIN_SCENARIO_NAMES) {
    const { code, json } = await pay(address, amount, '--scenario', scenario);
    expect([scenario, code, json.sent[0].txId]).toEqual([scenario, 0, expect.stringMatching(/^[0-9a-f]{64}$/)]);
  }
  service.devnet.mineUntilSolid();
  await untilStatus(service, body.invoiceId, 'PAID');
});

test('devnet pay names all that is wrong, and a network that does not run', async () => {
  const wrong = await runCli(['devnet', 'pay', 'TX', '1,5', '--node', 'grpc://127.0.0.1:1']);
  expect(wrong.code).toBe(2);
  for (const text of ['the address "TX"', 'the amount "1,5"', '--node is "grpc://127.0.0.1:1"']) {
    expect(wrong.stderr).toContain(text);
  }
  const address = 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t';
  const silent = await runCli(['devnet', 'pay', address, '1', '--node', 'http://127.0.0.1:9']);
  expect([silent.code, silent.stderr]).toEqual([5, expect.stringContaining('run "quittance devnet"')]);
  const other = await runCli(['devnet', 'pay', address, '1', '--scenario', 'late']);
  expect([other.code, other.stderr]).toEqual([2, expect.stringContaining('Allowed choices are exact')]);
});
