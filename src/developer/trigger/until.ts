import { AppError } from '../../core/domain/errors.ts';
import { asObject, parseObject } from '../../core/runtime/parse-object.ts';
import type { FeedReader } from '../listen/follow-feed.ts';
import { pause } from '../listen/pause.ts';
import { readEvent } from '../listen/read-event.ts';

/** An event from the feed: its bytes as text, and its parsed content. */
export type FeedEvent = { id: string; type: string; data: Record<string, unknown>; body: string };

/** Waits for a matching event in the feed. */
export type Until = (isIt: (event: FeedEvent) => boolean) => Promise<FeedEvent>;

/** The maximum number of events that the feed returns at a time. */
const PAGE = 100;
const POLL_MS = 100;

/** Returns a function that waits for a matching event. It checks each event from now on exactly once. */
export async function followFrom(feed: FeedReader, signal: AbortSignal): Promise<Until> {
  let { latest: cursor } = await feed.read(null, 1);
  return async (isIt) => {
    for (;;) {
      const page = await feed.read(cursor, PAGE);
      for (const bytes of page.events) {
        const event = toEvent(bytes);
        cursor = event.id;
        if (isIt(event)) return event;
      }
      if (!page.hasMore) await pause(POLL_MS, signal);
    }
  };
}

function toEvent(bytes: Uint8Array): FeedEvent {
  const event = readEvent(bytes);
  if (event === null) throw new AppError('SANDBOX_REFUSED', 'the sandbox feed contains something that is not an event');
  const body = Buffer.from(bytes).toString();
  return { id: event.id, type: event.type, data: asObject(parseObject(body)['data']), body };
}
