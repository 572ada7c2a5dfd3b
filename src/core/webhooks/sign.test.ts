import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import { describe, expect, test, vi } from 'vitest';
import { createWebhookSecret, formatSecret, parseSecret, signWebhook, verifyWebhook } from './sign.ts';

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
    ['an id with a dot, which would let parts be shifted', { id: 'evt.1' }, 'not a webhook id: evt.1'],
    ['an id with more in front', { id: ' evt_1' }, 'not a webhook id:  evt_1'],
    ['an id with more behind', { id: 'evt_1\n' }, 'not a webhook id: evt_1'],
    ['no id', { id: '' }, 'not a webhook id: '],
    ['an id of 256 characters', { id: 'x'.repeat(256) }, 'not a webhook id: xxx'],
    ['a time with a fraction', { timestampSeconds: 1.5 }, 'not a time in seconds: 1.5'],
    ['the time 0', { timestampSeconds: 0 }, 'not a time in seconds: 0'],
    ['no secret', { secrets: [] }, 'a webhook needs 1 to 16 secrets, not 0'],
    ['17 secrets', { secrets: Array(17).fill(SECRET) }, 'a webhook needs 1 to 16 secrets, not 17'],
    ['a secret of another length', { secrets: ['whsec_AAAA'] }, 'the base64 of 24 to 64 bytes; this one is not'],
  ])('%s is refused', (_, part, reason) => {
    expect(() => signWebhook({ ...message, ...part })).toThrow(RangeError);
    expect(() => signWebhook({ ...message, ...part })).toThrow(reason);
  });

  test('what is at its bound is signed: the first second, 16 secrets, an id of 255 characters', () => {
    const secrets = Array.from({ length: 16 }, () => createWebhookSecret(randomBytes));
    const headers = signWebhook({ id: 'x'.repeat(255), timestampSeconds: 1, body: BODY, secrets });
    expect(headers['webhook-timestamp']).toBe('1');
    for (const secret of secrets) {
      expect(verifyWebhook(BODY, headers, secret, { nowMs: 1999 })).toEqual({
        kind: 'valid',
        id: 'x'.repeat(255),
        timestampSeconds: 1,
      });
    }
  });

  test('the error for a malformed secret does not hold the secret', () => {
    expect(() => signWebhook({ ...message, secrets: ['whsec_private'] })).toThrow(/^(?!.*private)/);
  });

  test('a secret is whsec_ and the base64 of 32 bytes, and its randomness is checked', () => {
    expect(SECRET).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(() => createWebhookSecret(() => new Uint8Array(16))).toThrow('a webhook secret needs 32 random bytes');
    expect(() => createWebhookSecret(() => new Uint8Array(33))).toThrow(RangeError);
  });

  test('secrets of 24 to 64 bytes read back, each from one text alone', () => {
    for (let size = 20; size <= 70; size += 1) {
      const text = formatSecret(new Uint8Array(size).fill(0xfb));
      if (size >= 24 && size <= 64) expect(parseSecret(text)).toEqual(Buffer.alloc(size, 0xfb));
      else expect(() => parseSecret(text)).toThrow(RangeError);
    }
    const [text, body] = [SECRET, SECRET.slice('whsec_'.length)];
    for (const other of [body, ` ${text}`, `${text}\n`, `${text}=`, text.slice(0, -1), `WHSEC_${body}`, `x${text}`]) {
      expect(() => parseSecret(other)).toThrow(RangeError);
    }
    // The last character encodes two bits of the last byte and four unused bits.
    const zeros = formatSecret(new Uint8Array(32));
    expect(() => parseSecret(`${zeros.slice(0, -2)}B=`)).toThrow(RangeError);
    expect(() => parseSecret(formatSecret(new Uint8Array(32).fill(255)).replaceAll('/', '_'))).toThrow(RangeError);
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

  const ID = 'webhook-id is missing or malformed';
  const TIME = 'webhook-timestamp is missing or is not Unix seconds in digits';
  const NONE = 'no v1 signature matches: the secret is different, or the body was changed';
  const signed = headers['webhook-signature'] ?? '';
  test.each([
    ['no id', without('webhook-id'), ID],
    ['a repeated id', { ...headers, 'webhook-id': [message.id, message.id] }, ID],
    ['an id with a dot', { ...headers, 'webhook-id': 'evt.1' }, ID],
    ['another id', { ...headers, 'webhook-id': 'evt_other' }, NONE],
    ['no timestamp', without('webhook-timestamp'), TIME],
    ['a repeated timestamp', { ...headers, 'webhook-timestamp': [String(message.timestampSeconds)] }, TIME],
    ['a timestamp with more than digits', { ...headers, 'webhook-timestamp': `${message.timestampSeconds}.0` }, TIME],
    ['a timestamp behind a space', { ...headers, 'webhook-timestamp': ` ${message.timestampSeconds}` }, TIME],
    ['a timestamp behind a zero', { ...headers, 'webhook-timestamp': `0${message.timestampSeconds}` }, TIME],
    ['a timestamp of 13 digits', { ...headers, 'webhook-timestamp': String(NOW_MS) }, TIME],
    ['a timestamp in hexadecimal', { ...headers, 'webhook-timestamp': '0x6a95' }, TIME],
    ['another timestamp', { ...headers, 'webhook-timestamp': String(message.timestampSeconds + 1) }, NONE],
    ['no signature', without('webhook-signature'), 'webhook-signature is missing'],
    ['a repeated signature', { ...headers, 'webhook-signature': [signed] }, 'webhook-signature is missing'],
    ['an empty signature', { ...headers, 'webhook-signature': '' }, NONE],
    ['a signature of another version', { ...headers, 'webhook-signature': signed.replace('v1,', 'v1a,') }, NONE],
    ['a cut signature', { ...headers, 'webhook-signature': signed.slice(0, -1) }, NONE],
    ['a signature that is joined to another', { ...headers, 'webhook-signature': `v1,x,${signed}` }, NONE],
    [
      'the right signature behind too many others',
      { ...headers, 'webhook-signature': `${'v1,x '.repeat(16)}${signed}` },
      'webhook-signature contains too many signatures',
    ],
  ])('%s is refused', (_, changed, reason) => {
    expect(verify(changed)).toEqual({ kind: 'invalid', reason });
  });

  test('the right signature may stand among 15 others', () => {
    for (const before of [0, 7, 15]) {
      const others = [...Array(before).fill('v1,x'), signed, ...Array(15 - before).fill('v1,x')];
      expect(verify({ ...headers, 'webhook-signature': others.join(' ') }).kind).toBe('valid');
    }
  });

  test('how far the time is away is said, and how far it may be', () => {
    const seen = verifyWebhook(BODY, headers, SECRET, { nowMs: NOW_MS + 61_999, toleranceSeconds: 60 });
    expect(seen).toEqual({
      kind: 'invalid',
      reason: 'webhook-timestamp differs from the current time by 61 s, but at most 60 s are allowed',
    });
    expect(verifyWebhook(BODY, headers, SECRET, { nowMs: NOW_MS + 60_999, toleranceSeconds: 60 }).kind).toBe('valid');
  });

  test('another secret is refused', () => {
    const other = createWebhookSecret(randomBytes);
    expect(verifyWebhook(BODY, headers, other, { nowMs: NOW_MS }).kind).toBe('invalid');
  });
});
