import { createHash, createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { WebhookEvent } from '../../packages/sdk/src/index.ts';
import { quittanceWebhook as forExpress } from '../../packages/sdk/src/middleware/express.ts';
import { quittanceWebhook as forHono } from '../../packages/sdk/src/middleware/hono.ts';
import { quittanceWebhook } from '../../packages/sdk/src/middleware/web.ts';
import { createWebhookSecret, parseSecret, signWebhook } from '../../src/core/webhooks/sign.ts';
import { HOSTS, type Host, type Options, type StartHost, TOO_LATE } from './middleware-hosts.ts';

const NOW = 1_788_264_000;
const SECRET = createWebhookSecret(() => Buffer.alloc(32, 7));
const ID = 'evt_01h455vb4pex5vsknk084sn02q';
const EVENT = { id: ID, type: 'invoice.paid', data: { externalId: 'order-1 ₮' } };

function deliveryOf(event: object, timestampSeconds = NOW) {
  const body = Buffer.from(JSON.stringify(event));
  return { body, headers: { ...signWebhook({ id: ID, timestampSeconds, body, secrets: [SECRET] }) } };
}

/** Returns the values that `quittance webhook test` compares. */
function diagnosisOf(body: Buffer) {
  const check = createHmac('sha256', parseSecret(SECRET)).update(`quittance diagnostic v1\n${ID}`).digest('hex');
  const bodySha256 = createHash('sha256').update(body).digest('hex');
  return { receivedAt: NOW, bodySha256, bodyBytes: body.length, secretCheck: check.slice(0, 8) };
}

const state = { handled: [] as WebhookEvent[], errors: [] as unknown[], failure: null as Error | null };
const options: Options = { secret: SECRET, now: () => NOW * 1000, onError: (error) => state.errors.push(error) };
const start = (startHost: StartHost) =>
  startHost(options, async (event) => {
    if (state.failure !== null) throw state.failure;
    state.handled.push(event);
  });

beforeEach(() => Object.assign(state, { handled: [], errors: [], failure: null }));

describe.each(Object.entries(HOSTS))('in %s', (_, startHost) => {
  let host: Host;
  beforeAll(async () => {
    host = await start(startHost);
  });
  afterAll(() => host.stop());

  test('a genuine webhook is handled and answered with 204', async () => {
    expect(await host.deliver(deliveryOf(EVENT))).toMatchObject({ status: 204, text: '' });
    expect(state.handled).toEqual([EVENT]);
  });

  test('a forged one is answered with 400 and the diagnosis, and is not handled', async () => {
    const { headers } = deliveryOf(EVENT);
    const body = Buffer.from(JSON.stringify(EVENT, null, 2));
    const reply = await host.deliver({ headers, body });
    expect(reply).toMatchObject({ status: 400, contentType: expect.stringContaining('application/json') });
    expect(JSON.parse(reply.text)).toEqual({
      error: 'webhook_verification_failed',
      code: 'SIGNATURE_MISMATCH',
      message: expect.any(String),
      diagnosis: diagnosisOf(body),
    });
    expect(state).toMatchObject({ handled: [], errors: [] });
  });

  test('a handler that fails is answered with 500 without its reason, so that the event comes again', async () => {
    state.failure = new Error('password=hunter2');
    const reply = await host.deliver(deliveryOf(EVENT));
    expect(reply).toMatchObject({ status: 500, text: '{"error":"internal"}' });
    expect(state.errors).toEqual([state.failure]);
  });

  test('a body over 64 KiB is answered with 413', async () => {
    const reply = await host.deliver(deliveryOf({ ...EVENT, note: 'x'.repeat(70 * 1024) }));
    expect(reply.status).toBe(413);
    expect(JSON.parse(reply.text)).toMatchObject({ code: 'BODY_TOO_LARGE' });
    expect(state.handled).toEqual([]);
  });

  test('no body and no signature is refused', async () => {
    const reply = await host.deliver({ headers: {}, body: Buffer.alloc(0) });
    expect(reply.status).toBe(400);
    expect(JSON.parse(reply.text)).toMatchObject({ code: 'HEADER_MISSING', diagnosis: { secretCheck: null } });
  });
});

test('in Express a request that a timeout has answered meanwhile is not answered again, which could end the process', async () => {
  let routed: Promise<void> | undefined;
  const server = createServer((request, response) => {
    const route = forExpress(options, () => {
      response.writeHead(503).end('too slow');
      throw new Error('no longer wanted');
    });
    routed = route(request, response);
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const { headers, body } = deliveryOf(EVENT);
  const sent = { method: 'POST', headers: { ...headers, connection: 'close' }, body: new Uint8Array(body) };
  const reply = await fetch(`http://127.0.0.1:${port}/`, sent);
  expect([reply.status, await reply.text()]).toEqual([503, 'too slow']);
  await expect(routed).resolves.toBeUndefined();
});

describe('where the body was read before, the answer says how to get at the bytes', () => {
  test.each(Object.entries(TOO_LATE))('%s', async (_, startHost) => {
    const host = await start(startHost);
    const reply = await host.deliver(deliveryOf(EVENT));
    await host.stop();
    expect(reply.status).toBe(400);
    const { diagnosis, ...answer } = JSON.parse(reply.text);
    expect(answer).toMatchObject({ code: 'BODY_NOT_RAW', message: expect.stringContaining('express.json()') });
    expect(diagnosis).toEqual({ ...diagnosisOf(Buffer.alloc(0)), bodySha256: null, bodyBytes: null });
    expect(state.handled).toEqual([]);
  });
});

describe('the diagnosis', () => {
  const route = quittanceWebhook(
    { ...options, secret: [createWebhookSecret(() => Buffer.alloc(32, 8)), SECRET] },
    () => {},
  );
  const ask = async (headers: Record<string, string>, body: Buffer) => {
    const response = await route(
      new Request('https://shop.example/', { method: 'POST', headers, body: new Uint8Array(body) }),
    );
    return JSON.parse((await response.text()) || 'null');
  };

  test('names a check for each secret', async () => {
    const { headers } = deliveryOf(EVENT);
    const { diagnosis } = await ask(headers, Buffer.from('{}'));
    expect(diagnosis.secretCheck).toMatch(/^[0-9a-f]{8},[0-9a-f]{8}$/);
    expect(diagnosis.secretCheck.split(',')[1]).toBe(diagnosisOf(Buffer.alloc(0)).secretCheck);
  });

  test.each([
    [-301, 'TIMESTAMP_TOO_OLD'],
    [301, 'TIMESTAMP_TOO_NEW'],
  ])('tells how far the clocks are apart: %i s', async (seconds, code) => {
    const { headers, body } = deliveryOf(EVENT, NOW + seconds);
    expect(await ask(headers, body)).toMatchObject({ code, message: expect.stringContaining('301 s') });
  });

  test('either secret of a rotation is accepted', async () => {
    const { headers, body } = deliveryOf(EVENT);
    expect(await ask(headers, body)).toBeNull();
  });
});

describe('a secret that cannot be one', () => {
  test.each(['', 'whsec_short', [] as string[]])('is refused when the program starts: %j', (secret) => {
    expect(() => quittanceWebhook({ secret }, () => {})).toThrow(TypeError);
  });

  test('that comes with the request is answered with 500 and told, but not to the sender', async () => {
    const route = forHono({ ...options, secret: () => 'whsec_short' }, () => {});
    const { headers, body } = deliveryOf(EVENT);
    const raw = new Request('https://shop.example/', { method: 'POST', headers, body: new Uint8Array(body) });
    const response = await route({ req: { raw } });
    expect([response.status, await response.text()]).toEqual([500, '{"error":"internal"}']);
    expect(state.errors).toEqual([expect.any(TypeError)]);
    expect(String(state.errors[0])).not.toContain('short');
  });
});

describe('a delivery that takes too long', () => {
  const deliver = async (route: (request: Request) => Promise<Response>, timestampSeconds = NOW) => {
    const { headers, body } = deliveryOf(EVENT, timestampSeconds);
    const response = await route(
      new Request('https://shop.example/', { method: 'POST', headers, body: new Uint8Array(body) }),
    );
    return { status: response.status, retryAfter: response.headers.get('retry-after'), text: await response.text() };
  };
  const late = { ...options, deadlineMs: 100 };
  const BUSY = { status: 503, retryAfter: '5', text: '{"error":"busy"}' };

  // The deadline passes when a test says so, however slow the machine is.
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
  afterEach(() => void vi.useRealTimers());
  const passDeadline = () => vi.advanceTimersByTime(late.deadlineMs);
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  /** Delivers, and lets the deadline pass while the handler runs. */
  const deliverLate = async (route: (request: Request) => Promise<Response>, hasBegun: () => boolean) => {
    const answer = deliver(route);
    while (!hasBegun()) await turn();
    passDeadline();
    return answer;
  };

  test('is answered with 503 and Retry-After, and what the handler reads is told to stop', async () => {
    let reason: unknown;
    let hasBegun = false;
    const route = quittanceWebhook(late, (_event, _request, { signal }) => {
      hasBegun = true;
      return new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          reason = signal.reason;
          reject(signal.reason);
        });
      });
    });
    expect(await deliverLate(route, () => hasBegun)).toEqual(BUSY);
    expect(reason).toEqual(new Error('the webhook was not handled within 100 ms'));
  });

  test('is left to the next delivery if the deadline passes before the handler begins', async () => {
    const secrets: ((secret: string) => void)[] = [];
    const begun: { isTooLate: boolean }[] = [];
    const secret = () => new Promise<string>((resolve) => secrets.push(resolve));
    const route = quittanceWebhook({ ...late, secret }, (_event, _request, { signal }) => {
      begun.push({ isTooLate: signal.aborted });
    });
    expect(await deliverLate(route, () => secrets.length === 1)).toEqual(BUSY);
    secrets[0]?.(SECRET);
    const repeat = deliver(route);
    while (secrets.length < 2) await turn();
    secrets[1]?.(SECRET);
    expect(await repeat).toMatchObject({ status: 204 });
    expect(begun).toEqual([{ isTooLate: false }]);
  });

  test('is not handled twice: a repeat joins it while it runs, and is answered with 204 when it is done', async () => {
    const finish: (() => void)[] = [];
    const route = quittanceWebhook(late, () => new Promise<void>((resolve) => finish.push(resolve)));
    expect(await deliverLate(route, () => finish.length === 1)).toEqual(BUSY);
    const repeat = deliver(route);
    finish[0]?.();
    expect(await repeat).toMatchObject({ status: 204 });
    expect(finish).toHaveLength(1);
  });

  test('is not handled twice: what was done after the 503 is not done again by the repeat, but by a replay', async () => {
    const finish: (() => void)[] = [];
    const route = quittanceWebhook(late, () => new Promise<void>((resolve) => finish.push(resolve)));
    expect(await deliverLate(route, () => finish.length === 1)).toEqual(BUSY);
    expect(await deliverLate(route, () => vi.getTimerCount() > 0)).toEqual(BUSY);
    finish[0]?.();
    await turn();
    expect(await deliver(route)).toMatchObject({ status: 204 });
    expect(finish).toHaveLength(1);
    const replay = deliver(route);
    while (finish.length < 2) await turn();
    finish[1]?.();
    expect(await replay).toMatchObject({ status: 204 });
  });

  test('is handled again if its handler never ends, as in a worker: once a repeat has waited in vain', async () => {
    // Here the deadline passes by itself, because nothing shows that a repeat has begun to wait.
    vi.useRealTimers();
    let calls = 0;
    const route = quittanceWebhook(late, () => {
      calls += 1;
      return calls === 1 ? new Promise(() => {}) : undefined;
    });
    expect(await deliver(route)).toEqual(BUSY);
    await expect.poll(() => deliver(route)).toMatchObject({ status: 204 });
    expect(calls).toBe(2);
  });

  test('is handled by a replay that comes much later, even if the repeat reached another process', async () => {
    const clock = { now: NOW };
    const calls: (() => void)[] = [];
    const route = quittanceWebhook({ ...late, now: () => clock.now * 1000 }, () => {
      const handled = new Promise<void>((resolve) => calls.push(resolve));
      return calls.length === 1 ? handled : undefined;
    });
    expect(await deliverLate(route, () => calls.length === 1)).toEqual(BUSY);
    calls[0]?.();
    await turn();
    clock.now += 900;
    expect(await deliver(route, clock.now)).toMatchObject({ status: 204 });
    expect(calls).toHaveLength(2);
  });

  test.each([0, 14_001, Number.NaN])('a deadline of %s ms is refused when the program starts', (deadlineMs) => {
    expect(() => quittanceWebhook({ ...options, deadlineMs }, () => {})).toThrow('deadlineMs must be from 1 to 14000');
  });
});
