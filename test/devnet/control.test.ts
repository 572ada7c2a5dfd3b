import { request } from 'node:http';
import { isFromThisMachine } from '@quittance/devnet/node/control';
import { describe, expect, test } from 'vitest';
import { askNode, askNodeText, payerOf, startTestDevnet } from '../support/devnet.ts';

const RECIPIENT = 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH';
const PATH = '/devnet/fork';

test('POST /devnet/fork orphans the block of a transaction and all later ones, and forgets their transactions', async () => {
  const devnet = await startTestDevnet();
  devnet.mine(10);
  const id = await payerOf(devnet).transfer({ contract: devnet.usdtContract, to: RECIPIENT, amountMicro: 1n });
  devnet.mine(2);
  const answer = await askNode(devnet.url, PATH, { transactionId: id, keepTransactions: false });
  expect(answer).toEqual({ orphaned: 2, head: devnet.head() });
  devnet.mineUntilSolid();
  expect(await askNode(devnet.url, '/wallet/gettransactionbyid', { value: id })).toEqual({});
});

test('POST /devnet/fork takes a depth as well, and keeps the transactions when told to', async () => {
  const devnet = await startTestDevnet();
  devnet.mine(10);
  await payerOf(devnet).transfer({ contract: devnet.usdtContract, to: RECIPIENT, amountMicro: 1n });
  const [block] = devnet.mine();
  expect(await askNode(devnet.url, PATH, { depth: 1, keepTransactions: true })).toMatchObject({ orphaned: 1 });
  expect(devnet.pendingCount()).toBe(1);
  expect(await askNode(devnet.url, '/wallet/getblock', { id_or_num: block?.id })).toEqual({});
});

test('what is solid or unknown cannot be orphaned: status 409', async () => {
  const devnet = await startTestDevnet();
  const id = await payerOf(devnet).transfer({ contract: devnet.usdtContract, to: RECIPIENT, amountMicro: 1n });
  devnet.mineUntilSolid();
  const head = devnet.head();
  for (const body of [{ transactionId: id }, { transactionId: 'ff' }, { depth: 4 }, {}]) {
    expect(await askNodeText(devnet.url, PATH, body)).toMatchObject({
      status: 409,
      text: expect.stringContaining('error'),
    });
  }
  expect((await askNodeText(devnet.url, PATH, { depth: 'x' })).status).toBe(400);
  expect(devnet.head()).toEqual(head);
});

test('only the first node obeys, only to POST, and only on this machine', async () => {
  const devnet = await startTestDevnet();
  devnet.mine(10);
  const other = await devnet.addNode();
  expect((await askNodeText(other.url, PATH, { depth: 1 })).status).toBe(405);
  expect((await fetch(devnet.url + PATH)).status).toBe(404);
  expect(['127.0.0.1', '127.1.2.3', '::1', '::ffff:127.0.0.1'].map(isFromThisMachine)).toEqual([
    true,
    true,
    true,
    true,
  ]);
  expect(['10.0.0.1', '::ffff:10.0.0.1', 'fe80::1', undefined].map(isFromThisMachine)).toEqual([
    false,
    false,
    false,
    false,
  ]);
});

describe('a page of another website', () => {
  const OWN = { 'content-type': 'application/json' };

  /** Sends the headers unchanged, which fetch doesn't. */
  const send = (url: string, headers: Record<string, string>, path = PATH) =>
    new Promise<number | undefined>((resolve, reject) => {
      const sending = request(url + path, { method: 'POST', headers: { ...OWN, ...headers } }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      sending.on('error', reject).end('{"depth":1}');
    });

  test('forks nothing, neither under its own name nor by what browsers send without asking', async () => {
    const devnet = await startTestDevnet();
    devnet.mine(10);
    const head = devnet.head();
    const { port, host } = new URL(devnet.url);
    const origin = 'https://evil.example';
    for (const headers of [
      { host: 'evil.example', origin, 'content-type': 'text/plain' },
      { host: `evil.example:${port}` },
      { host: `127.0.0.1.evil.example:${port}` },
      { host: '127.0.0.1' },
      { host: `127.0.0.1:${Number(port) + 1}` },
      { host: `user@127.0.0.1:${port}` },
      { origin },
      { origin: 'null' },
      { origin: `http://localhost:${port}` },
      { origin: `https://${host}` },
      { 'content-type': 'text/plain' },
      { 'content-type': 'text/plain; a=application/json' },
      { 'content-type': 'application/x-www-form-urlencoded' },
      { 'content-type': 'application/json-seq' },
    ]) {
      expect([headers, await send(devnet.url, headers)]).toEqual([headers, 403]);
    }
    expect(devnet.head()).toEqual(head);
  });

  test('is told apart from a program of this machine, by any of its loopback names or the name that it listens on', async () => {
    const devnet = await startTestDevnet({ host: 'localhost' });
    devnet.mine(10);
    const { port, host } = new URL(devnet.url);
    for (const headers of [
      { host: `127.0.0.1:${port}` },
      { host: `[::1]:${port}` },
      { host: `LocalHost:${port}` },
      { origin: `http://${host}` },
      { 'content-type': 'Application/JSON ; charset=utf-8' },
    ]) {
      devnet.mine();
      expect([headers, await send(devnet.url, headers)]).toEqual([headers, 200]);
    }
  });

  test('may ask what every real node answers to anybody: a wallet in a browser is another origin', async () => {
    const devnet = await startTestDevnet();
    const asked = { host: 'node.example', origin: 'https://shop.example', 'content-type': 'text/plain' };
    expect(await send(devnet.url, asked, '/wallet/getnowblock')).toBe(200);
  });
});
