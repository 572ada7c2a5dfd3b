import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { UnixMs } from '../../core/domain/time.ts';
import { inSlices } from '../../core/runtime/concurrency.ts';

/** A stream of events to one browser (WHATWG HTML, 9.2). */
export type LiveStream = {
  /** `data` is one line. When the browser reconnects, it sends the last `id` that it received. */
  send(event: string, id: string, data: string): void;
  end(): void;
};

export const STREAM_HEADERS = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  // Keep proxies from compressing or buffering the stream, which would delay it.
  'Cache-Control': 'no-store, no-transform',
  'X-Accel-Buffering': 'no',
};

/** Half of the time for which the server allows silence (30 s), and less than proxies usually allow (60 s). */
const BEAT_MS = 15_000;
/** One hour plus up to 12 minutes so that streams opened together don't reconnect together. */
const LIFE_BEATS = { least: 240, spread: 48 };
/** A whole page has 10 KB. A reader that has left several pages unread must be gone. */
const MAX_WAITING_BYTES = 64 * 1024;
const RETRY_MS = 3000;
/** A slice blocks the process's other work for no longer than this. */
const SLICE_MS = 10;
/** How long a stopping service waits for readers that have stopped reading. */
const STOP_MS = 1000;

type Open = { response: ServerResponse; beatsLeft: number };

/**
 * Manages one process's streams. Each stream gets the server's time as an event `beat`, immediately and then every 15 s from a single
 * timer. If a browser misses it, it knows that the connection is dead. A reader that stops reading is disconnected.
 */
export function createLiveStreams({ now, beatMs = BEAT_MS }: { now(): UnixMs; beatMs?: number }) {
  const streams = new Set<Open>();
  let opened = 0;
  let isStopped = false;
  const beat = () => `event: beat\ndata: ${now()}\n\n`;
  const toBeat = inSlices<Open>(SLICE_MS, (stream) => {
    stream.beatsLeft -= 1;
    if (stream.beatsLeft <= 0) stream.response.end();
    else write(stream.response, beat());
  });
  const timer = setInterval(() => {
    for (const stream of streams) toBeat.add(stream);
  }, beatMs);
  return {
    /** Responds with a stream that has the headers in `headers`. It ends after an hour, and then the browser reconnects. */
    open: (response: ServerResponse, headers: OutgoingHttpHeaders): LiveStream => {
      const stream = { response, beatsLeft: LIFE_BEATS.least + (opened % LIFE_BEATS.spread) };
      opened += 1;
      streams.add(stream);
      response.once('close', () => {
        streams.delete(stream);
        toBeat.remove(stream);
      });
      // A connection that has carried a stream isn't worth keeping open, and would delay a stop of the service.
      response.writeHead(200, { ...headers, Connection: 'close' });
      // The first beat is sent immediately. If a page doesn't receive it, a proxy must be buffering the stream.
      response.write(`retry: ${RETRY_MS}\n${beat()}`);
      if (isStopped) response.end();
      return {
        send: (event, id, data) => write(response, `event: ${event}\nid: ${id}\ndata: ${data}\n\n`),
        end: () => response.end(),
      };
    },
    stop: (): void => {
      isStopped = true;
      clearInterval(timer);
      for (const { response } of streams) response.end();
      setTimeout(() => {
        for (const { response } of streams) response.destroy();
      }, STOP_MS).unref();
    },
  };
}

function write(response: ServerResponse, text: string): void {
  if (response.writableEnded || response.destroyed) return;
  if (response.writableLength > MAX_WAITING_BYTES) response.destroy();
  else response.write(text);
}
