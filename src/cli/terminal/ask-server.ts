import { Client, type Dispatcher } from 'undici';
import { readAdminKey } from '../../core/domain/api-key.ts';
import { AppError, type ErrorCode, invalidArgument } from '../../core/domain/errors.ts';
import { isLoopback, parseUrl } from '../../core/domain/url.ts';
import { parseObject } from '../../core/runtime/parse-object.ts';
import { reasonOf } from '../../core/runtime/reason-of.ts';
import type { Static, TSchema } from '../../core/runtime/type.ts';
import { clip } from '../../faces/operator/input/problems.ts';
import type { Given, Operation } from '../../faces/operator/operation.ts';
import { OUTCOME_TYPE, readOutcome } from '../../faces/operator/wire/outcome-json.ts';
import { askSecret, hasPerson } from './ask-person.ts';
import type { Terminal } from './terminal.ts';

/** The slowest operations, such as testing an endpoint or querying nodes, take seconds. */
const ANSWER_MS = 60_000;
/** This is ten times the longest list. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

/** Runs an operation on a server with an admin key. Throws `FORBIDDEN`, `SERVER_UNAVAILABLE` or an error of the operation. */
export async function askServer<Input extends TSchema, Wanted, Outcome>(
  terminal: Terminal,
  server: string,
  operation: Operation<Input, Wanted, Outcome>,
  given: Given<Static<Input>>,
): Promise<Outcome> {
  const url = readServer(server);
  const key = await readKey(terminal);
  const { path, body } = requestOf(operation, given);
  const client = new Client(url.origin, {
    ...{ headersTimeout: ANSWER_MS, bodyTimeout: ANSWER_MS, maxResponseSize: MAX_ANSWER_BYTES },
  });
  try {
    const answer = await client.request({
      method: operation.method,
      path: `${url.pathname.replace(/\/+$/, '')}/admin/v1${path}`,
      headers: {
        ...{ authorization: `Bearer ${key}`, accept: OUTCOME_TYPE },
        ...(body === null ? {} : { 'content-type': 'application/json' }),
      },
      body,
    });
    return (await readAnswer(answer, url)) as Outcome;
  } catch (error) {
    if (error instanceof AppError) throw error;
    const why = reasonOf(error);
    throw unavailable(`${url.origin} did not respond: ${why}`, error);
  } finally {
    await client.destroy();
  }
}

/**
 * Puts the members named in the path into the path (`-` if absent), and all others into the query, or into the body if the request changes
 * something.
 */
function requestOf({ method, path, input }: Operation, given: object): { path: string; body: string | null } {
  const names = Object.keys((input as unknown as { properties: object }).properties);
  const rest = new Map(Object.entries(given).filter(([name, value]) => names.includes(name) && value !== undefined));
  const filled = path.replace(/:(\w+)/g, (_, name: string) => {
    const value: unknown = rest.get(name);
    rest.delete(name);
    return value === undefined ? '-' : encodeURIComponent(String(value));
  });
  if (method !== 'GET') return { path: filled, body: JSON.stringify(Object.fromEntries(rest)) };
  const query = new URLSearchParams(
    [...rest].flatMap(([name, value]) => [value].flat().map((each): [string, string] => [name, String(each)])),
  );
  return { path: rest.size === 0 ? filled : `${filled}?${query}`, body: null };
}

async function readAnswer({ statusCode, headers, body }: Dispatcher.ResponseData, url: URL): Promise<unknown> {
  const text = await body.text();
  if (statusCode === 200 && String(headers['content-type']).startsWith(OUTCOME_TYPE)) return readOutcome(text);
  const problem = parseObject(text);
  const { code, detail, errors } = problem ?? {};
  if (typeof code !== 'string' || typeof detail !== 'string') {
    throw unavailable(`${url.origin} returned ${statusCode}, so it is not this release's admin API`);
  }
  const problems = Array.isArray(errors) ? (errors as { subject: string; message: string }[]) : [];
  throw new AppError(OF_THE_WIRE[code] ?? (code as ErrorCode), detail, { problems });
}

/** Codes used when the request itself is refused. All other codes come from the operation. */
const OF_THE_WIRE: Readonly<Record<string, ErrorCode>> = {
  ...{ UNAUTHENTICATED: 'FORBIDDEN', INVALID_REQUEST: 'INVALID_ARGUMENT', PAYLOAD_TOO_LARGE: 'INVALID_ARGUMENT' },
  ...{ RATE_LIMITED: 'SERVER_UNAVAILABLE', OVERLOADED: 'SERVER_UNAVAILABLE', UNAVAILABLE: 'SERVER_UNAVAILABLE' },
  ...{
    INTERNAL: 'SERVER_UNAVAILABLE',
    ROUTE_NOT_FOUND: 'SERVER_UNAVAILABLE',
    METHOD_NOT_ALLOWED: 'SERVER_UNAVAILABLE',
  },
  MISDIRECTED: 'SERVER_UNAVAILABLE',
};

function readServer(text: string): URL {
  const url = parseUrl(text);
  const isPlain = url?.protocol === 'http:';
  if (url === null || (!isPlain && url.protocol !== 'https:') || url.username !== '' || url.password !== '')
    throw invalidArgument`--server must be a console URL, such as https://pay-admin.example.com`;
  if (!isPlain || isLoopback(url.hostname)) return url;
  throw invalidArgument`--server ${clip(url.origin)} uses http:// to another machine, so anyone on the network path could read the admin key: use https://, or a tunnel to this machine`;
}

async function readKey(terminal: Terminal): Promise<string> {
  const named = terminal.env['QUITTANCE_ADMIN_KEY']?.trim() || null;
  const key = named ?? (hasPerson(terminal) ? await askSecret(terminal, 'Admin key (qa_…, not shown): ') : null);
  if (key !== null && readAdminKey(key) !== null) return key;
  throw new AppError(
    'INVALID_ARGUMENT',
    key === null || key === ''
      ? 'QUITTANCE_ADMIN_KEY is not set: set it to a key from "quittance admin-key create" (qa_…)'
      : `the admin key (${key.length} characters, not shown) is not a Quittance admin key: a key is "qa_" followed by 75 characters, so a character may be missing or wrong`,
  );
}

function unavailable(message: string, cause?: unknown): AppError {
  return new AppError('SERVER_UNAVAILABLE', message, cause === undefined ? {} : { cause });
}
