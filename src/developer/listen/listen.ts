import { createHmac } from 'node:crypto';
import { Agent, type Dispatcher, request } from 'undici';
import { AppError } from '../../core/domain/errors.ts';
import { unlessAborted } from '../../core/runtime/concurrency.ts';
import { parseObject } from '../../core/runtime/parse-object.ts';
import { redactAnswer } from '../../core/webhooks/redact.ts';
import { USER_AGENT } from '../../core/webhooks/send.ts';
import { formatSecret, signWebhook } from '../../core/webhooks/sign.ts';
import { printable } from '../../faces/operator/input/problems.ts';
import {
  backoff,
  createFeedReader,
  describeConnectionFailure,
  type FeedReader,
  PAGE,
  pause,
  readEvent,
  type ShownEvent,
} from './follow-feed.ts';
import type { ListenSettings } from './settings.ts';
import { type ListenState, openListenState } from './state.ts';

type Answered = Extract<Forwarded, { kind: 'answered' }>;

/**
 * The first report says where it listens. Each further report is an event with its response. `before` is the event to start after in order
 * to see this one again.
 */
export type ListenReport =
  | { kind: 'listening'; server: string; keyId: string; forwardTo: string; secret: string }
  | ({ kind: 'event'; at: string } & ShownEvent & Omit<Answered, 'kind'> & { before: string | null });

/** `note` receives additional information for people. `stateDir` stores the last event that was forwarded. */
type ListenControl = {
  stateDir: string;
  signal: AbortSignal;
  report(report: ListenReport): void;
  note(text: string): void;
  pollMs?: number | undefined;
};

const POLL_MS = 1000;
const CONNECT_TIMEOUT_MS = 5000;
/**
 * If the command is stopped after an event was posted, it still waits this long for the response, so that the event doesn't have to be sent
 * again.
 */
const LAST_ANSWER_MS = 5000;
const UNANSWERED = { firstMs: 250, longestMs: 5000 };

/**
 * Forwards a test project's events to a URL one after the other, until the signal aborts. The position is stored after each response so
 * that the next run continues there. Throws an AppError on permanent problems.
 */
export async function listen(settings: ListenSettings, control: ListenControl): Promise<void> {
  const { server, apiKey, keyId, forwardTo } = settings;
  const state = await openListenState(control.stateDir, { server, keyId, forwardTo: forwardTo.href });
  const dispatcher = new Agent({ connect: { timeout: CONNECT_TIMEOUT_MS } });
  const feed = createFeedReader({ server, apiKey, dispatcher }, control);
  const run: Run = { settings, control, state, dispatcher, feed, secret: listenSecret(apiKey) };
  try {
    control.report({ kind: 'listening', server, keyId, forwardTo: forwardTo.href, secret: run.secret });
    await follow(run, await begin(run));
  } catch (error) {
    if (!control.signal.aborted || error !== control.signal.reason) throw error;
    control.note('stopped: the next start continues from here');
  } finally {
    await dispatcher.destroy();
    await state.release();
  }
}

/** The secret is derived from the key, so it's the same at every start and on every machine with that key. */
export function listenSecret(apiKey: string): string {
  return formatSecret(createHmac('sha256', apiKey).update('quittance listen v1').digest());
}

type Run = {
  settings: ListenSettings;
  control: ListenControl;
  state: ListenState;
  dispatcher: Dispatcher;
  feed: FeedReader;
  secret: string;
};

/** Returns the position to begin at, and whether an earlier run ended there. */
async function begin({
  settings: { after },
  feed,
  state,
}: Run): Promise<{ cursor: string | null; isResumed: boolean }> {
  const kept = after === null ? await state.read() : undefined;
  if (kept !== undefined) return { cursor: kept, isResumed: true };
  const named = after?.kind === 'event' ? after.id : null;
  // Checks that the feed knows the event before its id is stored.
  const first = after?.kind === 'beginning' ? null : (await feed.read(named, 1)).latest;
  const cursor = named ?? first;
  // The position is stored immediately so that the next run doesn't miss events from before the first response.
  await state.write(cursor);
  return { cursor, isResumed: false };
}

async function follow(
  run: Run,
  { cursor: start, isResumed }: { cursor: string | null; isResumed: boolean },
): Promise<void> {
  const { control, settings, state } = run;
  let cursor = start;
  for (let isFirst = true; ; isFirst = false) {
    const page = await run.feed.read(cursor, PAGE);
    const events = page.events.map((body) => ({ body, event: readEvent(body) ?? notAnEvent(settings.server) }));
    const wanted = events.filter(({ event }) => settings.types?.has(event.type) ?? true);
    if (isFirst && isResumed && wanted.length > 0) control.note(describeMissed(wanted.length, page.hasMore));
    for (const { body, event } of wanted) {
      const { kind: _, ...answered } = await forwardUntilAnswered(run, { body, id: event.id });
      await state.write(event.id);
      control.report({ kind: 'event', at: new Date().toISOString(), ...event, ...answered, before: cursor });
      cursor = event.id;
    }
    const last = events.at(-1)?.event.id;
    // Unwanted events are skipped and not read again.
    if (last !== undefined && last !== cursor) await state.write(last);
    cursor = last ?? cursor;
    if (!page.hasMore) await pause((control.pollMs ?? POLL_MS) * (0.9 + Math.random() / 5), control.signal);
    control.signal.throwIfAborted();
  }
}

/** Posts an event until there is a response of any kind. Judging the response is up to the developer. */
async function forwardUntilAnswered(
  { settings: { forwardTo: url }, dispatcher, secret, control }: Run,
  event: { id: string; body: Uint8Array },
): Promise<Answered> {
  for (let failures = 0; ; ) {
    control.signal.throwIfAborted();
    const patience = lastAnswer(control.signal, () => control.note(`waiting for the response to ${event.id} …`));
    const post = () => forward({ url, secret, dispatcher }, event);
    const result = await unlessAborted(patience.signal, post).finally(patience.clear);
    if (result.kind === 'answered') {
      if (failures > 0) control.note(`${url.href} responds again`);
      return result;
    }
    failures += 1;
    if (failures === 1) control.note(`${url.href}: ${result.reason}; ${event.id} waits until it responds`);
    await pause(backoff(failures, UNANSWERED), control.signal);
  }
}

/** Returns a signal that aborts some time after the given one, for the same reason. Calls `onWait` when this time begins. */
function lastAnswer(signal: AbortSignal, onWait: () => void): { signal: AbortSignal; clear: () => void } {
  const controller = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const begin = () => {
    onWait();
    timer = setTimeout(() => controller.abort(signal.reason), LAST_ANSWER_MS);
  };
  signal.addEventListener('abort', begin, { once: true });
  return {
    signal: controller.signal,
    clear: () => {
      signal.removeEventListener('abort', begin);
      clearTimeout(timer);
    },
  };
}

function describeMissed(count: number, hasMore: boolean): string {
  const what = count === 1 && !hasMore ? '1 event' : `${hasMore ? 'more than ' : ''}${count} events`;
  return `${what} arrived while this command was not running and ${count === 1 && !hasMore ? 'is' : 'are'} being forwarded now; --after latest skips them`;
}

function notAnEvent(server: string): never {
  throw new AppError(
    'INVALID_ARGUMENT',
    `the feed of ${server} contains an entry that is not an event: is it a Quittance server?`,
  );
}

/** `unanswered`: the server didn't get the event or didn't respond. `answer` is the refusal's text, on one line. */
type Forwarded =
  | { kind: 'answered'; status: number; elapsedMs: number; answer: string | null; code: string | null }
  | { kind: 'unanswered'; reason: string };

/** The same time limit as for a real webhook. */
const TIMEOUT_MS = 15_000;
/** A refusal's first line is enough. */
const MAX_ANSWER_BYTES = 8 * 1024;
const ANSWER_MS = 1000;
const MAX_LINE = 200;

/** Posts an event like a real webhook, with the same bytes, headers and signature. Doesn't follow redirects. Never throws. */
async function forward(
  to: { url: URL; secret: string; dispatcher: Dispatcher },
  event: { id: string; body: Uint8Array },
): Promise<Forwarded> {
  const timestampSeconds = Math.floor(Date.now() / 1000);
  const headers = signWebhook({ ...event, timestampSeconds, secrets: [to.secret] });
  const startedMs = performance.now();
  try {
    const response = await request(to.url, {
      dispatcher: to.dispatcher,
      method: 'POST',
      headers: { ...headers, 'user-agent': USER_AGENT },
      body: event.body,
      headersTimeout: TIMEOUT_MS,
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const elapsedMs = Math.round(performance.now() - startedMs);
    const text = redactAnswer(await readStart(response.body));
    const status = response.statusCode;
    if (status >= 200 && status < 300) return { kind: 'answered', status, elapsedMs, answer: null, code: null };
    return { kind: 'answered', status, elapsedMs, ...(readDiagnosis(text) ?? { answer: firstLine(text), code: null }) };
  } catch (error) {
    return { kind: 'unanswered', reason: describeConnectionFailure(error) };
  }
}

/** Reads the first bytes of a body that arrive in time. The status is already known. */
async function readStart(body: Dispatcher.ResponseData['body']): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  const tooSlow = setTimeout(() => body.destroy(), ANSWER_MS);
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      length += chunk.length;
      if (length >= MAX_ANSWER_BYTES) break;
    }
  } catch {
    // The response was cut off or is too slow; the part that arrived is used.
  } finally {
    clearTimeout(tooSlow);
  }
  return Buffer.concat(chunks);
}

/** The SDK's response to a webhook that it can't verify: `{"error":"webhook_verification_failed","code":"…","message":"…"}`. */
function readDiagnosis(text: string): { answer: string; code: string } | null {
  const { error, code, message } = parseObject(text);
  if (error !== 'webhook_verification_failed' || typeof code !== 'string' || typeof message !== 'string') return null;
  return { answer: firstLine(message) ?? '', code: firstLine(code) ?? '' };
}

function firstLine(text: string): string | null {
  const [line] = text
    .split('\n')
    .map((part) => part.trim())
    .filter((part) => part !== '');
  const shown = printable(line ?? '');
  if (shown === '') return null;
  return shown.length > MAX_LINE ? `${shown.slice(0, MAX_LINE)}…` : shown;
}
