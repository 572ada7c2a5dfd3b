import { type DestinationStream, type LevelWithSilent, type Logger as PinoLogger, pino, stdTimeFunctions } from 'pino';

export type Logger = PinoLogger;

/**
 * Creates a logger that writes one JSON object per line, by default to standard output. For errors, it logs only a fixed list of fields;
 * for instances of other classes, only the class name. Secrets are removed in two ways: by field name, at any depth, and by pattern,
 * wherever a text looks like a secret. The second way is needed because messages, stacks and URLs can contain secrets without a field name.
 */
export function createLogger(options: { level: LevelWithSilent; destination?: DestinationStream }): Logger {
  const settings = {
    level: options.level,
    base: null,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }), log: loggable },
    // Pino's own serializer would treat these fields as an error and add all others.
    serializers: { err: (described: unknown) => described },
    redact: { paths: REDACTED_PATHS, censor: REDACTED },
    hooks: { streamWrite: scrub },
  };
  return options.destination ? pino(settings, options.destination) : pino(settings);
}

const REDACTED = '[redacted]';

/** Names, in any letter case, whose values are never logged. */
const SECRET_NAMES = [
  'x-api-key',
  'apiKey',
  'api_key',
  'secret',
  'secrets',
  'webhookSecret',
  'webhook_secret',
  'signingSecret',
  'masterKey',
  'masterKeys',
  'master_key',
  'keyRing',
  'QUITTANCE_MASTER_KEY',
  'privateKey',
  'private_key',
  'mnemonic',
  'seed',
  'password',
  'passphrase',
  'authorization',
  'cookie',
  'set-cookie',
];

/** These paths remove objects and arrays; `scrub` removes strings at any depth. In Pino, each depth has to be listed explicitly. */
const REDACTED_PATHS = SECRET_NAMES.flatMap((name) =>
  ['', '*', '*.*', '*.*.*'].map((parent) => `${parent}["${name}"]`),
);

const names = SECRET_NAMES.join('|');

/**
 * Each pattern keeps its first group, to show what was removed. The line is JSON, so a quote inside a value is written `\"`. Lines contain
 * text from outsiders, so every pattern must run in linear time.
 */
const SECRET_PATTERNS: readonly RegExp[] = [
  // Matches {"apiKey":"…"}.
  new RegExp(`("(?:${names})":")(?:[^"\\\\]|\\\\.)+`, 'gi'),
  // Matches the same pattern inside a string that contains JSON: {\"apiKey\":\"…\"}. The pattern starts with only one backslash; if it
  // started with a run of them, it would be tried at every backslash.
  new RegExp(`(\\\\"(?:${names})\\\\+"\\s*:\\s*\\\\+")[^"\\\\]+`, 'gi'),
  // Matches qt_live_4fQ…, qt_test_… and qa_….
  /(\bq(?:t_(?:live|test)|a)_)[A-Za-z0-9_-]+/g,
  // Matches whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw.
  /(\bwhsec_)[A-Za-z0-9+/=_-]+/g,
  // Matches QUITTANCE_MASTER_KEY=… in an environment, a unit file or a shell command.
  /(\bQUITTANCE_MASTER_KEY=)[^\s"'\\]+/gi,
  // Matches postgres://user:password@host. A password may contain an @, so match up to the last one before the next space, slash or quote.
  /(\bpostgres(?:ql)?:\/\/[^\s:@/"\\]*:)[^\s/"\\]+(?=@)/gi,
  // Matches host=… password=…, and ?password=… in a URL.
  /(\bpassword=)[^\s&"'\\]+/gi,
  // Matches Authorization: Bearer ….
  /(\b(?:bearer|basic) )[A-Za-z0-9._~+/=-]{8,}/gi,
];

/** Only long text from outsiders can make a line longer than this. */
const MAX_LINE_CHARS = 65_536;

/**
 * Redacts a line. If it's too long, replaces it with a line that says so and contains its beginning. The cut never separates a secret from
 * its marker.
 */
function scrub(line: string): string {
  if (line.length <= MAX_LINE_CHARS) return redact(line);
  const head = /^\{"level":"[a-z]{1,9}","time":"[^"]{1,40}",/.exec(line)?.[0] ?? '{';
  const start = line.slice(0, MAX_LINE_CHARS / 2);
  const whole = start.slice(0, Math.max(start.lastIndexOf(' '), start.lastIndexOf('"')) + 1);
  return `${head}"msg":"a line of ${line.length} characters was cut","start":${JSON.stringify(redact(whole))}}\n`;
}

function redact(text: string): string {
  return SECRET_PATTERNS.reduce((rest, pattern) => rest.replace(pattern, `$1${REDACTED}`), text);
}

/**
 * The only error fields that are logged. Drivers attach whole clients to their errors, including connection keys and every statement. For
 * instances of other classes, only the name is logged.
 */
const TEXT_FIELDS = [
  ...['code', 'severity', 'schema', 'table', 'column', 'dataType', 'constraint', 'routine'],
  ...['syscall', 'hostname', 'address', 'path'],
] as const;
const NUMBER_FIELDS = ['errno', 'port', 'statusCode'] as const;

const MAX_FIELD = 200;
const MAX_MESSAGE = 1000;
/** In characters. The frames that lead to the error are more useful than its cause's frames. */
const MAX_STACK = { own: 1500, cause: 500 };
/** Limits for an error and its causes, whatever they contain. */
const MAX_ERRORS = 6;
const MAX_DEPTH = 8;
const MAX_ITEMS = 100;

/** Copies an object for the log, with plain values only. It never throws, even if reading the object does. */
function loggable(object: Record<string, unknown>): Record<string, unknown> {
  return readObject(object, 0);
}

function readValue(value: unknown, depth: number): unknown {
  if (typeof value === 'function' || typeof value === 'symbol') return `[${typeof value}]`;
  if (typeof value !== 'object' || value === null) return value;
  if (depth > MAX_DEPTH) return '[deep]';
  return (
    attempt(() => {
      if (isError(value)) return describeError(value, { left: MAX_ERRORS }, MAX_STACK.own);
      if (Array.isArray(value)) return value.slice(0, MAX_ITEMS).map((item) => readValue(item, depth + 1));
      if (typeof (value as { toJSON?: unknown }).toJSON === 'function') return value;
      const prototype = Object.getPrototypeOf(value);
      if (prototype !== null && Object.getPrototypeOf(prototype) !== null) return `[${prototype.constructor?.name}]`;
      return readObject(value as Record<string, unknown>, depth + 1);
    }) ?? '[unreadable]'
  );
}

function readObject(object: Record<string, unknown>, depth: number): Record<string, unknown> {
  const keys = attempt(() => Object.keys(object)) ?? [];
  return Object.fromEntries(
    keys.map((key) => [
      key,
      readValue(
        attempt(() => object[key]),
        depth,
      ),
    ]),
  );
}

/** Errors from another realm have a different `Error` class. */
function isError(value: object): boolean {
  return value instanceof Error || Object.prototype.toString.call(value) === '[object Error]';
}

function describeError(error: object, budget: { left: number }, maxStack: number): Record<string, unknown> {
  budget.left -= 1;
  const read = (field: string) => attempt(() => (error as Record<string, unknown>)[field]);
  const text = (field: string, most: number) => {
    const value = read(field);
    return typeof value === 'string' ? value.slice(0, most) : undefined;
  };
  const fields: Record<string, unknown> = {
    type: text('name', MAX_FIELD),
    message: withoutValue(text('message', MAX_MESSAGE) ?? '', read('code')),
  };
  for (const field of TEXT_FIELDS)
    fields[field] = text(field, MAX_FIELD) ?? (field === 'code' ? codeOf(read) : undefined);
  for (const field of NUMBER_FIELDS) if (typeof read(field) === 'number') fields[field] = read(field);
  if (read('retryable') === true) fields['retryable'] = true;
  const stack = read('stack');
  if (typeof stack === 'string') fields['stack'] = framesOf(stack, maxStack);
  const describeNext = (next: unknown) =>
    typeof next === 'object' && next !== null && budget.left > 0 && attempt(() => isError(next)) === true
      ? describeError(next, budget, MAX_STACK.cause)
      : undefined;
  fields['cause'] = describeNext(read('cause'));
  const errors = read('errors');
  if (attempt(() => Array.isArray(errors)) === true) {
    const described = (errors as unknown[]).slice(0, MAX_ERRORS).map((each) => attempt(() => describeNext(each)));
    fields['errors'] = described.filter((each) => each !== undefined);
  }
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** gRPC and HTTP/2 use numeric codes. */
function codeOf(read: (field: string) => unknown): number | undefined {
  const code = read('code');
  return typeof code === 'number' ? code : undefined;
}

/**
 * PostgreSQL's data exceptions (class 22) end with a value from the query, for example `invalid input syntax for type uuid: "…"`. Removes
 * that value.
 */
function withoutValue(message: string, code: unknown): string {
  return typeof code === 'string' && /^22[0-9A-Z]{3}$/.test(code) ? message.replace(/: ".*$/s, ': "…"') : message;
}

/** Returns a stack's frames without the message before them. */
function framesOf(stack: string, most: number): string | undefined {
  const start = stack.slice(0, 20_000).search(/\n +at /);
  return start < 0 ? undefined : stack.slice(start + 1, start + 1 + most);
}

function attempt<Result>(read: () => Result): Result | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

export type LogThrottle = ReturnType<typeof createLogThrottle>;

const INTERVAL_MS = 60_000;
const MAX_REMEMBERED = 10_000;

/** Limits messages to one per minute and subject. `now` returns milliseconds. If the clock is set back, messages aren't delayed. */
export function createLogThrottle(now: () => number) {
  const loggedAt = new Map<string, number>();
  return {
    /** Returns whether a message is due. If it is, the message counts as sent. */
    isDue: (subject: string) => {
      const [at, lastAt] = [now(), loggedAt.get(subject)];
      if (lastAt !== undefined && at >= lastAt && at - lastAt < INTERVAL_MS) return false;
      if (loggedAt.size >= MAX_REMEMBERED) loggedAt.clear();
      loggedAt.set(subject, at);
      return true;
    },
    /** Call this if the message couldn't be sent, so that it becomes due again. */
    forget: (subject: string) => void loggedAt.delete(subject),
  };
}

export type Tally = ReturnType<typeof createTally>;

/**
 * Limits messages that contain a count. `now` returns milliseconds. The next message includes all occurrences since the last one, but it's
 * sent only when there's another occurrence.
 */
export function createTally(now: () => number) {
  const throttle = createLogThrottle(now);
  const counts = new Map<string, number>();
  return {
    /**
     * Counts one occurrence. If a message is due, returns the count since the last message, otherwise `null`. The first message is due
     * immediately, and further ones once a minute.
     */
    note: (subject: string) => {
      const count = (counts.get(subject) ?? 0) + 1;
      if (counts.size >= MAX_REMEMBERED) counts.clear();
      const isDue = throttle.isDue(subject);
      counts.set(subject, isDue ? 0 : count);
      return isDue ? count : null;
    },
  };
}

/**
 * Logs lost database connections. Occurrences are counted, because a pool loses all of its connections at the same time, and again at each
 * retry.
 */
export function logLostConnections(log: Pick<Logger, 'warn'>): (error: Error) => void {
  const lost = createTally(() => performance.now());
  return (error) => {
    const connections = lost.note(error.message);
    if (connections !== null) log.warn({ err: error, connections }, 'a database connection was lost');
  };
}
