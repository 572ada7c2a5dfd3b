import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { UnixMs } from '../domain/time.ts';
import { inSlices } from '../runtime/in-slices.ts';

/** A stream of events to one browser (WHATWG HTML, 9.2). */
export type LiveStream = {
  /** `data` is one line. The browser sends the last `id` that it got when it connects again. */
  send(event: string, id: string, data: string): void;
  end(): void;
};

export type LiveStreams = {
  /** Answers with a stream; `headers` name its type. It ends by itself after an hour, and the browser connects again. */
  open(response: ServerResponse, headers: OutgoingHttpHeaders): LiveStream;
  stop(): void;
};

export const STREAM_HEADERS = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  // A proxy that compresses or gathers a stream holds it back.
  'Cache-Control': 'no-store, no-transform',
  'X-Accel-Buffering': 'no',
};

/** Half of the time that the server bears without a byte (30 s), and less than proxies bear (60 s as a rule). */
const BEAT_MS = 15_000;
/** An hour, and up to 12 minutes more, so that those which were opened together do not come back together. */
const LIFE_BEATS = { least: 240, spread: 48 };
/** A whole page takes 10 KB. A reader that has not taken several of them is not there any more. */
const MAX_WAITING_BYTES = 64 * 1024;
const RETRY_MS = 3000;
/** Other work waits no longer than this for the process. */
const SLICE_MS = 10;
/** The time for readers that take no bytes when the service stops. */
const STOP_MS = 1000;

type Open = { response: ServerResponse; beatsLeft: number };

/**
 * Streams of one process. Each gets the time of the server as an event `beat`, at once and then every 15 s from one timer: a browser
 * that misses it knows that the connection is dead. A reader that does not take its bytes is cut.
 */
export function createLiveStreams({ now, beatMs = BEAT_MS }: { now(): UnixMs; beatMs?: number }): LiveStreams {
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
    open: (response, headers) => {
      const stream = { response, beatsLeft: LIFE_BEATS.least + (opened % LIFE_BEATS.spread) };
      opened += 1;
      streams.add(stream);
      response.once('close', () => {
        streams.delete(stream);
        toBeat.remove(stream);
      });
      // A connection that has carried a stream is not worth keeping, and one that is kept would hold up the end of the service.
      response.writeHead(200, { ...headers, Connection: 'close' });
      // The first beat comes at once: a page that does not get it knows that something on the way holds streams back.
      response.write(`retry: ${RETRY_MS}\n${beat()}`);
      if (isStopped) response.end();
      return {
        send: (event, id, data) => write(response, `event: ${event}\nid: ${id}\ndata: ${data}\n\n`),
        end: () => response.end(),
      };
    },
    stop: () => {
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
