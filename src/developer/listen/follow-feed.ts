import { assertNever } from '../../core/domain/assert-never.ts';
import { AppError } from '../../core/domain/errors.ts';
import { printable } from '../../faces/operator/input/problems.ts';
import { backoff, pause, whileWanted } from './pause.ts';
import { readEvent } from './read-event.ts';
import { type FeedSource, readFeed } from './read-feed.ts';
import type { FeedPage } from './split-feed.ts';

export type FeedReader = {
  /** Returns the page after an event, or the first page for `null`. Waits while the server is unavailable, and says so once. */
  read(after: string | null, limit: number): Promise<FeedPage>;
};

const AWAY = { firstMs: 1000, longestMs: 30_000 };
/** Rate limits and failovers take less time. A longer wait would look as if the command hangs. */
const MAX_RETRY_AFTER_MS = 5 * 60_000;

/** Creates a reader that retries temporary failures. Throws on permanent problems, with the fix, and throws the signal's reason. */
export function createFeedReader(
  source: FeedSource,
  { note, signal }: { note: (text: string) => void; signal: AbortSignal },
): FeedReader {
  const { server } = source;
  let failures = 0;
  return {
    read: async (after, limit) => {
      for (;;) {
        const answer = await whileWanted(readFeed(source, { after, limit }), signal);
        switch (answer.kind) {
          case 'page':
            if (leadsNoFurther(answer.page, after))
              throw noFeed(server, 'its feed returned a page that does not advance past the requested position');
            if (failures > 0) note(`${server} responds again`);
            failures = 0;
            return answer.page;
          case 'away': {
            failures += 1;
            if (failures === 1) note(`cannot read the feed of ${server}: ${answer.reason}; retrying until it responds`);
            const asked = Math.min(answer.retryAfterMs ?? 0, MAX_RETRY_AFTER_MS);
            await pause(Math.max(asked, backoff(failures, AWAY)), signal);
            break;
          }
          case 'key-refused':
            throw new AppError(
              'INVALID_ARGUMENT',
              `${server} does not accept the API key: the key belongs to another server, has expired, was revoked, or is not allowed from this address. Create another key on that server with "quittance key create"`,
            );
          case 'cursor-unknown':
            throw new AppError(
              'NOT_FOUND',
              `${server} has no event ${after} in this project: the server's data was recreated, or the id belongs to another project. Choose where to start: --after latest (new events only) or --after beginning (all events)`,
            );
          case 'no-feed':
            throw noFeed(server, answer.reason);
          default:
            return assertNever(answer);
        }
      }
    },
  };
}

/** A reader that continued after such a page would read it again without a pause. */
function leadsNoFurther({ events, hasMore }: FeedPage, after: string | null): boolean {
  const last = events.at(-1);
  return last === undefined ? hasMore : readEvent(last)?.id === after;
}

function noFeed(server: string, reason: string): AppError {
  return new AppError('INVALID_ARGUMENT', `${server} does not respond like a Quittance server: ${printable(reason)}`);
}
