import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import { createLiveStreams, type LiveStream } from '../../src/faces/web/live-streams.ts';
import { openEventStream } from '../support/event-stream.ts';
import { eventually } from '../support/service.ts';

async function serve(beatMs: number) {
  const streams = createLiveStreams({ now: () => unixMs(1), beatMs });
  const open: (LiveStream & { isClosed: boolean })[] = [];
  const server = createServer((_request, response) => {
    const stream = Object.assign(streams.open(response, {}), { isClosed: false });
    response.on('close', () => {
      stream.isClosed = true;
    });
    open.push(stream);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    streams.stop();
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, open, streams };
}

test('a reader who does not take its bytes is cut, and others are not', async () => {
  const { url, open } = await serve(3_600_000);
  const [slow, well] = [await openEventStream(url), await openEventStream(url)];
  slow.pause();
  // More than the two kernels' buffers hold.
  const page = 'x'.repeat(1024 * 1024);
  let sentChars = 0;
  while (open[0]?.isClosed === false) {
    for (const stream of open) stream.send('page', 'version', page);
    sentChars += page.length;
    // A client that reads has received everything before more arrives.
    await eventually(
      () => well.text().length,
      (length) => length >= sentChars,
    );
    if (sentChars > 100 * page.length) throw new Error('who takes nothing is not cut');
  }
  expect([open[0]?.isClosed, open[1]?.isClosed, well.hasEnded()]).toEqual([true, false, false]);
});

test('a stream ends by itself after 240 beats, so that the browser comes back', async () => {
  const { url } = await serve(2);
  const stream = await openEventStream(url);
  await eventually(stream.hasEnded, (hasEnded) => hasEnded);
  expect(stream.text().match(/event: beat\ndata: 1\n\n/g)).toHaveLength(240);
});

test('a reader who takes no bytes does not hold up the stop', async () => {
  const { url, open, streams } = await serve(3_600_000);
  (await openEventStream(url)).pause();
  for (let i = 0; i < 20; i++) open[0]?.send('page', 'version', 'x'.repeat(1024 * 1024));
  streams.stop();
  await eventually(
    () => open[0]?.isClosed,
    (isClosed) => isClosed === true,
  );
});
