import { Agent, type IncomingMessage, request } from 'node:http';

/**
 * `open` opens a stream for each link, like many browsers behind one reverse proxy. `heard` returns the events since the last call. `load`
 * reads pages as fast as possible for some seconds.
 */
export type ReadersOrder =
  | { kind: 'open'; url: string; tokens: string[] }
  | { kind: 'heard' }
  | { kind: 'close' }
  | { kind: 'load'; url: string; tokens: string[]; seconds: number };

/** An event of type `page`: its link, its time (Unix milliseconds with fractions), and its text. */
export type Heard = { token: string; at: number; state: string; isBlind: boolean };
export type HeardAnswer = { heard: Heard[]; bytes: number; open: number };
export type LoadAnswer = { perSecond: number; p50: number; p99: number };

const OPENING = 100;
const LOADING = 4;
/** If so many clients shared one address, the service would refuse the page to all of them. */
const CLIENTS = 200;

const streams = new Map<string, IncomingMessage>();
const keptAlive = new Agent({ keepAlive: true, maxSockets: LOADING });
let heard: Heard[] = [];
let bytes = 0;

process.on('message', (order: ReadersOrder) => {
  answer(order).then(
    (result) => process.send?.(result),
    (error: Error) => process.send?.({ error: error.message }),
  );
});
process.on('disconnect', () => process.exit());
process.send?.({ ready: true });

async function answer(order: ReadersOrder): Promise<object> {
  switch (order.kind) {
    case 'open':
      await inParallel(order.tokens, OPENING, (token, index) => openStream(order.url, token, index));
      return { open: streams.size };
    case 'heard': {
      const result: HeardAnswer = { heard, bytes, open: streams.size };
      [heard, bytes] = [[], 0];
      return result;
    }
    case 'close':
      for (const stream of streams.values()) stream.destroy();
      streams.clear();
      return { open: 0 };
    case 'load':
      return load(order);
  }
}

async function openStream(url: string, token: string, index: number): Promise<void> {
  const stream = await get(`${url}/c/${token}/live?lang=en`, index, false);
  if (stream.statusCode !== 200) throw new Error(`a stream was answered ${stream.statusCode}`);
  streams.set(token, stream);
  let waiting = '';
  stream.setEncoding('utf8');
  stream.on('error', () => undefined);
  stream.on('close', () => streams.delete(token));
  await new Promise<void>((resolve) => {
    stream.on('data', (part: string) => {
      const at = performance.timeOrigin + performance.now();
      bytes += part.length;
      const blocks = (waiting + part).split('\n\n');
      waiting = blocks.pop() ?? '';
      for (const block of blocks) {
        if (!block.startsWith('event: page')) continue;
        const state = /"state":"(\w+)"/.exec(block)?.[1] ?? '';
        heard.push({ token, at, state, isBlind: block.includes('We cannot see the TRON network') });
        resolve();
      }
    });
  });
}

async function load({ url, tokens, seconds }: { url: string; tokens: string[]; seconds: number }): Promise<LoadAnswer> {
  const latencies: number[] = [];
  const end = performance.now() + seconds * 1000;
  const loop = async (_: unknown, index: number) => {
    for (let i = index; performance.now() < end; i += LOADING) {
      const startedMs = performance.now();
      const page = await get(`${url}/c/${tokens[i % tokens.length]}`, i, true);
      if (page.statusCode !== 200) throw new Error(`a page was answered ${page.statusCode}`);
      for await (const _part of page) {
        // The page is there when its last byte is.
      }
      latencies.push(performance.now() - startedMs);
    }
  };
  await inParallel(Array(LOADING).fill(0), LOADING, loop);
  const sorted = latencies.toSorted((a, b) => a - b);
  const quantile = (share: number) => sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
  return { perSecond: latencies.length / seconds, p50: quantile(0.5), p99: quantile(0.99) };
}

function get(url: string, client: number, isKept: boolean): Promise<IncomingMessage> {
  const address = `198.51.${100 + Math.floor((client % CLIENTS) / 100)}.${client % 100}`;
  const headers = { 'x-forwarded-for': address, 'accept-encoding': 'gzip' };
  return new Promise((resolve, reject) => {
    request(url, { headers, agent: isKept ? keptAlive : false }, resolve)
      .on('error', reject)
      .end();
  });
}

async function inParallel<Item>(
  items: Item[],
  size: number,
  work: (item: Item, index: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < items.length) {
      const index = next++;
      await work(items[index] as Item, index);
    }
  };
  await Promise.all(Array.from({ length: size }, worker));
}
