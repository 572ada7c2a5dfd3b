import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { createLogger } from '../../core/runtime/log.ts';
import { boundConnections, type ConnectionLimits, noteCaller } from './bound-connections.ts';

const [ATTACKER, CLIENT, PROXY] = ['127.0.0.9', '127.0.0.2', '127.0.0.3'];
const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
const STREAM = REQUEST.replace('/', '/stream');
const CALL = REQUEST.replace('/', '/call');
const KNOWN_STREAM = REQUEST.replace('/', '/call-stream');

const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

/** A server that answers everything except streams, which stay open. It marks the sender of a call as known. */
async function startServer(limits: ConnectionLimits) {
  const server = createServer(({ url, socket }, response) => {
    if (url?.startsWith('/call')) noteCaller(socket);
    if (url?.endsWith('stream')) response.write('open');
    else response.end('answer');
  });
  boundConnections(server, { isProxy: (ip) => ip === PROXY, log: createLogger({ level: 'silent' }) }, limits);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const sockets: Socket[] = [];
  stops.push(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, 'close');
  });
  /** Connects, and waits until the server has accepted. */
  const open = async (from: string | undefined, bytes = '') => {
    const socket = connect({ port, host: '127.0.0.1', localAddress: from });
    // A reset is one of the ways to notice the close.
    socket.on('error', () => undefined);
    sockets.push(socket);
    const [accepted] = (await once(server, 'connection')) as [Socket];
    socket.setEncoding('latin1');
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
    const answered = bytes === '' ? null : once(socket, 'data').then(([text]) => String(text));
    socket.write(bytes);
    return { socket, accepted, closed, answered };
  };
  return { open };
}

type Open = Awaited<ReturnType<typeof startServer>>['open'];
type Connected = Awaited<ReturnType<Open>>;

const isOpen = ({ accepted }: { accepted: Socket }) => !accepted.destroyed;

test('who takes all places with half-open connections gives one up to each who comes, and nobody else does', async () => {
  const { open } = await startServer({ total: 4, idleOfNetwork: 100 });
  const other = await open(CLIENT);
  const half = [await open(ATTACKER), await open(ATTACKER), await open(ATTACKER)];
  const newcomer = await open('127.0.0.4', REQUEST);
  expect(await newcomer.answered).toMatch(/^HTTP\/1\.1 200/);
  await half[0]?.closed;
  expect([other, ...half].map(isOpen)).toEqual([true, false, true, true]);
});

test('what has been answered and rests is half-open too, and the oldest goes first', async () => {
  const { open } = await startServer({ total: 3, idleOfNetwork: 100 });
  const [answered, half] = [await open(ATTACKER, REQUEST), await open(ATTACKER)];
  await answered.answered;
  const later = await open(ATTACKER);
  await open(CLIENT);
  await half.closed;
  await open(CLIENT);
  await answered.closed;
  expect(isOpen(later)).toBe(true);
});

/** Opens `count` streams and waits until each has begun. */
async function openStreams(open: Open, from: string, count: number, request = STREAM) {
  const streams: Connected[] = [];
  while (streams.length < count) {
    const stream = await open(from, request);
    await stream.answered;
    streams.push(stream);
  }
  return streams;
}

test('who has more than half of all places with streams loses the oldest to each network that comes, down to a half', async () => {
  const { open } = await startServer({ total: 6, idleOfNetwork: 100 });
  const streams = await openStreams(open, ATTACKER, 6);
  const others = [];
  for (const from of [CLIENT, '127.0.0.4', '127.0.0.5']) others.push(...(await openStreams(open, from, 1)));
  const newcomer = await open('127.0.0.6');
  await newcomer.closed;
  expect(streams.map(isOpen)).toEqual([false, false, false, true, true, true]);
  expect(others.map(isOpen)).toEqual([true, true, true]);
});

test('no stream is cut for another of its network: behind a proxy that nobody named, who comes when only such are left is closed', async () => {
  const { open } = await startServer({ total: 3, idleOfNetwork: 1 });
  const streams = await openStreams(open, CLIENT, 3);
  const newcomer = await open(CLIENT);
  await newcomer.closed;
  expect(streams.map(isOpen)).toEqual([true, true, true]);
});

test('no stream is cut where nobody has more than half of all places', async () => {
  const { open } = await startServer({ total: 4, idleOfNetwork: 100 });
  const streams = [...(await openStreams(open, ATTACKER, 2)), ...(await openStreams(open, CLIENT, 2))];
  const newcomer = await open('127.0.0.4');
  await newcomer.closed;
  expect(streams.map(isOpen)).toEqual([true, true, true, true]);
});

test('no stream of a trusted proxy is cut, nor of a caller who is known, whether before it began or since', async () => {
  const { open } = await startServer({ total: 3, idleOfNetwork: 100 });
  const proxied = await openStreams(open, PROXY, 3);
  await (await open(CLIENT)).closed;
  expect(proxied.map(isOpen)).toEqual([true, true, true]);

  const other = await startServer({ total: 4, idleOfNetwork: 100 });
  const before = await other.open(CLIENT, CALL);
  await before.answered;
  before.socket.write(STREAM);
  await once(before.socket, 'data');
  const since = await openStreams(other.open, CLIENT, 1, KNOWN_STREAM);
  const strangers = await openStreams(other.open, CLIENT, 2);
  await (await other.open(ATTACKER)).closed;
  expect([before, ...since, ...strangers].map(isOpen)).toEqual([true, true, true, true]);
});

test('who has more than half of all places does not take the only connection of another, before its request was read', async () => {
  const { open } = await startServer({ total: 3, idleOfNetwork: 100 });
  const streams = await openStreams(open, ATTACKER, 3);
  const fresh = await open(CLIENT);
  await (await open(ATTACKER)).closed;
  expect([...streams, fresh].map(isOpen)).toEqual([false, true, true, true]);
});

test('connections of callers who are known, and of trusted proxies, go last', async () => {
  const { open } = await startServer({ total: 4, idleOfNetwork: 100 });
  const known = [await open(CLIENT, CALL), await open(CLIENT, CALL), await open(PROXY)];
  for (const { answered } of known) await answered;
  const stranger = await open(ATTACKER);
  const next = await open(ATTACKER, STREAM);
  await stranger.closed;
  await next.answered;
  expect(known.map(isOpen)).toEqual([true, true, true]);
  await open('127.0.0.4');
  await known[0]?.closed;
  expect(known.map(isOpen)).toEqual([false, true, true]);
});

test('of one network only so many rest, whoever else there is; a trusted proxy may have more', async () => {
  const { open } = await startServer({ total: 100, idleOfNetwork: 2 });
  const proxied = [await open(PROXY), await open(PROXY), await open(PROXY)];
  const [other, stream] = [await open(CLIENT), await open(ATTACKER, STREAM)];
  await stream.answered;
  const half = [await open(ATTACKER), await open(ATTACKER), await open(ATTACKER)];
  await half[0]?.closed;
  expect([...proxied, other, stream, ...half].map(isOpen)).toEqual([true, true, true, true, true, false, true, true]);
});

test('of the known callers of a network only so many rest too, beside its strangers', async () => {
  const { open } = await startServer({ total: 100, idleOfNetwork: 2 });
  const known = [];
  while (known.length < 3) {
    const caller = await open(CLIENT, CALL);
    await caller.answered;
    known.push(caller);
  }
  const strangers = [await open(CLIENT), await open(CLIENT)];
  await known[0]?.closed;
  expect([...known, ...strangers].map(isOpen)).toEqual([false, true, true, true, true]);
});
