import { type DestinationStream, type LevelWithSilent, type Logger as PinoLogger, pino, stdTimeFunctions } from 'pino';

export type Logger = PinoLogger;

/**
 * A JSON logger, one object per line, on standard output unless a destination is given. Of errors it shows a list of fields
 * (`error-fields.ts`), and of other objects of classes the name.
 * Secrets are removed twice: values under telling names (at any depth), and texts that look like a secret wherever they stand,
 * because an error's message, a stack or a URL carries them where no name tells.
 */
export function createLogger(options: { level: LevelWithSilent; destination?: DestinationStream }): Logger {
  const settings = {
    level: options.level,
    base: null,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }), log: loggable },
    // Pino's own would take the fields that are left for the error itself, and add every other.
    serializers: { err: (described: unknown) => described },
    redact: { paths: REDACTED_PATHS, censor: REDACTED },
    hooks: { streamWrite: scrub },
  };
  return options.destination ? pino(settings, options.destination) : pino(settings);
}

const REDACTED = '[redacted]';

/** Names whose values never reach the log, in any letter case. */
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

/** These paths catch values that are objects or arrays; strings are caught at any depth in `scrub`. Pino needs each depth spelled out. */
const REDACTED_PATHS = SECRET_NAMES.flatMap((name) =>
  ['', '*', '*.*', '*.*.*'].map((parent) => `${parent}["${name}"]`),
);

const names = SECRET_NAMES.join('|');

/**
 * Each pattern keeps its first group, which says what was removed. The line is JSON, so a quote inside a value reads `\"`. It holds texts
 * of others, so no pattern may take more time than in proportion to the length of any line.
 */
const SECRET_PATTERNS: readonly RegExp[] = [
  // {"apiKey":"…"}
  new RegExp(`("(?:${names})":")(?:[^"\\\\]|\\\\.)+`, 'gi'),
  // The same inside a text that holds JSON: {\"apiKey\":\"…\"}. It begins with one backslash: with all of a run it would be tried at each.
  new RegExp(`(\\\\"(?:${names})\\\\+"\\s*:\\s*\\\\+")[^"\\\\]+`, 'gi'),
  // qt_live_4fQ…, qt_test_… and qa_…
  /(\bq(?:t_(?:live|test)|a)_)[A-Za-z0-9_-]+/g,
  // whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw
  /(\bwhsec_)[A-Za-z0-9+/=_-]+/g,
  // QUITTANCE_MASTER_KEY=… of an environment, a unit file or a shell
  /(\bQUITTANCE_MASTER_KEY=)[^\s"'\\]+/gi,
  // postgres://user:password@host; a password may itself hold an @, so up to the last one before the next space, slash or quote.
  /(\bpostgres(?:ql)?:\/\/[^\s:@/"\\]*:)[^\s/"\\]+(?=@)/gi,
  // host=… password=…, and ?password=… in a URL
  /(\bpassword=)[^\s&"'\\]+/gi,
  // Authorization: Bearer …
  /(\b(?:bearer|basic) )[A-Za-z0-9._~+/=-]{8,}/gi,
];

/** A line is longer only if a text of others came into it uncut. */
const MAX_LINE_CHARS = 65_536;

/** A line that is too long becomes one that says so and holds its beginning, cut where no secret is parted from its mark. */
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
 * What the log shows of what it is given: of an error these fields alone, for drivers hang whole clients on theirs, with connection keys and
 * every statement; of an object of any other class its name alone.
 */
const TEXT_FIELDS = [
  ...['code', 'severity', 'schema', 'table', 'column', 'dataType', 'constraint', 'routine'],
  ...['syscall', 'hostname', 'address', 'path'],
] as const;
const NUMBER_FIELDS = ['errno', 'port', 'statusCode'] as const;

const MAX_FIELD = 200;
const MAX_MESSAGE = 1000;
/** The frames that lead to the cause. Those of a cause of it tell less. */
const MAX_STACK = { own: 1500, cause: 500 };
/** Of an error with its causes, whatever they hold. */
const MAX_ERRORS = 6;
const MAX_DEPTH = 8;
const MAX_ITEMS = 100;

/** A copy of an object for the log that holds plain values alone. It never throws, whatever the object does when it is read. */
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

/** Errors of another realm have another `Error`. */
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

/** Of gRPC and HTTP/2 it is a number. */
function codeOf(read: (field: string) => unknown): number | undefined {
  const code = read('code');
  return typeof code === 'number' ? code : undefined;
}

/** `invalid input syntax for type uuid: "…"`: PostgreSQL's data exceptions (class 22) end with the value that it was given. */
function withoutValue(message: string, code: unknown): string {
  return typeof code === 'string' && /^22[0-9A-Z]{3}$/.test(code) ? message.replace(/: ".*$/s, ': "…"') : message;
}

/** The places of a stack, without the message before them. */
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
