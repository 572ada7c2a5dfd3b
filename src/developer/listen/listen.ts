import { createHash, createHmac } from 'node:crypto';
import { mkdir, readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { Agent, type Dispatcher, request } from 'undici';
import { readApiKey } from '../../core/domain/api-key.ts';
import { AppError, invalidArgument } from '../../core/domain/errors.ts';
import { EVENT_TYPES } from '../../core/domain/event.ts';
import { decodeId, encodeId } from '../../core/domain/ids.ts';
import { isLoopback } from '../../core/domain/url.ts';
import { unlessAborted } from '../../core/runtime/concurrency.ts';
import { DataDirError, lockDataDir } from '../../core/runtime/instance-lock.ts';
import { parseObject } from '../../core/runtime/parse-object.ts';
import { writePrivateFile } from '../../core/runtime/private-file.ts';
import { redactAnswer } from '../../core/webhooks/redact.ts';
import { USER_AGENT } from '../../core/webhooks/send.ts';
import { formatSecret, signWebhook } from '../../core/webhooks/sign.ts';
import { clip, printable } from '../../faces/operator/input/problems.ts';
import { httpUrl } from '../../server/config/node-entry.ts';
import { findSandboxFile } from '../sandbox/sandbox-file.ts';
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

export type ListenOptions = {
  forwardTo?: string | undefined;
  apiKey?: string | undefined;
  server?: string | undefined;
  allowHttp?: true | undefined;
  events?: readonly string[] | undefined;
  after?: string | undefined;
};

/** The sources for settings that aren't given as options. `dataDir` is called only if its sandbox is needed. */
type Surroundings = { env: NodeJS.ProcessEnv; dataDir(): string };

type ListenSettings = Awaited<ReturnType<typeof readListenSettings>>;

/** Checks everything that doesn't need a request. Throws `INVALID_ARGUMENT`; the message never contains the key. */
export async function readListenSettings(options: ListenOptions & Surroundings) {
  const { events, after, env } = options;
  if (options.forwardTo === undefined) {
    throw invalid("--forward-to is missing: set it to your handler's URL, such as http://localhost:3000/hook");
  }
  const forwardTo = readUrl('--forward-to', options.forwardTo);
  // Clients never send a fragment.
  forwardTo.hash = '';
  // `null` means all.
  const types: ReadonlySet<string> | null = events === undefined ? null : new Set(events.map(readType));
  const from = after === undefined ? null : readAfter(after);
  const named = { server: options.server ?? (env['QUITTANCE_URL']?.trim() || null), apiKey: namedKey(options) };
  const sandbox = named.server === null || named.apiKey === null ? await findSandboxFile(options.dataDir()) : null;
  const serverText = named.server ?? sandbox?.baseUrl;
  if (serverText === undefined) {
    throw invalid(
      '--server and QUITTANCE_URL are missing, and no sandbox is running on this data directory: set either to the URL of your Quittance server',
    );
  }
  const server = readServer(serverText, options.allowHttp === true);
  // The sandbox's key is only sent to the sandbox.
  const isSandbox = sandbox !== null && new URL(server).origin === new URL(sandbox.baseUrl).origin;
  const why = `${server} is not this data directory's sandbox, so its key is unknown`;
  const key = readTestKey(named.apiKey ?? (isSandbox ? sandbox.apiKey : null), why);
  return { server, ...key, forwardTo, types, after: from };
}

/** Returns the secret that `--print-secret` shows, without asking a server. */
export async function readListenSecret(options: ListenOptions & Surroundings): Promise<string> {
  const key = namedKey(options) ?? (await findSandboxFile(options.dataDir()))?.apiKey ?? null;
  return secretOf(readTestKey(key, 'no sandbox is running on this data directory').apiKey);
}

function namedKey({ apiKey, env }: ListenOptions & Surroundings): string | null {
  return apiKey ?? (env['QUITTANCE_API_KEY']?.trim() || null);
}

/** `why` explains why no other key can be used if none is given. */
function readTestKey(text: string | null, why: string): { apiKey: string; keyId: string } {
  if (text === null) {
    throw invalid(
      `--api-key and QUITTANCE_API_KEY are missing, and ${why}: set QUITTANCE_API_KEY to a test project key (qt_test_…)`,
    );
  }
  if (text.startsWith('qt_live_')) {
    throw invalid(
      'the key is a live key (qt_live_…): payments on the main network are not forwarded to a developer’s machine. Use a test project key (qt_test_…). For live events, add an endpoint with "quittance webhook add"',
    );
  }
  const key = readApiKey(text);
  if (key !== null) return { apiKey: text, keyId: encodeId('key', key.keyUuid) };
  throw invalid(
    `the API key (${text.length} characters, not shown) is not a Quittance key: a key is "qt_test_" followed by 75 characters, as shown by "quittance key create". A character may be missing or wrong`,
  );
}

function readServer(text: string, allowHttp: boolean): string {
  const url = readUrl('the server', text);
  if (url.search !== '' || url.hash !== '')
    throw invalid(`the server ${clip(text)} has a query or a fragment: remove it`);
  if (url.protocol === 'http:' && !allowHttp && !isLoopback(url.hostname)) {
    throw invalid(
      `the server ${clip(text)} uses http:// to another machine, so anyone on the network path could read the API key: use https://, or --allow-http if the path is safe`,
    );
  }
  return url.origin + url.pathname.replace(/\/+$/, '');
}

function readUrl(what: string, text: string): URL {
  const url = httpUrl(text);
  if (url === null) throw invalid(`${what} is ${clip(text)}: use a URL that starts with http:// or https://`);
  if (url.username === '' && url.password === '') return url;
  throw invalid(`${what} contains a user name or a password (not shown): remove it`);
}

function readType(text: string): string {
  if ((EVENT_TYPES as readonly string[]).includes(text)) return text;
  throw invalid(`--events has the unknown type ${clip(text)}: choose from ${EVENT_TYPES.join(', ')}`);
}

/** Reads the position to begin at, instead of where the last run ended: after an event, before the first one, or with the next new one. */
function readAfter(text: string) {
  if (text === 'beginning' || text === 'latest') return { kind: text } as const;
  if (decodeId('evt', text) !== null) return { kind: 'event', id: text } as const;
  throw invalid(`--after is ${clip(text)}: use an event id (evt_…), beginning or latest`);
}

function invalid(message: string): AppError {
  return new AppError('INVALID_ARGUMENT', message);
}

type Answered = Extract<Forwarded, { kind: 'answered' }>;

/**
 * The first report says where it listens. Each further report is an event with its response. `before` is the event to start after in order
 * to see this one again.
 */
export type ListenReport =
  | { kind: 'listening'; server: string; keyId: string; forwardTo: string; secret: string }
  | ({ kind: 'event'; at: string } & ShownEvent & Omit<Answered, 'kind'> & { before: string | null });

/** `note` receives additional information for people. `env` says where to store the last event that was forwarded. */
type ListenControl = {
  env: NodeJS.ProcessEnv;
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
  const state = await openListenState(stateDirectory(control.env), { server, keyId, forwardTo: forwardTo.href });
  const dispatcher = new Agent({ connect: { timeout: CONNECT_TIMEOUT_MS } });
  const feed = createFeedReader({ server, apiKey, dispatcher }, control);
  const run: Run = { settings, control, state, dispatcher, feed, secret: secretOf(apiKey) };
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
function secretOf(apiKey: string): string {
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
async function begin({ settings: { after }, feed, state }: Run) {
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

async function follow(run: Run, { cursor: start, isResumed }: { cursor: string | null; isResumed: boolean }) {
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
  throw invalidArgument`the feed of ${server} contains an entry that is not an event: is it a Quittance server?`;
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

/** Each route has its own state, so forwarding the same key to another URL starts independently. */
type Route = { server: string; keyId: string; forwardTo: string };

type ListenState = Awaited<ReturnType<typeof openListenState>>;

/** Returns the state directory according to the XDG base directory specification, which treats a relative path as unset. */
function stateDirectory(env: NodeJS.ProcessEnv): string {
  const given = env['XDG_STATE_HOME'] ?? '';
  const base = isAbsolute(given) ? given : join(env['HOME'] || homedir(), '.local/state');
  return join(base, 'quittance/listen');
}

/**
 * Opens a route's state: how far forwarding has got. It belongs to this process until `release`. Throws `CONFLICT` if another process holds
 * the lock.
 */
async function openListenState(dir: string, route: Route) {
  const name = createHash('sha256').update(JSON.stringify(route)).digest('hex').slice(0, 32);
  const path = join(dir, `${name}.json`);
  const lock = await takeLock(dir, `${name}.lock`, route);
  return {
    path,
    /** Returns the last answered event, `null` before the first one, or undefined if nothing was forwarded before. */
    read: () => readState(path, route),
    /** Writes completely or not at all, and is on disk when it returns. */
    write: (cursor: string | null) =>
      writePrivateFile(path, `${JSON.stringify({ version: 1, ...route, cursor })}\n`).catch((error: unknown) => {
        throw unusable(dir, error);
      }),
    release: () => lock.release(),
  };
}

async function takeLock(dir: string, name: string, route: Route): Promise<{ release(): Promise<void> }> {
  try {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    return await lockDataDir(dir, name);
  } catch (error) {
    if (!(error instanceof DataDirError) || error.code !== 'DATA_DIR_IN_USE') throw unusable(dir, error);
    const holder = /in use by process (\d+)/.exec(error.message)?.[1];
    const who = holder === undefined ? 'another process' : `process ${holder}`;
    throw new AppError(
      'CONFLICT',
      `${who} already forwards this key's events to ${route.forwardTo}: stop it, or forward to another URL`,
      { cause: error },
    );
  }
}

function unusable(dir: string, cause: unknown): AppError {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause);
  return new AppError(
    'INVALID_ARGUMENT',
    `the position in the feed cannot be saved in ${dir} (${code}): free disk space or allow writing there, or set XDG_STATE_HOME to another directory`,
    { cause },
  );
}

/** `{"version":1,"server":"…","keyId":"key_…","forwardTo":"…","cursor":"evt_…"}` */
async function readState(path: string, route: Route): Promise<string | null | undefined> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw damaged(path, error);
  });
  if (text === null) return undefined;
  const state = parseObject(text);
  const isOurs = Object.entries({ version: 1, ...route }).every(([name, value]) => state[name] === value);
  const { cursor } = state;
  if (isOurs && cursor === null) return null;
  if (isOurs && typeof cursor === 'string' && decodeId('evt', cursor) !== null) return cursor;
  throw damaged(path);
}

function damaged(path: string, cause?: unknown): AppError {
  return new AppError(
    'INVALID_ARGUMENT',
    `${path} is damaged, so the position in the feed is unknown. Choose where to start, which rewrites the file: --after latest (new events only), --after beginning, or --after evt_…`,
    { cause },
  );
}
