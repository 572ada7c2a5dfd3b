import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import { describe, expect, test, vi } from 'vitest';
import { WebhookVerificationError, webhooks } from '../../packages/sdk/src/index.ts';
import { formatSecret, signWebhook } from '../../src/core/webhooks/sign.ts';
import { FORGERIES, GENUINE, NOW_MS } from './forgeries.ts';

type Received = Pick<(typeof FORGERIES)[number], 'body' | 'headers' | 'secret'>;

const VECTORS = join(import.meta.dirname, '../../docs/examples/webhook-vectors.json');
const now = () => NOW_MS;

/** Returns our verdict: the code of the refusal, or null if accepted. */
async function judgeOurs({ body, headers, secret }: Received): Promise<string | null> {
  try {
    await webhooks.verify(body as Uint8Array, headers, secret, { now });
    return null;
  } catch (error) {
    if (error instanceof WebhookVerificationError) return error.code;
    if (error instanceof TypeError && error.message.includes('secret')) return 'SECRET';
    throw error;
  }
}

/** Returns the published package's verdict. It reads the time from `Date.now`. */
function judgePublished({ body, headers, secret }: Received): 'accepts' | 'refuses' {
  const clock = vi.spyOn(Date, 'now').mockReturnValue(NOW_MS);
  try {
    new Webhook(secret).verify(body as Buffer, headers as Record<string, string>);
    return 'accepts';
  } catch {
    return 'refuses';
  } finally {
    clock.mockRestore();
  }
}

test('the genuine webhook is accepted by ours and by the published package', async () => {
  expect(await judgeOurs(GENUINE)).toBeNull();
  expect(judgePublished(GENUINE)).toBe('accepts');
});

test('the exact string is accepted, and its base64 where the receiver says so', async () => {
  const { body, headers, secret } = GENUINE as { body: Buffer; headers: Record<string, string>; secret: string };
  const verify = (given: unknown, isBase64Encoded?: boolean) =>
    webhooks.verify(given as string, headers, secret, { now, isBase64Encoded });
  const event = JSON.parse(body.toString());
  expect(await verify(body.toString())).toEqual(event);
  expect(await verify(body.toString(), false)).toEqual(event);
  expect(await verify(body.toString('base64'), true)).toEqual(event);
  expect(await verify(body, true)).toEqual(event);
  await expect(verify(body.toString(), true)).rejects.toMatchObject({
    code: 'BODY_NOT_RAW',
    message: expect.stringContaining('its base64 with isBase64Encoded'),
  });
  await expect(verify(event)).rejects.toMatchObject({
    code: 'BODY_NOT_RAW',
    message: expect.stringMatching(/^The body was passed as a parsed object. Pass the raw bytes, the exact string/),
  });
});

test('an event of another project is refused where the receiver names its own', async () => {
  const own = 'prj_01h455vb4pex5vsknk084sn02q';
  const secret = formatSecret(Buffer.alloc(32, 7));
  const event = { id: 'evt_01h455vb4pex5vsknk084sn02q', type: 'invoice.paid', projectId: own, data: {} };
  const { body, headers } = await webhooks.sign(event, secret, { now });
  const taken = (projectId?: string) =>
    webhooks.verify(new TextEncoder().encode(body), headers, secret, { now, projectId });
  expect(await taken()).toEqual(event);
  expect(await taken(own)).toEqual(event);
  await expect(taken('prj_01h455vb4pex5vsknk084sn02r')).rejects.toMatchObject({
    code: 'EVENT_MALFORMED',
  });
});

describe('ours refuses each forgery, and the published package does as the table says', () => {
  test.each(FORGERIES)('$name', async (forgery) => {
    expect(await judgeOurs(forgery)).toBe(forgery.code);
    expect(judgePublished(forgery)).toBe(forgery.published);
  });

  test('there are at least 40, each with a name of its own', () => {
    const names = new Set(FORGERIES.map(({ name }) => name));
    const accepted = FORGERIES.filter(({ published }) => published === 'accepts').map(({ name }) => name);
    console.info(`${names.size} forgeries; standardwebhooks accepts ${accepted.length}:\n  ${accepted.join('\n  ')}`);
    expect(names.size).toBe(FORGERIES.length);
    expect(names.size).toBeGreaterThanOrEqual(40);
  });
});

const ids = fc.stringMatching(/^[A-Za-z0-9_-]{1,255}$/);
const secrets = fc.uint8Array({ minLength: 24, maxLength: 64 }).map(formatSecret);
const notes = fc.string({ unit: 'binary', maxLength: 200 });

test('whatever Quittance signs verifies with ours and with the published package', async () => {
  const property = fc.asyncProperty(ids, notes, fc.array(secrets, { minLength: 1, maxLength: 3 }), async (...given) => {
    const [id, note, all] = given;
    const event = { id, type: 'ping', data: { note } };
    const body = Buffer.from(JSON.stringify(event));
    const headers = { ...signWebhook({ id, timestampSeconds: NOW_MS / 1000, body, secrets: all }) };
    for (const secret of all) {
      expect(await webhooks.verify(body, headers, secret, { now })).toEqual(event);
      expect(judgePublished({ body, headers, secret })).toBe('accepts');
    }
  });
  await fc.assert(property);
});

test('one changed bit anywhere in the body is refused', async () => {
  const genuine = GENUINE.body as Buffer;
  const property = fc.asyncProperty(fc.nat(genuine.length * 8 - 1), async (bit) => {
    const body = Buffer.from(genuine);
    body[bit >> 3] = (body[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    expect(await judgeOurs({ ...GENUINE, body })).toBe('SIGNATURE_MISMATCH');
  });
  await fc.assert(property);
});

test('sign makes what verify takes, for the tests of receivers', async () => {
  const { secret } = GENUINE;
  const event = { id: 'evt_1', type: 'ping', data: { endpointId: 'whe_1 ₮' } };
  const { body, headers } = await webhooks.sign(event, secret, { now });
  expect(await judgeOurs({ body: Buffer.from(body), headers, secret })).toBeNull();
  expect(judgePublished({ body: Buffer.from(body), headers, secret })).toBe('accepts');
  expect(await judgeOurs({ body: Buffer.from(`${body} `), headers, secret })).toBe('SIGNATURE_MISMATCH');
  await expect(webhooks.sign({ id: '' }, secret)).rejects.toThrow(TypeError);
});

// Only requests that any HTTP server passes on unchanged: one text for each header, bytes for the body.
test('the published vectors are these requests; else write them anew by VECTORS=write', async () => {
  const vectors = [{ name: 'genuine', code: null, ...GENUINE }, ...FORGERIES].flatMap((request) => {
    const { name, code, body, headers, secret } = request;
    const isPlain = Object.values(headers).every((value) => typeof value === 'string');
    if (!Buffer.isBuffer(body) || !isPlain || code === 'SECRET' || body.length > 10_000) return [];
    return [{ name, refused: code, secret, now: NOW_MS / 1000, headers, bodyBase64: body.toString('base64') }];
  });
  const text = `${JSON.stringify(vectors, null, 2)}\n`;
  if (process.env['VECTORS'] === 'write') await writeFile(VECTORS, text);
  expect(vectors.length).toBeGreaterThan(30);
  expect(await readFile(VECTORS, 'utf8')).toBe(text);
});
