import { once } from 'node:events';
import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { newDirectory, runProcess, startProcess } from './run-cli.ts';

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
