import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import { describe, expect, test, vi } from 'vitest';
import { createWebhookSecret, signWebhook, verifyWebhook } from './sign.ts';

const NOW_MS = Date.UTC(2026, 8, 1, 12);
const SECRET = createWebhookSecret(randomBytes);
const BODY = Buffer.from('{"id":"evt_1","note":"Grüße ₮ 漢字"}');
const message = {
  id: 'evt_01h455vb4pex5vsknk084sn02q',
  timestampSeconds: NOW_MS / 1000,
  body: BODY,
  secrets: [SECRET],
};
const verify = (headers: Record<string, string | string[]>, body: Uint8Array = BODY, nowMs = NOW_MS) =>
  verifyWebhook(body, headers, SECRET, { nowMs });

/** The published verifier reads the time from `Date.now`. */
function judge(secret: string, body: Buffer, headers: Record<string, string>) {
  const now = vi.spyOn(Date, 'now').mockReturnValue(NOW_MS);
  try {
    return new Webhook(secret).verify(body, headers);
  } finally {
    now.mockRestore();
  }
}

describe('signing', () => {
  test('the example of the Standard Webhooks libraries is signed as they sign it', () => {
    const headers = signWebhook({
      id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      timestampSeconds: 1614265330,
      body: '{"test": 2432232314}',
      secrets: [`whsec_${Buffer.alloc(32, 7).toString('base64')}`],
    });
    const judged = new Webhook(Buffer.alloc(32, 7).toString('base64')).sign(
      'msg_p5jXN8AQM9LWM0D4loKWxJek',
      new Date(1614265330_000),
      '{"test": 2432232314}',
    );
    expect(headers['webhook-signature']).toBe(judged);
  });

  test('every text, signed with any secret, verifies with the published package and with ours', () => {
    const secrets = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => createWebhookSecret(() => bytes));
    fc.assert(
      fc.property(secrets, fc.string({ unit: 'grapheme' }), (secret, text) => {
        const body = Buffer.from(JSON.stringify({ text }));
        const headers = signWebhook({ ...message, body, secrets: [secret] });
        expect(judge(secret, body, headers)).toEqual({ text });
        expect(verifyWebhook(body, headers, secret, { nowMs: NOW_MS }).kind).toBe('valid');
      }),
    );
  });

  test('during a rotation each of the two secrets verifies', () => {
    const other = createWebhookSecret(randomBytes);
    const headers = signWebhook({ ...message, secrets: [other, SECRET] });
    expect(headers['webhook-signature'].split(' ')).toHaveLength(2);
    expect(judge(SECRET, BODY, headers)).toEqual(judge(other, BODY, headers));
    expect(verify(headers)).toEqual({ kind: 'valid', id: message.id, timestampSeconds: NOW_MS / 1000 });
  });

  test('the headers say what the protocol and the content are', () => {
    expect(signWebhook(message)).toMatchObject({ 'webhook-protocol': 'v2', 'content-type': 'application/json' });
  });

  test.each([
    ['an id with a dot, which would let parts be shifted', { id: 'evt.1' }],
    ['a time with a fraction', { timestampSeconds: 1.5 }],
    ['no secret', { secrets: [] }],
    ['a secret of another length', { secrets: ['whsec_AAAA'] }],
  ])('%s is refused', (_, part) => {
    expect(() => signWebhook({ ...message, ...part })).toThrow(RangeError);
  });

  test('the error for a malformed secret does not hold the secret', () => {
    expect(() => signWebhook({ ...message, secrets: ['whsec_private'] })).toThrow(/^(?!.*private)/);
  });

  test('a secret is whsec_ and the base64 of 32 bytes, and its randomness is checked', () => {
    expect(SECRET).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(() => createWebhookSecret(() => new Uint8Array(16))).toThrow(RangeError);
  });
});

describe('verification', () => {
  const headers: Record<string, string> = signWebhook(message);
  const without = (name: string) => Object.fromEntries(Object.entries(headers).filter(([key]) => key !== name));

  test('one changed bit anywhere in the body is refused', () => {
    fc.assert(
      fc.property(fc.nat(BODY.length * 8 - 1), (bit) => {
        const changed = Buffer.from(BODY);
        changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        expect(verify(headers, changed).kind).toBe('invalid');
      }),
    );
  });

  test('a time up to 5 minutes away is accepted, one further away is refused, on both sides', () => {
    for (const side of [-1, 1]) {
      expect(verify(headers, BODY, NOW_MS + side * 300_000).kind).toBe('valid');
      expect(verify(headers, BODY, NOW_MS + side * 301_000).kind).toBe('invalid');
    }
  });

  test.each([
    ['no id', without('webhook-id')],
    ['no timestamp', without('webhook-timestamp')],
    ['no signature', without('webhook-signature')],
    ['a repeated id', { ...headers, 'webhook-id': [message.id, message.id] }],
    ['another id', { ...headers, 'webhook-id': 'evt_other' }],
    ['a timestamp with more than digits', { ...headers, 'webhook-timestamp': `${headers['webhook-timestamp']}.0` }],
    ['a timestamp in hexadecimal', { ...headers, 'webhook-timestamp': '0x6a95' }],
    ['another timestamp', { ...headers, 'webhook-timestamp': String(message.timestampSeconds + 1) }],
    ['an empty signature', { ...headers, 'webhook-signature': '' }],
    [
      'a signature of another version',
      { ...headers, 'webhook-signature': headers['webhook-signature']?.replace('v1,', 'v1a,') ?? '' },
    ],
    ['a cut signature', { ...headers, 'webhook-signature': headers['webhook-signature']?.slice(0, -1) ?? '' }],
    [
      'the right signature behind too many others',
      { ...headers, 'webhook-signature': `${'v1,x '.repeat(16)}${headers['webhook-signature']}` },
    ],
  ])('%s is refused', (_, changed) => {
    expect(verify(changed).kind).toBe('invalid');
  });

  test('another secret is refused', () => {
    const other = createWebhookSecret(randomBytes);
    expect(verifyWebhook(BODY, headers, other, { nowMs: NOW_MS }).kind).toBe('invalid');
  });
});
