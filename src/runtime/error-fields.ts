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
export function loggable(object: Record<string, unknown>): Record<string, unknown> {
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
