import { createHmac } from 'node:crypto';
import { Agent, type Dispatcher } from 'undici';
import { formatSecret } from '../../webhooks/sign.ts';
import { CliError } from '../cli-error.ts';
import { printableJson, type Terminal } from '../terminal.ts';
import { eventLine, eventRecord, type FeedEvent, readEvent } from './describe.ts';
import { createFeedReader, type FeedReader } from './follow-feed.ts';
import { type Forwarded, forward } from './forward.ts';
import { backoff, pause, whileWanted } from './pause.ts';
import { type ListenOptions, type ListenSettings, readListenKey, readListenSettings } from './settings.ts';
import { type ListenState, openListenState, stateDirectory } from './state.ts';

/** `write` takes whole lines of results; `signal` asks to stop. */
export type ListenControl = { signal: AbortSignal; write: (line: string) => void; hasColor: boolean; pollMs?: number };

const POLL_MS = 1000;
const CONNECT_TIMEOUT_MS = 5000;
/** The most that the feed gives at once. */
const PAGE = 100;
/** What was posted when the stop was asked for may still be answered, so that it need not come again. */
const LAST_ANSWER_MS = 5000;
const UNANSWERED = { firstMs: 250, mostMs: 5000 };

/**
 * Forwards the events of a test project to a URL, one after the other, until the signal. Where it stands is kept after each
 * answer, so that the next run goes on there. Errors: CliError for what does not pass by itself.
 */
export async function listen(terminal: Terminal, options: ListenOptions, control: ListenControl): Promise<void> {
  if (options.printSecret === true) {
    const secret = listenSecret(await readListenKey(terminal, options));
    terminal.print({ data: { secret }, text: secret });
    return;
  }
  const settings = await readListenSettings(terminal, options);
  const { server, apiKey, keyId, forwardTo } = settings;
  const route = { server, keyId, forwardTo: forwardTo.href };
  const state = await openListenState(stateDirectory(terminal.env), route);
  const dispatcher = new Agent({ connect: { timeout: CONNECT_TIMEOUT_MS } });
  const feed = createFeedReader({ server, apiKey, dispatcher }, { note: terminal.note, signal: control.signal });
  const run: Run = { terminal, settings, control, state, dispatcher, feed, secret: listenSecret(apiKey) };
  try {
    await follow(run, await begin(run));
  } catch (error) {
    if (!control.signal.aborted || error !== control.signal.reason) throw error;
    terminal.note('stopped: the next start goes on from here');
  } finally {
    await dispatcher.destroy();
    await state.release();
  }
}

/** Derived, so that it is the same at every start and on every machine with the key. */
function listenSecret(apiKey: string): string {
  return formatSecret(createHmac('sha256', apiKey).update('quittance listen v1').digest());
}

type Run = {
  terminal: Terminal;
  settings: ListenSettings;
  control: ListenControl;
  state: ListenState;
  dispatcher: Dispatcher;
  feed: FeedReader;
  secret: string;
};

/** Where to begin, and whether that is where an earlier run ended. */
async function begin(run: Run): Promise<{ cursor: string | null; isResumed: boolean }> {
  announce(run);
  const { settings, state } = run;
  const kept = settings.after === null ? await state.read() : undefined;
  if (kept !== undefined) return { cursor: kept, isResumed: true };
  const cursor = await firstCursor(run);
  // At once, so that what happens before the first answer is not missed by the next start.
  await state.write(cursor);
  return { cursor, isResumed: false };
}

async function firstCursor({ settings: { after }, feed }: Run): Promise<string | null> {
  if (after?.kind === 'beginning') return null;
  // An event that the feed does not know is refused before it is kept.
  const { latest } = await feed.read(after?.kind === 'event' ? after.id : null, 1);
  return after?.kind === 'event' ? after.id : latest;
}

function announce({ terminal, settings, control, secret }: Run): void {
  const { server, forwardTo, keyId } = settings;
  if (terminal.json) {
    control.write(JSON.stringify({ kind: 'listening', server, keyId, forwardTo: forwardTo.href, secret }));
    return;
  }
  control.write(`listening to ${server}, forwarding to ${forwardTo.href}`);
  control.write(`signing secret: ${secret}`);
}

async function follow(
  run: Run,
  { cursor: start, isResumed }: { cursor: string | null; isResumed: boolean },
): Promise<void> {
  const { control, settings, state, terminal } = run;
  let cursor = start;
  for (let isFirst = true; ; isFirst = false) {
    const page = await run.feed.read(cursor, PAGE);
    const events = page.events.map((body) => ({ body, event: readEvent(body) ?? notAnEvent(settings.server) }));
    const wanted = events.filter(({ event }) => settings.types?.has(event.type) ?? true);
    if (isFirst && isResumed && wanted.length > 0) terminal.note(tellMissed(wanted.length, page.hasMore));
    for (const { body, event } of wanted) {
      const answered = await forwardUntilAnswered(run, { body, id: event.id });
      await state.write(event.id);
      show(run, event, answered, cursor);
      cursor = event.id;
    }
    const last = events.at(-1)?.event.id;
    // What nobody wants is passed over, and not read again.
    if (last !== undefined && last !== cursor) await state.write(last);
    cursor = last ?? cursor;
    if (!page.hasMore) await pause((control.pollMs ?? POLL_MS) * (0.9 + Math.random() / 5), control.signal);
    control.signal.throwIfAborted();
  }
}

/** Posts an event until any answer comes: what the answer says is for the developer, not for us, to judge. */
async function forwardUntilAnswered(
  { settings, dispatcher, secret, control, terminal }: Run,
  event: { id: string; body: Uint8Array },
): Promise<Extract<Forwarded, { kind: 'answered' }>> {
  const { forwardTo: url } = settings;
  for (let failures = 0; ; ) {
    control.signal.throwIfAborted();
    const patience = lastAnswer(control.signal, () => terminal.note(`waiting for the answer to ${event.id} …`));
    const result = await whileWanted(forward({ url, secret, dispatcher }, event), patience.signal).finally(
      patience.clear,
    );
    if (result.kind === 'answered') {
      if (failures > 0) terminal.note(`${url.href} answers again`);
      return result;
    }
    failures += 1;
    if (failures === 1) terminal.note(`${url.href}: ${result.reason}; ${event.id} waits until it answers`);
    await pause(backoff(failures, UNANSWERED), control.signal);
  }
}

/** Aborts with the same reason a while after the signal did, which `onWait` is told of. */
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

/** `before` is where to go on after to see the event again. */
function show(
  { terminal, control }: Run,
  event: FeedEvent,
  answered: Extract<Forwarded, { kind: 'answered' }>,
  before: string | null,
): void {
  const now = new Date();
  if (terminal.json) {
    control.write(printableJson(JSON.stringify({ ...eventRecord(event, answered, now), before })));
    return;
  }
  control.write(eventLine(event, answered, { now, hasColor: control.hasColor }));
  if (answered.status >= 200 && answered.status < 300) return;
  terminal.note(`  to see it again, start with --after ${before ?? 'beginning'}`);
}

function tellMissed(count: number, hasMore: boolean): string {
  const what = count === 1 && !hasMore ? '1 event' : `${hasMore ? 'more than ' : ''}${count} events`;
  return `${what} came while this was not running and ${count === 1 && !hasMore ? 'is' : 'are'} forwarded now; --after latest passes over them`;
}

function notAnEvent(server: string): never {
  throw new CliError(
    'INVALID_ARGUMENT',
    `${server} has something in its feed that is no event: is it a Quittance server?`,
  );
}
