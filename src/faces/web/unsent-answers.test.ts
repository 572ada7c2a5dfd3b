import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import Fastify from 'fastify';
import { expect, test } from 'vitest';
import { eventually } from '../../../test/support/service.ts';
import { boundUnsentAnswers } from './server.ts';

const ANSWER = 'x'.repeat(100_000);

test('who asks for a hundred large answers at once and reads none is cut, and who reads gets every byte', async () => {
  const app = Fastify();
  boundUnsentAnswers(app, 40 * ANSWER.length);
  app.get('/large', async () => ANSWER);
  await app.listen({ host: '127.0.0.1', port: 0 });
  try {
    const { port } = app.server.address() as AddressInfo;
    const silent = connect(port, '127.0.0.1');
    const cut = new Promise<unknown>((resolve) => silent.once('close', resolve));
    // A reset is one of the ways to notice it.
    silent.on('error', () => undefined);
    silent.pause();
    silent.write('GET /large HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(100));
    await once(app.server, 'request');
    const answers = await Promise.all(
      Array.from({ length: 20 }, async () => (await fetch(`http://127.0.0.1:${port}/large`)).text()),
    );
    expect(answers.every((text) => text === ANSWER)).toBe(true);
    silent.resume();
    await cut;
    expect(silent.bytesRead).toBeLessThan(100 * ANSWER.length);
  } finally {
    await app.close();
  }
});

test('answers that were taken, and those of clients that hung up before, are not waited for', async () => {
  const app = Fastify();
  const unsentBytes = boundUnsentAnswers(app);
  const state = { asked: 0, sent: 0, release: () => {} };
  const released = new Promise<void>((resolve) => {
    state.release = resolve;
  });
  app.get('/large', async () => {
    state.asked += 1;
    await released;
    return ANSWER;
  });
  app.addHook('onSend', async () => {
    state.sent += 1;
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  try {
    const { port } = app.server.address() as AddressInfo;
    const reading = fetch(`http://127.0.0.1:${port}/large`).then((answer) => answer.text());
    const sockets = Array.from({ length: 5 }, () => connect(port, '127.0.0.1'));
    let closed = 0;
    app.server.on('connection', (socket) => socket.once('close', () => (closed += 1)));
    for (const socket of sockets) socket.write('GET /large HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(2));
    await eventually(
      () => state.asked,
      (asked) => asked === 11,
    );
    for (const socket of sockets) socket.destroy();
    await eventually(
      () => closed,
      (count) => count >= sockets.length,
    );
    state.release();
    expect(await reading).toBe(ANSWER);
    await eventually(
      () => state.sent,
      (sent) => sent === 11,
    );
    await eventually(unsentBytes, (bytes) => bytes === 0);
  } finally {
    await app.close();
  }
});
