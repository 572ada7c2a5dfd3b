import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { request } from 'undici';
import { expect } from 'vitest';
import { PATIENCE_MS } from '../support/patience.ts';
import type { Json, TestProject, TestService } from '../support/service.ts';

export type HeaderValue = string | string[] | null;

export type Ask = {
  method?: string;
  /** `null` omits a default header. */
  headers?: Record<string, HeaderValue>;
  body?: string | Buffer;
};

export type Reply = {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
  body: Json;
};

const REQUEST_ID = /^req_[0-7][0-9a-hjkmnp-tv-z]{25}$/;
export const INVOICE_ID = /^inv_[0-7][0-9a-hjkmnp-tv-z]{25}$/;

/** Makes one HTTP request, with the checks that apply to every answer of the API. */
export async function ask(url: string, { method = 'GET', headers = {}, body }: Ask = {}): Promise<Reply> {
  const response = await request(url, {
    method: method as 'GET',
    headers: Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== null)) as Record<
      string,
      string
    >,
    body: body ?? null,
  });
  const text = await response.body.text();
  const reply = { status: response.statusCode, headers: response.headers, text, body: parse(text) };
  expect(reply.headers['x-request-id'], 'every response carries X-Request-Id').toMatch(REQUEST_ID);
  expectOnlyAnswer(reply.headers);
  const cors = Object.keys(reply.headers).filter((name) => name.startsWith('access-control-'));
  expect(cors, 'no CORS').toEqual([]);
  return reply;
}

/** Expects that no browser interprets an answer as another type, or shows it in a frame. */
export function expectOnlyAnswer(headers: Reply['headers']): void {
  expect(headers['x-content-type-options']).toBe('nosniff');
  expect(headers['content-security-policy']).toContain("frame-ancestors 'none'");
  expect(headers['content-security-policy']).toContain("default-src 'none'");
}

/** Returns the body of a correct request with a new external id. */
export function order(overrides: Record<string, unknown> = {}): Record<string, unknown> {
  return { amount: '25.00', asset: 'USDT', network: 'TRON', externalId: `order-${randomUUID()}`, ...overrides };
}

export type Post = { headers?: Record<string, HeaderValue>; body?: string | Buffer | object; project?: TestProject };

/** Sends `POST /v1/invoices`, correct except for the overrides. */
export function post(service: TestService, { headers = {}, body = order(), project }: Post = {}): Promise<Reply> {
  return ask(`${service.url}/v1/invoices`, {
    method: 'POST',
    headers: {
      'x-api-key': (project ?? service.project).apiKey,
      'idempotency-key': randomUUID(),
      'content-type': 'application/json',
      ...headers,
    },
    body: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body),
  });
}

/** Sends a `GET` for a path of the service with the project's key. */
export function get(service: TestService, path: string, project: TestProject = service.project): Promise<Reply> {
  return ask(service.url + path, { headers: { 'x-api-key': project.apiKey } });
}

/** Creates an invoice and returns it. Fails unless it was created. */
export async function created(service: TestService, post_: Post = {}): Promise<Json> {
  const reply = await post(service, post_);
  expect(reply.status, reply.text).toBe(201);
  return reply.body;
}

/** The members that one of our RFC 9457 problems may have. */
const PROBLEM_FIELDS = ['type', 'title', 'status', 'code', 'detail', 'requestId'];

/** Checks everything that the contract says about every error, and returns the problem. */
export function expectProblem(reply: Reply, status: number, code: string): Json {
  expect({ status: reply.status, code: reply.body?.code }, reply.text).toEqual({ status, code });
  expect(reply.headers['content-type']).toMatch(/^application\/problem\+json(;|$)/);
  expect(Object.keys(reply.body)).toEqual(expect.arrayContaining(PROBLEM_FIELDS));
  const { type, title, detail, requestId } = reply.body;
  expect(() => new URL(type)).not.toThrow();
  expect([typeof title, typeof detail]).toEqual(['string', 'string']);
  expect(Math.min(title.length, detail.length)).toBeGreaterThan(0);
  expect(reply.body.status).toBe(status);
  expect(requestId).toMatch(REQUEST_ID);
  expect(requestId).toBe(reply.headers['x-request-id']);
  expectNoTrace(reply.text);
  return reply.body;
}

/** Expects that a text reveals nothing about the program's internals. */
export function expectNoTrace(text: string): void {
  // A request id is random, so it may happen to spell any word.
  const reported = text.replaceAll(/req_\w{26}/g, '');
  expect(reported).not.toMatch(/\n\s+at |node_modules|\.[tj]s:\d|stack|select |insert into|FST_ERR|ECONN/i);
}

/** Returns the fields that `errors` names, sorted. */
export function fieldsOf(problem: Json): string[] {
  for (const error of problem.errors) {
    expect([typeof error.field, typeof error.code, typeof error.message]).toEqual(['string', 'string', 'string']);
  }
  return problem.errors.map(({ field }: Json) => field).sort();
}

/** Removes everything from an answer that may legitimately differ between two requests. The rest must be equal. */
export function indistinct(reply: Reply): object {
  const { requestId: _own, ...body } = reply.body;
  const { date: _date, 'x-request-id': _id, ...headers } = reply.headers;
  return { status: reply.status, headers, body };
}

/** Sends raw bytes and reads until the server closes, for requests that no HTTP client would send. */
export async function sendRaw(url: string, bytes: string | Buffer): Promise<Reply> {
  const { hostname, port } = new URL(url);
  const text = await new Promise<string>((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connect({ host: hostname, port: Number(port) }, () => socket.write(bytes));
    socket.setTimeout(PATIENCE_MS, () => socket.destroy(new Error('no answer')));
    socket.on('data', (chunk) => chunks.push(chunk));
    // A server that refuses early may reset the connection; what it sent before counts.
    socket.on('error', (error) => (chunks.length === 0 ? reject(error) : undefined));
    socket.on('close', () => resolve(Buffer.concat(chunks).toString('utf8')));
  });
  const [head = '', ...rest] = text.split('\r\n\r\n');
  const [statusLine = '', ...lines] = head.split('\r\n');
  const headers: Reply['headers'] = {};
  for (const line of lines) {
    const colon = line.indexOf(':');
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
  }
  const body = unchunk(rest.join('\r\n\r\n'), headers);
  return { status: Number(statusLine.split(' ')[1]), headers, text: body, body: parse(body) };
}

/** Returns the bytes of `POST /v1/invoices` with exactly these header lines and this body. `Host` and `Connection: close` are added. */
export function rawPost(lines: string[], body: string | Buffer): Buffer {
  const head = ['POST /v1/invoices HTTP/1.1', 'Host: localhost', 'Connection: close', ...lines].join('\r\n');
  return Buffer.concat([Buffer.from(`${head}\r\n\r\n`, 'latin1'), Buffer.from(body)]);
}

function unchunk(text: string, headers: Reply['headers']): string {
  if (headers['transfer-encoding'] !== 'chunked') return text;
  let [rest, whole] = [Buffer.from(text), ''];
  for (;;) {
    const end = rest.indexOf('\r\n');
    const size = Number.parseInt(rest.subarray(0, end).toString(), 16);
    if (end < 0 || !(size > 0)) return whole;
    whole += rest.subarray(end + 2, end + 2 + size).toString();
    rest = rest.subarray(end + 2 + size + 2);
  }
}

function parse(text: string): Json {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
