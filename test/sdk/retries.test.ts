import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { QuittanceError } from '../../packages/sdk/src/index.ts';
import { readRetryAfter, retryWaitMs } from '../../packages/sdk/src/retry.ts';
import { type QuittanceOptions, readSettings } from '../../packages/sdk/src/settings.ts';
import { type Call, createTransport } from '../../packages/sdk/src/transport.ts';
import { type AnswerStep, json, startAnsweringServer } from './answering-server.ts';
import { SDK_KEY } from './sdk-key.ts';

const API_KEY = SDK_KEY;
let server: Awaited<ReturnType<typeof startAnsweringServer>>;
beforeAll(async () => {
  server = await startAnsweringServer();
});
afterAll(() => server.stop());
// Time is frozen until an answer changes it, so that no attempt times out because the machine is slow.
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  vi.useRealTimers();
});

const CALL: Call = {
  method: 'POST',
  path: '/v1/invoices',
  headers: { 'content-type': 'application/json', 'idempotency-key': 'key-1' },
  body: '{"amount":"25.00"}',
};

/** Sends one call without pausing between attempts; `waits` are the milliseconds of the skipped pauses. */
async function send(steps: AnswerStep[], options: Partial<QuittanceOptions> = {}, call: Partial<Call> = {}) {
  server.answer(...steps);
  const waits: number[] = [];
  const settings = readSettings({ apiKey: API_KEY, baseUrl: server.url, ...options });
  const transport = createTransport(settings, async (ms) => {
    waits.push(ms);
  });
  const outcome = await transport({ ...CALL, ...call }).then(
    (answer) => ({ answer, error: null }),
    (error: unknown) => ({ answer: null, error }),
  );
  return { ...outcome, waits, attempts: server.seen.length };
}

const ok = json(201, { fine: true });
const hang: AnswerStep = () => {
  vi.advanceTimersByTime(10_000);
};
const drip: AnswerStep = (response) => {
  response.writeHead(200, { 'content-type': 'application/json' }).write('{', () => vi.advanceTimersByTime(10_000));
};
const reset: AnswerStep = (response) => {
  response.socket?.resetAndDestroy();
};
const html: AnswerStep = (response) => {
  response.writeHead(502, { 'content-type': 'text/html' }).end('<h1>Bad Gateway</h1>');
};
const huge: AnswerStep = (response) => {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(`"${'x'.repeat(4 * 1024 * 1024)}"`);
};

describe('a failure that passes is tried again with the same key and body', () => {
  test.each<[string, AnswerStep]>([
    ['a connection that is reset', reset],
    ['no answer in time', hang],
    ['an answer that stops in its middle', drip],
    ['a page of a proxy instead of JSON', html],
    ...[408, 425, 429, 500, 502, 503, 504].map((status): [string, AnswerStep] => [
      `status ${status}`,
      json(status, { code: 'UNAVAILABLE', detail: 'later' }),
    ]),
  ])('%s', async (_, failure) => {
    const { answer, attempts } = await send([failure, failure, ok]);
    expect(answer).toEqual({ fine: true });
    expect(attempts).toBe(3);
    const [first, ...others] = server.seen.map(({ method, url, body, headers }) => [method, url, body, headers]);
    expect(first?.slice(0, 3)).toEqual(['POST', '/v1/invoices', CALL.body]);
    for (const other of others) expect(other).toEqual(first);
  });

  test.each([400, 401, 404, 405, 409, 413, 415, 422, 501])('status %i is not', async (status) => {
    const { error, attempts } = await send([json(status, { code: 'INVALID_REQUEST', detail: 'no' }), ok]);
    expect(error).toMatchObject({ status, code: 'INVALID_REQUEST' });
    expect(attempts).toBe(1);
  });

  test.each([
    [undefined, 4],
    [0, 1],
    [1, 2],
  ])('with maxRetries %s there are %i attempts, and the last failure is thrown', async (maxRetries, attempts) => {
    const failed = await send([json(503, { code: 'UNAVAILABLE', detail: 'down', requestId: 'req_1' })], { maxRetries });
    expect(failed).toMatchObject({ attempts, error: { code: 'UNAVAILABLE', status: 503, requestId: 'req_1' } });
  });
});

describe('waiting between attempts', () => {
  test('doubles from half a second, half of it at random, up to 8 s', () => {
    const waits = (random: number) => [0, 1, 2, 3, 4, 9].map((attempt) => retryWaitMs(attempt, undefined, random));
    expect(waits(0)).toEqual([250, 500, 1000, 2000, 4000, 4000]);
    expect(waits(1)).toEqual([500, 1000, 2000, 4000, 8000, 8000]);
  });

  test.each([
    ['7', 7000],
    ['0', 250],
    ['3600', 3_600_000],
    [new Date(20_000).toUTCString(), 19_000],
    [new Date(0).toUTCString(), 250],
    ['soon', 250],
    ['-5', 250],
  ])('Retry-After: %s is what is waited for', (retryAfter, expected) => {
    expect(retryWaitMs(0, readRetryAfter(retryAfter, 1000), 0)).toBe(expected);
  });

  test('the header is read from the answer', async () => {
    const { waits } = await send([json(429, { code: 'RATE_LIMITED' }, { 'retry-after': '7' }), html, ok]);
    expect(waits[0]).toBe(7000);
    expect(waits[1]).toBeLessThanOrEqual(1000);
  });

  test.each([
    [429, 'TOO_MANY_UNPAID'],
    [503, 'UNAVAILABLE'],
  ])(
    'a %i that asks for more than 30 s is thrown at once, with the time: no payer waits 90 s for the same refusal',
    async (status, code) => {
      const limit = (seconds: string) => json(status, { code }, { 'retry-after': seconds });
      const { attempts, error, waits } = await send([limit('60'), ok]);
      expect({ attempts, error, waits }).toMatchObject({
        attempts: 1,
        error: { code, retryAfterMs: 60_000 },
        waits: [],
      });
      expect(await send([limit('30'), ok])).toMatchObject({ attempts: 2, waits: [30_000] });
    },
  );

  test('without another way to wait, it really waits', async () => {
    vi.useRealTimers();
    server.answer(json(503, {}), ok);
    const transport = createTransport(readSettings({ apiKey: API_KEY, baseUrl: server.url }));
    expect(await transport(CALL)).toEqual({ fine: true });
  });
});

describe('failures that stay', () => {
  test.each<[string, AnswerStep, object]>([
    ['no answer', hang, { code: 'TIMEOUT', status: undefined }],
    ['an answer that stops in its middle', drip, { code: 'TIMEOUT' }],
    ['a reset connection', reset, { code: 'CONNECTION_FAILED' }],
    ['a page of a proxy', html, { code: 'UNEXPECTED_ANSWER', status: 502, requestId: undefined }],
    ['more than 4 MiB', huge, { code: 'ANSWER_TOO_LARGE', status: 200 }],
    ['JSON that is no object', json(200, ['x']), { code: 'UNEXPECTED_ANSWER', status: 200 }],
    ['an error of another API', json(400, { error: 'x', code: 17 }), { code: 'UNEXPECTED_ANSWER', status: 400 }],
  ])('%s is a typed error', async (_, step, expected) => {
    const { error } = await send([step], { maxRetries: 0 });
    expect(error).toBeInstanceOf(QuittanceError);
    expect(error).toMatchObject(expected);
  });

  test('a redirect is not followed, for it would carry the key away', async () => {
    const elsewhere = await startAnsweringServer();
    elsewhere.answer(ok);
    const redirect: AnswerStep = (response) => {
      response.writeHead(307, { location: elsewhere.url }).end();
    };
    const { error, attempts } = await send([redirect]);
    expect(error).toMatchObject({ code: 'UNEXPECTED_ANSWER', status: 307 });
    expect([attempts, elsewhere.seen.length]).toEqual([1, 0]);
    await elsewhere.stop();
  });

  test('the key is in no error, even if fetch says it', async () => {
    const leaky = () => Promise.reject(new TypeError(`bad header ${API_KEY}`, { cause: new Error(API_KEY) }));
    const { error } = await send([ok], { fetch: leaky, maxRetries: 0 });
    expect(error).toMatchObject({ code: 'CONNECTION_FAILED' });
    expect(JSON.stringify([String(error), (error as Error).stack, error])).not.toContain(API_KEY);
  });
});

describe("the caller's signal", () => {
  const reason = new Error('the user left');

  test('that is aborted already sends nothing', async () => {
    const { error, attempts } = await send([ok], {}, { signal: AbortSignal.abort(reason) });
    expect([error, attempts]).toEqual([reason, 0]);
  });

  test('ends an attempt under way, and is not retried', async () => {
    const controller = new AbortController();
    const { error, attempts } = await send([() => controller.abort(reason), ok], {}, { signal: controller.signal });
    expect([error, attempts]).toEqual([reason, 1]);
  });

  test('ends the wait for the next attempt', async () => {
    const controller = new AbortController();
    server.answer((response) => {
      response.on('finish', () => setImmediate(() => controller.abort(reason)));
      json(503, {}, { 'retry-after': '30' })(response);
    });
    const transport = createTransport(readSettings({ apiKey: API_KEY, baseUrl: server.url }));
    await expect(transport({ ...CALL, signal: controller.signal })).rejects.toBe(reason);
  });
});
