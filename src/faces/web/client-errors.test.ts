import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { createClientErrors } from './server.ts';

test('a request whose body turns out to be no HTTP, and that is answered while one before it is, gets no second answer', async () => {
  const errors = createClientErrors({ publicUrl: () => 'http://q', newRequestId: () => 'req_1' });
  const answers: ServerResponse[] = [];
  const server = createServer((_request, response) => void answers.push(response));
  errors.follow(server);
  const broken = new Promise<void>((resolve) => {
    server.on('clientError', (error, socket) => {
      errors.answer(error, socket as Socket);
      resolve();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  onTestFinished(() => {
    client.destroy();
    server.close();
  });
  const head = 'HTTP/1.1\r\nHost: q\r\n';
  client.write(`GET /first ${head}\r\nHEAD /second ${head}Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\nno size\r\n`);
  await broken;
  const [first, second] = answers;
  second?.writeHead(400).end();
  first?.writeHead(200, { 'Content-Length': 0 }).end();
  const statuses = (await text(client)).match(/HTTP\/1\.1 \d+/g);
  expect(statuses).toEqual(['HTTP/1.1 200', 'HTTP/1.1 400']);
});
