import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { foreignRequest } from './foreign-request.ts';

test.each([
  ['box.example', 'Box.example'],
  ['::', '[::1]'],
  ['fd00::17', '[fd00::17]'],
])('a listener that was told to use %s is asked by the name %s', async (reported, name) => {
  const server = createServer((incoming, response) => response.end(foreignRequest(incoming, reported) ?? 'own'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const ask = (host: string) =>
    new Promise((resolve, reject) => {
      const sending = request({ port, headers: { host, connection: 'close' } }, async (response) => {
        for await (const chunk of response) resolve(String(chunk));
      });
      sending.on('error', reject).end();
    });
  expect(await ask(`${name}:${port}`)).toBe('own');
  expect(await ask(name)).toContain('Host');
  expect(await ask(`other.example:${port}`)).toContain('Host');
});
